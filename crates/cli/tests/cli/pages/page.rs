//! Parses a page of the documentation into parts that are run and parts that are not.
//!
//! | fence | action |
//! |---|---|
//! | `console` | each command after `$ ` is run, and must print the lines below it |
//! | `console varies` | each command is run and must succeed; its output differs between machines |
//! | `sh` | the block is run as one script, which must succeed |
//! | `sh not-run: WHY`, `console not-run: WHY` | nothing is run, for this reason |
//! | `csv NAME`; also `json`, `jsonl`, `sql`, `ini` | a file for the commands below |
//!
//! A comment that begins with `<!-- given` is a script that creates files which a reader would
//! have. It is run but not rendered. All parts of a page run in one scratch directory, from top to
//! bottom.

/// The fences that contain files.
const FILES: [&str; 5] = ["csv", "json", "jsonl", "sql", "ini"];

/// The beginning of a comment with a script.
const GIVEN: &str = "<!-- given";

/// A part of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// Text that is not run, including its line breaks.
    Text(String),
    /// A file that the examples need.
    File { name: String, content: String },
    /// A command and the output below it. The output is compared, unless it varies.
    Command { line: String, output: String, varies: bool },
    /// Lines that are run as one script.
    Script(String),
    /// Lines that are not run, and the reason.
    NotRun { lines: String, why: String },
}

/// The kind of a code block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    File(String),
    Console { varies: bool },
    Script,
    NotRun(String),
    Other,
}

impl Block {
    /// Parses the info string of a fence. Panics if it is invalid.
    fn of(info: &str) -> Block {
        let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
        if FILES.contains(&language) && !rest.is_empty() {
            return Block::File(rest.to_owned());
        }
        if language != "sh" && language != "console" {
            return Block::Other;
        }
        if let Some(why) = rest.strip_prefix("not-run:") {
            assert!(why.trim().len() > 5, "{info:?}: no reason");
            return Block::NotRun(why.trim().to_owned());
        }
        match (language, rest) {
            ("sh", "") => Block::Script,
            ("console", "") => Block::Console { varies: false },
            ("console", "varies") => Block::Console { varies: true },
            _ => panic!("{info:?}: neither run nor marked as not run"),
        }
    }

    /// Returns the part that the block begins.
    fn part(&self) -> Option<Part> {
        match self {
            Block::File(name) => Some(Part::File { name: name.clone(), content: String::new() }),
            Block::Script => Some(Part::Script(String::new())),
            Block::NotRun(why) => Some(Part::NotRun { lines: String::new(), why: why.clone() }),
            Block::Console { .. } | Block::Other => None,
        }
    }
}

/// Parses a page.
pub fn parse(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut block = None;
    for line in page.split_inclusive('\n') {
        let text = line.trim_end();
        let fence = text.trim_start().strip_prefix("```").map(str::to_owned);
        let given = block.is_none() && text == GIVEN;
        let ends =
            block.is_some() && (fence.is_some() || (block == Some((true, Block::Script)) && text == "-->"));
        if ends || given || fence.is_some() {
            parts.push(Part::Text(line.to_owned()));
            block = match fence {
                _ if ends => None,
                Some(info) => Some((false, Block::of(&info))),
                None => Some((true, Block::Script)),
            };
            parts.extend(block.as_ref().and_then(|(_, block)| block.part()));
            continue;
        }
        match (&block, parts.last_mut()) {
            (Some((_, Block::Console { varies })), last) => match (text.strip_prefix("$ "), last) {
                // A backslash at the end of a command continues it on the next line.
                (None, Some(Part::Command { line: command, output, .. }))
                    if output.is_empty() && command.ends_with('\\') =>
                {
                    *command += &format!("\n{text}");
                }
                (Some(command), _) => {
                    parts.push(Part::Command {
                        line: command.to_owned(),
                        output: String::new(),
                        varies: *varies,
                    });
                }
                (None, Some(Part::Command { output, .. })) => output.push_str(line),
                (None, _) => panic!("a console block begins with {text:?}"),
            },
            (Some(_), Some(Part::File { content, .. })) => content.push_str(line),
            (Some(_), Some(Part::Script(lines) | Part::NotRun { lines, .. })) => lines.push_str(line),
            _ => parts.push(Part::Text(line.to_owned())),
        }
    }
    assert!(block.is_none(), "a block does not end");
    parts
}

