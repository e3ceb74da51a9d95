//! Runs the commands of the documentation: every command of the book and of the README is run, or
//! states why not.
//!
//! The syntax of pages is documented in [`page`]. `CAIRN_BLESS=1` writes the output of commands
//! into the pages.

mod page;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Scratch;
use page::{Part, Shown, parse, render, shown_by, stray_commands};

/// The variable that makes tests write outputs into pages instead of comparing them.
const BLESS: &str = "CAIRN_BLESS";

/// Defines the list of pages with commands, and a test for each.
macro_rules! pages {
    ($($name:ident = $path:literal),+ $(,)?) => {
        const PAGES: &[&str] = &[$($path),+];
        $(
            #[test]
            fn $name() {
                run_page($path);
            }
        )+
    };
}

pages! {
    readme = "README.md",
    postgres_readme = "bindings/postgres/README.md",
    tutorials = "docs/src/tutorials/README.md",
    tutorial_hash = "docs/src/tutorials/hash.md",
    tutorial_kv = "docs/src/tutorials/kv.md",
    tutorial_pool = "docs/src/tutorials/pool.md",
    tutorial_index = "docs/src/tutorials/index.md",
    tutorial_sql = "docs/src/tutorials/sql.md",
    tutorial_simulator = "docs/src/tutorials/simulator.md",
    tutorial_lab = "docs/src/tutorials/lab.md",
    choose = "docs/src/choose.md",
    tuning = "docs/src/tuning.md",
    command = "docs/src/command.md",
    comparison_simpledb = "docs/src/comparison/simpledb.md",
    comparison_smol = "docs/src/comparison/smol.md",
    comparison_dkv = "docs/src/comparison/dkv.md",
    comparison_rollingstone = "docs/src/comparison/rollingstone.md",
    comparison_sparkey = "docs/src/comparison/sparkey.md",
    comparison_sql_suites = "docs/src/comparison/sql-suites.md",
    hash = "docs/src/engines/hash.md",
    kv_command = "docs/src/engines/kv-command.md",
    kv_benchmark = "docs/src/engines/kv-benchmark.md",
    pool_benchmark = "docs/src/engines/pool-benchmark.md",
    index_benchmark = "docs/src/engines/index-benchmark.md",
    simulator = "docs/src/engines/simulator.md",
    sql = "docs/src/engines/sql.md",
    sql_server = "docs/src/engines/sql-server.md",
    sql_benchmark = "docs/src/engines/sql-benchmark.md",
    advise = "docs/src/engines/advise.md",
    traces = "docs/src/lab/traces.md",
    history = "docs/src/lab/history.md",
    lab_all = "docs/src/lab/all.md",
    lab_ui = "docs/src/lab/ui.md",
    results = "docs/src/benchmarks/results.md",
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Blanks out the parts of an output that differ between runs: times, and checksums, which cover
/// times.
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

/// Returns the output of a shell: standard output and errors, with a line break at the end.
fn printed(scratch: &Scratch, line: &str) -> String {
    let mut output = scratch.shell(&format!("exec 2>&1\n{line}")).text();
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    output
}

/// Runs lines that must succeed.
fn run_well(scratch: &Scratch, path: &str, lines: &str) {
    let ran = scratch.shell(&format!("set -euo pipefail\n{lines}"));
    assert_eq!(ran.code, 0, "{path}:\n{lines}\nprinted: {}\n{}", String::from_utf8_lossy(&ran.out), ran.err);
}

/// Returns true if this build has the features that the lines need.
fn is_built(lines: &str) -> bool {
    cfg!(feature = "sql") || !(lines.contains("cairn sql") || lines.contains("cairn bench sql"))
}

/// Goal: each command of a page works and prints the documented output. Method: all of them in
/// order, in one scratch directory.
fn run_page(path: &str) {
    let file = root().join(path);
    let page = fs::read_to_string(&file).unwrap();
    let mut parts = parse(&page);
    assert_eq!(render(&parts), page);
    let scratch = Scratch::new();
    let mut wrong = Vec::new();
    for part in &mut parts {
        match part {
            Part::Text(_) | Part::NotRun { .. } => {}
            Part::File { name, content } => scratch.write(name, content),
            Part::Script(lines) if is_built(lines) => run_well(&scratch, path, lines),
            Part::Command { line, varies: true, .. } if is_built(line) => run_well(&scratch, path, line),
            Part::Command { line, output, varies: false } if is_built(line) => {
                let printed = printed(&scratch, line);
                if comparable(&printed) != comparable(output) {
                    wrong.push(format!("$ {line}\n{printed}instead of\n{output}"));
                    *output = printed;
                }
            }
            Part::Script(_) | Part::Command { .. } => {}
        }
    }
    for shown in rows(path, &page) {
        show(&scratch, path, &shown);
    }
    if std::env::var_os(BLESS).is_some() {
        fs::write(&file, render(&parts)).unwrap();
    } else {
        assert!(
            wrong.is_empty(),
            "{path}: run with {BLESS}=1 if this is as it should be:\n{}",
            wrong.join("\n")
        );
    }
}

/// Returns the evidence for the rows of a comparison. Other pages have tables of tests with the
/// same heading, in a shorter form.
fn rows(path: &str, page: &str) -> Vec<Shown> {
    if path.contains("/comparison/") { shown_by(page) } else { Vec::new() }
}

/// Checks the evidence for a row of a table: runs our commands, and checks that tests and files
/// exist.
fn show(scratch: &Scratch, path: &str, shown: &Shown) {
    let words: Vec<&str> = shown.code.split_whitespace().collect();
    match words.as_slice() {
        ["!", "cairn", ..] | ["cairn", ..] if shown.is_run && is_built(&shown.code) => {
            run_well(scratch, path, &shown.code)
        }
        ["!", "cairn", ..] | ["cairn", ..] => {}
        ["cargo", "nextest", "run", "-p", package, rest @ ..] => {
            let dir = root().join("crates").join(package.strip_prefix("cairn-").unwrap_or("cli"));
            let (dir, filters) = match rest {
                ["--test", test, filters @ ..] => (dir.join("tests").join(test), filters),
                filters => (dir.join("src"), filters),
            };
            let sources = if dir.is_dir() {
                sources(&dir)
            } else {
                fs::read_to_string(dir.with_extension("rs")).unwrap()
            };
            for filter in filters.iter().flat_map(|filter| filter.split("::")).filter(|name| !name.is_empty())
            {
                let is_there =
                    [format!("mod {filter}"), format!("fn {filter}")].iter().any(|it| sources.contains(it));
                assert!(is_there, "{path}: no test {filter} in {}", dir.display());
            }
        }
        [file] => assert!(root().join(file).exists(), "{path}: no file {file}"),
        _ => panic!("{path}: {}: neither a command of ours, a test nor a file", shown.code),
    }
}

/// Returns all Rust source below a directory.
fn sources(dir: &Path) -> String {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| if path.is_dir() { sources(&path) } else { fs::read_to_string(path).unwrap_or_default() })
        .collect()
}

