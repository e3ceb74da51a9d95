//! A page of the documentation, taken apart into what is run and what is not.
//!
//! | fence | what happens |
//! |---|---|
//! | `console` | each command behind `$ ` is run, and must print what stands below it |
//! | `console varies` | each is run and must end well; figures below it differ from machine to machine |
//! | `sh` | the block is run as one script, which must end well |
//! | `sh not-run: WHY`, `console not-run: WHY` | nothing is run, for this reason |
//! | `csv NAME`, `json NAME`, `jsonl NAME`, `sql NAME`, `ini NAME` | a file that the commands below find |
//!
//! A comment that begins with `<!-- given` is a script that makes what a reader would have: it is
//! run and not shown. All of a page runs in one scratch directory, from top to bottom.

/// Fences of files.
const FILES: [&str; 5] = ["csv", "json", "jsonl", "sql", "ini"];

/// Begins a comment with a script.
const GIVEN: &str = "<!-- given";

/// Part of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// Anything that is not run, with its line breaks.
    Text(String),
    /// The content of the file that examples begin with.
    File { name: String, content: String },
    /// A command and what stands below it. What it prints is compared, unless it varies.
    Command { line: String, output: String, varies: bool },
    /// Lines that are run together.
    Script(String),
    /// Lines that are not run, and why.
    NotRun { lines: String, why: String },
}

/// What the lines of a block are.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    File(String),
    Console { varies: bool },
    Script,
    NotRun(String),
    Other,
}

impl Block {
    /// By what stands behind the fence. Panics where that is no way to say it.
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

    /// The part that begins with it.
    fn part(&self) -> Option<Part> {
        match self {
            Block::File(name) => Some(Part::File { name: name.clone(), content: String::new() }),
            Block::Script => Some(Part::Script(String::new())),
            Block::NotRun(why) => Some(Part::NotRun { lines: String::new(), why: why.clone() }),
            Block::Console { .. } | Block::Other => None,
        }
    }
}

/// Takes a page apart.
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
                // A backslash at the end of a command takes the next line along.
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

/// The page of its parts.
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

/// Lines outside of blocks that look like something to type: indented, as Markdown's other kind of
/// block.
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

/// What shows that a row of a table is so.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// A command, or the name of a file.
    pub code: String,
    /// False where the cell says why it is not run: `(not run: WHY)`.
    pub is_run: bool,
}

/// What stands in the last cells of the tables whose last column is headed `shown by`. A row
/// without code there is a mistake.
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

    /// Goal: every kind of block becomes what is done with it, and the page comes out again.
    /// Method: one of each.
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

    /// Goal: a block that is neither run nor marked is a mistake, and so is a mark without a
    /// reason.
    #[test]
    fn blocks_that_are_neither_are_refused() {
        for fence in ["sh ignore", "console not-run", "sh not-run:", "sh not-run: no", "sh varies"] {
            let page = format!("```{fence}\ncairn kv get a b\n```\n");
            assert!(std::panic::catch_unwind(|| parse(&page)).is_err(), "{fence}");
        }
    }

    /// Goal: what stands outside of blocks, and in tables, is found.
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