/// Renders the page from its parts.
pub fn render(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text)
        | Part::File { content: text, .. }
        | Part::Script(text)
        | Part::NotRun { lines: text, .. } => text.clone(),
        Part::Command { line, output, .. } => format!("$ {line}\n{output}"),
    };
    parts.iter().map(text).collect()
}

/// Returns lines outside of code blocks that look like commands, such as indented code blocks of
/// Markdown.
pub fn stray_commands(parts: &[Part]) -> Vec<&str> {
    let lines = parts.iter().filter_map(|part| match part {
        Part::Text(line) => Some(line.as_str()),
        _ => None,
    });
    lines.filter(|line| is_command(line)).collect()
}

fn is_command(line: &str) -> bool {
    let typed = line.trim_start_matches([' ', '$']);
    typed.len() < line.len()
        && typed.starts_with("cairn ")
        && (line.starts_with("    ") || line.starts_with("$ "))
}

/// The evidence for a row of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// A command, or the name of a test or a file.
    pub code: String,
    /// False if the cell says why it is not run: `(not run: WHY)`.
    pub is_run: bool,
}

/// Returns the contents of the last cells of tables whose last column is headed `shown by`. Panics
/// for a row without code.
pub fn shown_by(page: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        let cells: Vec<&str> =
            line.strip_prefix('|').map(|row| row.split('|').map(str::trim).collect()).unwrap_or_default();
        let Some(last) = cells.len().checked_sub(2).and_then(|at| cells.get(at)) else {
            inside = false;
            continue;
        };
        if *last == "shown by" {
            inside = true;
        } else if inside && !last.chars().all(|mark| "-: ".contains(mark)) {
            let is_run = !last.contains("(not run: ");
            let codes = last.split('`').skip(1).step_by(2);
            let before = found.len();
            found.extend(codes.map(|code| Shown { code: code.to_owned(), is_run }));
            assert!(found.len() > before, "nothing shows {line}");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every kind of block is recognized, and rendering restores the page. Method: one of
    /// each.
    #[test]
    fn blocks_are_told_apart() {
        let page = "a\n<!-- given\ntouch x\n-->\n```csv a.csv\nk,v\n```\n```sh\ncairn a \\\n  b\n```\n```console varies\n$ c \\\n  d\n1\n$ e\n```\n\
                    ```sh not-run: takes hours\nf\n```\n```text\n$ g\n```\n";
        let parts = parse(page);
        assert_eq!(render(&parts), page);
        let kinds: Vec<&Part> = parts.iter().filter(|part| !matches!(part, Part::Text(_))).collect();
        let command = |line: &str, output: &str| Part::Command {
            line: line.into(),
            output: output.into(),
            varies: true,
        };
        assert_eq!(
            kinds,
            [
                &Part::Script("touch x\n".into()),
                &Part::File { name: "a.csv".into(), content: "k,v\n".into() },
                &Part::Script("cairn a \\\n  b\n".into()),
                &command("c \\\n  d", "1\n"),
                &command("e", ""),
                &Part::NotRun { lines: "f\n".into(), why: "takes hours".into() },
            ]
        );
    }

    /// Goal: a block that is neither run nor marked is refused, and so is a mark without a reason.
    #[test]
    fn blocks_that_are_neither_are_refused() {
        for fence in ["sh ignore", "console not-run", "sh not-run:", "sh not-run: no", "sh varies"] {
            let page = format!("```{fence}\ncairn kv get a b\n```\n");
            assert!(std::panic::catch_unwind(|| parse(&page)).is_err(), "{fence}");
        }
    }

    /// Goal: commands outside of blocks, and evidence in tables, are found.
    #[test]
    fn stray_commands_and_rows_are_found() {
        let parts =
            parse("text cairn kv\n    $ cairn kv get a b\n    cairn sql x\n```text\n$ cairn y\n```\n");
        assert_eq!(stray_commands(&parts), ["    $ cairn kv get a b\n", "    cairn sql x\n", "$ cairn y\n"]);
        let table = "| a | shown by |\n|---|---|\n| x | `one`, `two` |\n| z | `three` (not run: hours) |\n\n| b | c |\n|---|---|\n| y | `four` |\n";
        let shown = |code: &str, is_run| Shown { code: code.into(), is_run };
        assert_eq!(shown_by(table), [shown("one", true), shown("two", true), shown("three", false)]);
        assert!(
            std::panic::catch_unwind(|| shown_by("| a | shown by |\n|---|---|\n| x | nothing |\n")).is_err()
        );
    }
}