/// Returns the pages below a directory, as paths relative to the root.
fn markdown(dir: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(dir)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{dir}/{}", entry.file_name().into_string().unwrap());
        if entry.path().is_dir() {
            found.extend(markdown(&path));
        } else if path.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

/// Goal: no page contains commands that are not run. Method: all pages of the book: those with
/// blocks or rows to run are listed above, and no command is in a block that is neither run nor
/// marked.
#[test]
fn no_page_is_forgotten() {
    let listed: BTreeSet<&str> = PAGES.iter().copied().collect();
    assert_eq!(listed.len(), PAGES.len(), "a page is listed twice");
    for path in markdown("docs/src").iter().map(String::as_str).chain(PAGES.iter().copied()) {
        let page = fs::read_to_string(root().join(path)).unwrap();
        let parts = parse(&page);
        let stray = stray_commands(&parts);
        assert!(stray.is_empty(), "{path}: fence these as sh or console: {stray:?}");
        let is_run = parts.iter().any(|part| !matches!(part, Part::Text(_) | Part::File { .. }));
        assert!(
            !is_run && rows(path, &page).is_empty() || listed.contains(path),
            "{path} is not in the list"
        );
    }
}

/// Goal: the page of a command group mentions every command of the group.
#[test]
fn pages_of_commands_are_complete() {
    let scratch = Scratch::new();
    let page = fs::read_to_string(root().join("docs/src/engines/kv-command.md")).unwrap();
    let help = scratch.run("kv --help").ended(0).text();
    let names =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> =
        names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect();
    assert!(names.len() > 12, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("cairn kv {name}")), "the page says nothing of {name}");
    }
}
