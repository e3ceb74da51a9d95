//! What the documentation shows of the command is what the command prints.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Scratch;

/// Set to write the output into the page instead of holding it against the page.
const BLESS: &str = "CAIRN_BLESS";

/// Part of a page.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Anything that is not run, with its line breaks.
    Text(String),
    /// The content of the file that examples begin with.
    File { name: String, content: String },
    /// A command and what stands below it.
    Command { line: String, output: String },
}

/// Takes a page apart. Blocks fenced as `console` hold commands behind `$ ` and their output; a block fenced as `csv NAME` is
/// a file.
fn parse(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut block = None;
    for line in page.split_inclusive('\n') {
        let text = line.trim_end();
        if let Some(info) = text.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(info.to_owned()) };
            parts.push(Part::Text(line.to_owned()));
            if let Some(name) = info.strip_prefix("csv ") {
                parts.push(Part::File { name: name.to_owned(), content: String::new() });
            }
            continue;
        }
        let is_console = block.as_deref() == Some("console");
        match (is_console.then(|| text.strip_prefix("$ ")).flatten(), parts.last_mut()) {
            (Some(command), _) => {
                parts.push(Part::Command { line: command.to_owned(), output: String::new() });
            }
            (None, Some(Part::Command { output, .. })) if is_console => output.push_str(line),
            (None, Some(Part::File { content, .. })) if block.is_some() => content.push_str(line),
            _ => parts.push(Part::Text(line.to_owned())),
        }
    }
    parts
}

/// The page of its parts.
fn render(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) | Part::File { content: text, .. } => text.clone(),
        Part::Command { line, output } => format!("$ {line}\n{output}"),
    };
    parts.iter().map(text).collect()
}

/// Output without what differs from run to run: times of day, and checksums, which cover times.
fn comparable(output: &str) -> String {
    let is_time =
        |word: &str| word.len() == 20 && word.ends_with('Z') && word.as_bytes().get(10) == Some(&b'T');
    let blank = |word: &str| match word.trim_end() {
        time if is_time(time) => word.replace(time, "TIME"),
        checksum if checksum.starts_with("0x") => {
            word.replace(checksum.trim_end_matches([',', ';']), "CHECKSUM")
        }
        _ => word.to_owned(),
    };
    output.split_inclusive(char::is_whitespace).map(blank).collect()
}

/// What a shell shows: standard output and errors, with a line break at the end.
fn run(scratch: &Scratch, line: &str) -> String {
    let mut output = scratch.shell(&format!("exec 2>&1\n{line}")).text();
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    output
}

/// Goal: each command on the page of `cairn kv` works and prints what stands there. Method: all commands of the page, one
/// after the other, in one scratch directory. `CAIRN_BLESS=1` writes what they print into the page.
#[test]
fn kv_page_shows_what_is_printed() {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/engines/kv-command.md");
    let page = fs::read_to_string(&path).unwrap();
    let mut parts = parse(&page);
    assert_eq!(render(&parts), page);
    let scratch = Scratch::new();
    let bless = std::env::var_os(BLESS).is_some();
    let mut wrong = Vec::new();
    let mut commands = 0;
    for part in &mut parts {
        match part {
            Part::Text(_) => {}
            Part::File { name, content } => scratch.write(name, content),
            Part::Command { line, output } => {
                commands += 1;
                let printed = run(&scratch, line);
                if comparable(&printed) != comparable(output) {
                    wrong.push(format!("$ {line}\n{printed}instead of\n{output}"));
                    *output = printed;
                }
            }
        }
    }
    if bless {
        fs::write(&path, render(&parts)).unwrap();
    } else {
        assert!(wrong.is_empty(), "run with {BLESS}=1 if this is as it should be:\n{}", wrong.join("\n"));
    }
    // Every command of the group stands on the page.
    let help = scratch.run("kv --help").ended(0).text();
    let names =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        assert!(page.contains(&format!("cairn kv {name}")), "the page says nothing of {name}");
    }
    assert!(commands > 20, "{commands}");
}
