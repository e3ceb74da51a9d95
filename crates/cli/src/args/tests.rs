//! Checks that hold for all commands, made by walking over clap's command tree; and a check that
//! every command line in the documentation can be parsed, whether or not a test runs it.
#![allow(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory, Parser};

use std::any::TypeId;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::Cli;
use super::manual::{ENVIRONMENT, EXIT_CODES};
use crate::manual::{AfterHelp, pages};

/// Commands without `--json`, and the reasons.
const NO_JSON: [(&str, &str); 12] = [
    ("cairn bench readme", "writes a page"),
    ("cairn bench render", "writes pages"),
    ("cairn bench report", "writes a page"),
    ("cairn completions", "prints a script"),
    ("cairn kv put", "prints nothing"),
    ("cairn man", "prints a page"),
    ("cairn sim calibrate", "what it prints is JSON"),
    ("cairn sim ui", "serves a page"),
    ("cairn sql backup", "prints nothing"),
    ("cairn sql passwd", "prints nothing"),
    ("cairn sql serve", "serves clients"),
    ("cairn ui", "serves a page"),
];

/// Options for which 0 is a valid number, and its meaning. For sizes it means none, or the minimum.
const ZERO: [(&str, &str); 7] = [
    ("grace", "statements that run are ended at once"),
    ("id", "a backup that there is not"),
    ("limit", "nothing is shown"),
    ("port", "a free one"),
    ("seed", "a seed"),
    ("socket-port", "part of a name"),
    ("statement-timeout", "none, as in PostgreSQL"),
];

/// Options whose kind of value differs between commands, and the meanings.
const OTHER_VALUES: [(&str, &str); 4] = [
    ("keys", "a file with keys, how they are kept, or how many there are"),
    ("listen", "an address with a port, or one beside --port"),
    ("out", "a file, or a store"),
    ("to", "the format of a store, or where a range ends"),
];

/// The kinds of values.
const KINDS: [&str; 28] = [
    "ADDRESS",
    "ADDRESS:PORT",
    "COLUMN",
    "COUNT",
    "DIR",
    "FACTOR",
    "FILE",
    "FORMAT",
    "KEY",
    "MB",
    "NAME",
    "NAME=VALUE",
    "NAMES",
    "NUMBER",
    "OBJECTIVE=MOST",
    "PATH=VALUE",
    "PATH=VALUES",
    "PERCENT",
    "PORT",
    "PROFILE",
    "SCALE",
    "SECONDS",
    "SHARE",
    "SIZE",
    "SIZES",
    "SPEED",
    "SQL",
    "TIME",
];

/// Kinds that only one or two options have.
const RARE_KINDS: [&str; 6] = ["K/N", "RUN", "STORE", "TEXT", "URL", "WORD"];

/// The maximum line length of clap's output if it does not know the terminal's width.
const LINE_MAX: usize = 100;

/// Returns every command that is not hidden, with the words that select it.
fn commands() -> Vec<(String, Command)> {
    fn collect(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        found.push((path.to_owned(), command.clone()));
        for below in
            command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
        {
            collect(below, &format!("{path} {}", below.get_name()), found);
        }
    }
    let mut root = Cli::command();
    root.build();
    let mut found = Vec::new();
    collect(&root, "cairn", &mut found);
    assert!(found.len() > 40, "{}", found.len());
    found
}

/// Returns the options of a command, except those that every command has.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|arg| arg.get_long().is_some_and(|name| name != "help" && name != "version"))
}

/// Fails with all mistakes, if there are any.
#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Goal: clap's own checks find no contradiction among the arguments.
#[test]
fn arguments_are_consistent() {
    Cli::command().debug_assert();
}

/// Returns the error about an option's value; empty if the value is accepted.
fn said_of(path: &str, option: &Arg, value: &str) -> String {
    let line = format!("{path} --{} {value}", option.get_long().unwrap());
    match Cli::typed(line.split(' ').map(Into::into)) {
        // Other arguments may be missing, but the value is accepted.
        Ok(_) => String::new(),
        Err(error) if !matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) => {
            String::new()
        }
        Err(error) => error.to_string(),
    }
}

/// Goal: an invalid number is refused with the name of its option and the expected values. Method:
/// for every option that takes a number or an address: a word, a negative number where it is
/// invalid, and 0 unless that is listed as valid.
#[test]
fn numbers_are_refused_by_name() {
    let (mut wrong, mut count, mut zeros) = (Vec::new(), 0, BTreeSet::new());
    for (path, command) in commands() {
        for option in options(&command) {
            let kind = option.get_value_parser().type_id();
            let is_whole = kind == TypeId::of::<u16>()
                || kind == TypeId::of::<u32>()
                || kind == TypeId::of::<u64>()
                || kind == TypeId::of::<usize>()
                || kind == TypeId::of::<Duration>();
            let is_other = kind == TypeId::of::<f64>()
                || kind == TypeId::of::<i32>()
                || kind == TypeId::of::<IpAddr>()
                || kind == TypeId::of::<SocketAddr>();
            let name = format!("--{}", option.get_long().unwrap());
            let is_zero = |value: &str| value == "0";
            let excepted = ZERO.iter().any(|(known, _)| name == format!("--{known}"));
            let is_size = option.get_value_names().unwrap_or_default().iter().any(|kind| kind == "SIZE");
            let values = ["-1", "word", "0"].into_iter().filter(|value| !(is_size && is_zero(value)));
            for value in values.filter(|value| is_whole || is_other && *value == "word") {
                count += 1;
                let said = said_of(&path, option, value);
                if is_zero(value) && said.is_empty() && excepted {
                    zeros.insert(name.clone());
                } else if !said.contains(&format!("'{value}' for '{name} <")) || !said.contains("expected") {
                    wrong.push(format!("{path} {name} {value}: {said:?}"));
                }
            }
        }
    }
    assert!(count > 100, "{count}");
    let needless = ZERO.iter().filter(|(name, _)| !zeros.contains(&format!("--{name}")));
    wrong.extend(needless.map(|(name, _)| format!("--{name} never takes 0")));
    none(&wrong);
}

/// Goal: an unknown name is refused with the name of its option and the known names. Method: an
/// unknown name for every option that takes names of a list; platforms may have any name.
#[test]
fn names_are_refused_by_name() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (path, command) in commands() {
        for option in options(&command).filter(|option| option.get_long() != Some("platforms")) {
            let kind = option.get_value_names().unwrap_or_default();
            if !kind.iter().any(|kind| kind == "NAMES") {
                continue;
            }
            count += 1;
            let (name, said) = (option.get_long().unwrap(), said_of(&path, option, "nosuch"));
            let is_listed = said.contains(": expected one of ") || said.contains("[possible values: ");
            if !said.contains(&format!("'nosuch' for '--{name} <")) || !is_listed {
                wrong.push(format!("{path} --{name}: {said:?}"));
            }
        }
    }
    assert!(count >= 8, "{count}");
    none(&wrong);
}

/// Goal: every command states its purpose and shows examples, in a uniform format. Method: the
/// first line is a phrase without a full stop; the examples come first after the options, name the
/// command, and can be parsed; exit codes are in a uniform sentence.
#[test]
fn every_command_explains_itself() {
    let mut wrong = Vec::new();
    for (path, command) in commands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let is_phrase = about.starts_with(|first: char| first.is_uppercase()) && !about.ends_with('.');
        if !is_phrase && path != "cairn" || about.is_empty() {
            wrong.push(format!("{path}: about: {about:?}"));
        }
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let after_help = AfterHelp::of(&command);
        let examples = after_help.examples.unwrap_or_default();
        // `cairn kv bench` is an alias of `cairn bench kv`.
        let shown = path
            .strip_suffix(" bench")
            .filter(|it| *it != "cairn")
            .map_or(path.clone(), |it| it.replacen("cairn", "cairn bench", 1));
        if !help.starts_with("Example") || !examples.contains(&shown) {
            wrong.push(format!("{path}: no examples after its options"));
        }
        let joined = examples.replace("\\\n", " ");
        let calls: Vec<Vec<String>> = joined.lines().flat_map(words_of).collect();
        wrong.extend(calls.iter().filter_map(|words| mistake(words)));
        wrong.extend(calls.iter().filter_map(|words| hidden(words)));
        let wide = help.lines().filter(|line| line.chars().count() > LINE_MAX);
        wrong.extend(wide.map(|line| format!("{path}: a terminal would break {line:?}")));
        let is_list = |codes: &str| codes.starts_with("0 ") && codes.contains(", 1 ") && codes.ends_with('.');
        if after_help.exit_codes.as_deref().is_some_and(|codes| !is_list(codes)) {
            wrong.push(format!("{path}: exit codes: {:?}", after_help.exit_codes));
        }
    }
    none(&wrong);
}

/// Returns the first word of a command line that help does not show: a hidden alias of a command or
/// an option, kept for compatibility.
fn hidden(words: &[String]) -> Option<String> {
    let mut command = Cli::command();
    command.build();
    for word in words.iter().skip(1).take_while(|word| *word != "--") {
        if let Some(below) = command.find_subcommand(word).filter(|below| below.get_name() != "help") {
            if below.get_name() != word && !below.get_visible_aliases().any(|alias| alias == word) {
                return Some(format!("{}: help shows no command {word:?}", words.join(" ")));
            }
            command = below.clone();
        } else if let Some(long) = word.strip_prefix("--").and_then(|word| word.split('=').next()) {
            let is_shown = |arg: &Arg| {
                arg.get_long() == Some(long)
                    || arg.get_visible_aliases().is_some_and(|aliases| aliases.contains(&long))
            };
            if !command.get_arguments().any(is_shown) {
                return Some(format!("{}: help shows no option --{long}", words.join(" ")));
            }
        }
    }
    None
}

/// Goal: every option has a description and a value name that is shared by all options of the same
/// kind.
#[test]
fn every_option_explains_itself() {
    let mut wrong = Vec::new();
    for (path, command) in commands() {
        for option in options(&command) {
            let name = option.get_long().unwrap_or_default();
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            if help.is_empty() || help.ends_with('.') {
                wrong.push(format!("{path} --{name}: help: {help:?}"));
            }
            let takes = option.get_action().takes_values() && option.get_possible_values().is_empty();
            let kinds = option.get_value_names().unwrap_or_default();
            let is_known =
                kinds.iter().all(|kind| KINDS.iter().chain(&RARE_KINDS).any(|known| kind == known));
            if takes && (kinds.is_empty() || !is_known) {
                wrong.push(format!("{path} --{name}: its value is called {kinds:?}"));
            }
        }
    }
    none(&wrong);
}

/// Goal: one name has one meaning. Method: options of one name take the same kind of value
/// everywhere, and so do letters; exceptions are listed with their reasons, and are still
/// exceptions.
#[test]
fn option_names_have_one_meaning() {
    let mut kinds: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut letters: BTreeMap<char, BTreeSet<String>> = BTreeMap::new();
    for (path, command) in commands() {
        for option in options(&command) {
            let name = option.get_long().unwrap_or_default().to_owned();
            let kind = if option.get_action().takes_values() {
                format!("{:?}", option.get_value_names().unwrap_or_default())
            } else {
                String::new()
            };
            letters.entry(option.get_short().unwrap_or('-')).or_default().insert(name.clone());
            kinds.entry(name).or_default().insert(kind, path.clone());
        }
    }
    letters.remove(&'-');
    let mut wrong: Vec<String> =
        letters.iter().filter(|(_, names)| names.len() > 1).map(|it| format!("{it:?}")).collect();
    let excepted = |name: &str| OTHER_VALUES.iter().any(|(known, _)| *known == name);
    wrong.extend(
        kinds.iter().filter(|(name, kinds)| kinds.len() > 1 && !excepted(name)).map(|it| format!("{it:?}")),
    );
    #[cfg(all(feature = "sql", feature = "ui"))]
    wrong.extend(
        OTHER_VALUES
            .iter()
            .filter(|(name, _)| kinds.get(*name).is_none_or(|kinds| kinds.len() < 2))
            .map(|(name, _)| format!("--{name} takes one kind of value everywhere")),
    );
    none(&wrong);
}

/// Goal: what is the same everywhere is described in the same words. Method: the directory of
/// measurements, with its single default; options with repeated values; random choices.
#[test]
fn equal_options_have_equal_descriptions() {
    let (mut wrong, mut work_dirs) = (Vec::new(), BTreeSet::new());
    for (path, command) in commands() {
        for option in options(&command) {
            let name = option.get_long().unwrap_or_default();
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            if name == "work-dir" {
                work_dirs.insert(help.clone());
            }
            if name == "seed" && !help.starts_with("Seed of ") || help.contains("can be repeated") {
                wrong.push(format!("{path} --{name}: {help}"));
            }
        }
    }
    assert_eq!(work_dirs.len(), 1, "{work_dirs:?}");
    none(&wrong);
}

/// Goal: the help of the simulator's options states the actual defaults. Method: its default
/// configuration against the help.
#[test]
fn defaults_of_the_simulator_are_reported() {
    let config = cairn_sim::Config::default();
    let cairn_sim::traffic::Traffic::Constant { mb_per_sec } = config.workload.traffic else {
        panic!("{config:?}")
    };
    let defaults = [
        ("rate", mb_per_sec.to_string()),
        ("keys", config.workload.keys.to_string()),
        ("seconds", config.duration_secs.to_string()),
        ("cache-size", format!("{}MiB", config.options.block_cache_size >> 20)),
        ("seed", config.seed.to_string()),
        ("hardware", format!("{} cores and an NVMe drive", config.hardware.cores)),
        ("workload", format!("writes of {} bytes to keys drawn uniformly", config.workload.value_bytes)),
    ];
    assert_eq!(config.workload.distribution, cairn_sim::Distribution::Uniform);
    assert!(config.hardware.name.contains("NVMe"), "{}", config.hardware.name);
    let (_, run) = commands().into_iter().find(|(path, _)| path == "cairn sim run").unwrap();
    for (name, default) in defaults {
        let option = options(&run).find(|option| option.get_long() == Some(name)).unwrap();
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.ends_with(&format!(" else {default}]")), "--{name}: {help}, {default}");
    }
}

/// Goal: every command that reports something can report it as JSON. Method: every leaf command has
/// `--json`, except those listed.
#[test]
fn every_report_has_json() {
    let mut wrong = Vec::new();
    for (path, command) in commands() {
        let is_leaf = command.get_subcommands().filter(|below| !below.is_hide_set()).count() == 0;
        let has = options(&command).any(|option| option.get_long() == Some("json"));
        let excepted = NO_JSON.iter().any(|(known, _)| *known == path);
        if is_leaf && has == excepted {
            wrong.push(format!(
                "{path}: {}",
                if has { "is listed as without --json and has it" } else { "has no --json" }
            ));
        }
    }
    none(&wrong);
}

/// Goal: all suites take the same options for the same purposes. Method: each suite has the options
/// that every run needs.
#[test]
fn suites_take_the_same_options() {
    let mut wrong = Vec::new();
    for (path, command) in commands()
        .iter()
        .filter(|(_, command)| command.get_arguments().any(|arg| arg.get_long() == Some("time-limit")))
    {
        for name in ["work-dir", "results", "html", "json"] {
            if !options(command).any(|option| option.get_long() == Some(name)) {
                wrong.push(format!("{path} has no --{name}"));
            }
        }
    }
    none(&wrong);
}

/// Goal: cases are selected with the same option everywhere, and also with a plain word where that
/// came first. Method: every command that takes a word also takes the option, with the same effect.
#[test]
fn cases_are_chosen_in_one_way() {
    let mut wrong = Vec::new();
    for (path, command) in commands() {
        let takes_word = command.get_positionals().any(|arg| arg.get_id() == "filter");
        if takes_word && !options(&command).any(|option| option.get_long() == Some("filter")) {
            wrong.push(format!("{path} has no --filter"));
        }
    }
    none(&wrong);
    let pairs = [
        ("bench hash put", "bench hash --filter put"),
        ("hash bench put", "hash bench --filter put"),
        ("bench counts put", "bench counts --filter put"),
        ("bench pool 50 12 put", "bench pool --filter put 50 12"),
        ("bench sql 50 put", "bench sql --filter put"),
    ];
    for (word, option) in pairs {
        let [word, option] = [word, option].map(|line| {
            let words = format!("cairn {line}");
            format!("{:?}", Cli::typed(words.split(' ').map(Into::into)).unwrap())
        });
        assert_eq!(word, option);
    }
    for both in ["bench hash put --filter get", "bench sql --filter put --pgbench 1"] {
        let words = format!("cairn {both}");
        assert!(Cli::typed(words.split(' ').map(Into::into)).is_err(), "{both}");
    }
}

/// Goal: an option without effect is refused rather than ignored. Method: each such option without,
/// or next to, the option that it depends on.
#[test]
fn options_without_effect_are_refused() {
    let lines = [
        "sim run --family hot",
        "sim run --family hot --kv-options kv.json",
        "sim run --show-config --replay-cache 5",
        "sim validate --merge a.json --library lib.so",
        "sim validate --merge a.json --work-dir w",
        "sim calibrate --log LOG --work-dir w",
        "sim calibrate --db-bench out --work-dir w",
        "bench pool 50 12 --docs docs",
        "bench history --runs --last 3",
        #[cfg(feature = "sql")]
        "sql serve my.db --socket-port 5433",
    ];
    for line in lines {
        let words = format!("cairn {line}");
        assert!(Cli::typed(words.split(' ').map(Into::into)).is_err(), "{line}");
    }
}

/// Goal: published spellings stay valid forever. Method: each old spelling next to the new one.
#[test]
fn old_spellings_are_understood() {
    let lines = [
        "cairn sim sweep --vary seed=1,2 --output a.csv",
        "cairn sim calibrate --output a.json --dir .",
        "cairn sim validate --only fifo",
        "cairn advise --read 1 --stores cairn",
        "cairn bench replay a.trace --engines cairn",
        "cairn bench hash --report a.html",
        "cairn bench kv --n=10000000 --batch=50000 --threads=20 --ops-per-threads=500000 --modes=seq,rand,batch,mt,sync-seq,sync-rand --sync-n=1000",
        "cairn bench kv --n=1000000 --batch=50000 --threads=8 --ops-per-thread=200000 --sync-n=10000 --dbs=cairn,sqlite,leveldb",
        "cairn bench pool 50 12",
        "cairn bench pool 50 12 'Random (K=10,'",
        "cairn bench pool 100 12 pin:t8",
        "cairn bench pool 200 12 hotset:t8_k4",
        "cairn bench pool 50 12 --json Random",
        "cairn bench sql 50",
        "cairn bench sql 50 INSERT",
        "cairn bench sql 100 SELECT",
        "cairn hash bench --quick",
        "cairn hash bench --full",
        #[cfg(feature = "sql")]
        "cairn sql --cache 1GiB a.db",
        #[cfg(feature = "sql")]
        "cairn sql check a.db",
    ];
    none(&lines.into_iter().flat_map(words_of).filter_map(|words| mistake(&words)).collect::<Vec<_>>());
}

/// Goal: every command has a man page with the complete help. Method: the pages of all commands,
/// with all of their parts.
#[test]
fn every_command_has_a_man_page() {
    let pages = pages().unwrap();
    let commands = commands();
    assert_eq!(pages.len(), commands.len());
    for (path, command) in &commands {
        let name = path.replace(' ', "-");
        let page = pages.iter().find(|page| page.name == name).unwrap_or_else(|| panic!("no page {name}"));
        let text = String::from_utf8(page.text.clone()).unwrap();
        for part in
            [".TH", ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH EXAMPLES", ".SH \"EXIT STATUS\""]
        {
            assert!(text.contains(part), "{name}: no {part}");
        }
        for (code, _) in EXIT_CODES {
            assert!(text.contains(&format!(".TP\n{code}\n")), "{name}: no exit code {code}");
        }
        for option in options(command).filter(|option| !option.is_hide_set()) {
            let long = option.get_long().unwrap_or_default().replace('-', "\\-");
            assert!(text.contains(&format!("\\-\\-{long}")), "{name}: nothing of --{long}");
        }
    }
}

/// Goal: every command line in the documentation can be parsed, even if no test can run it. Method:
/// the command lines of all code blocks, and the code in the tables' `shown by` columns, are split
/// like a shell does and given to the parser.
#[test]
fn documentation_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = markdown(&root.join("docs/src"));
    files.extend(
        ["README.md", "bindings/postgres/README.md", "testing/differential/README.md"]
            .map(|name| root.join(name)),
    );
    let mut wrong = Vec::new();
    let mut lines = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for words in typed(&text).iter().flat_map(|line| words_of(line)) {
            lines += 1;
            wrong.extend(mistake(&words).map(|mistake| format!("{}: {mistake}", file.display())));
        }
    }
    assert!(lines > 150, "{lines}");
    none(&wrong);
}

/// Goal: the documentation of the command lists the same environment variables as the man pages.
/// Method: the names in its table.
#[test]
fn variables_are_on_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/command.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once("## Environment").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
    let named: BTreeSet<&str> =
        rows.flat_map(|(names, _)| names.trim_end_matches('`').split("`, `")).collect();
    assert_eq!(named, ENVIRONMENT.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>());
}

/// Goal: the map of the crates is correct. Method: each crate has a line on it, and a crate's
/// dependencies are below it.
#[test]
fn the_map_of_crates_is_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/src/introduction.md")).unwrap();
    let (_, map) = page.split_once("## How the parts fit").unwrap();
    let map: Vec<&str> = map.split("```").nth(1).unwrap().lines().collect();
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(manifest) = fs::read_to_string(dir.join("Cargo.toml")) else { continue };
        let name = dir.file_name().unwrap().to_str().unwrap();
        let place = |name: &str| map.iter().position(|line| line.split(' ').next() == Some(name));
        let Some(own) = place(name) else {
            wrong.push(format!("{name} is not on the map"));
            continue;
        };
        let built_on = manifest.split("\n[").filter(|table| table.starts_with("dependencies]"));
        for line in built_on.flat_map(str::lines).filter_map(|line| line.strip_prefix("cairn-")) {
            let below = line.split([' ', '.', '=']).next().unwrap();
            if place(below).is_none_or(|place| place <= own) {
                wrong.push(format!("{name} is built on {below}, which is not below it"));
            }
        }
    }
    none(&wrong);
}

/// Returns the command lines of a page: lines of blocks, joined at backslashes, and code in the
/// last cells of tables.
fn typed(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside = None;
    for line in page.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let language = info.split(' ').next().unwrap_or_default().to_owned();
            inside = if inside.is_some() { None } else { Some(language) };
            continue;
        }
        match inside.as_deref() {
            Some("sh" | "console") => match found.last_mut().filter(|last| last.ends_with('\\')) {
                Some(last) => {
                    last.pop();
                    last.push_str(line);
                }
                None if inside.as_deref() == Some("sh") => found.push(line.to_owned()),
                None => found.extend(line.strip_prefix("$ ").map(str::to_owned)),
            },
            None if line.starts_with('|') => {
                let codes = line
                    .split('`')
                    .skip(1)
                    .step_by(2)
                    .filter(|code| code.starts_with("cairn ") && code.contains(['-', '.']));
                found.extend(
                    codes.filter(|code| !code.contains("NAME") && !code.contains('…')).map(str::to_owned),
                );
            }
            _ => {}
        }
    }
    found
}

/// Returns the calls of `cairn` in a shell line, each split into words.
fn words_of(line: &str) -> Vec<Vec<String>> {
    let mut calls = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '|' | '&' | ';' | '(' | ')') => {
                if let (Some(word), Some(call)) = (word.take(), calls.last_mut()) {
                    call.push(word);
                }
                if character != ' ' {
                    calls.push(Vec::new());
                }
            }
            (None, '>' | '<') => {
                // A number before a redirection is a file descriptor; the name after it is not an
                // argument.
                word = word.filter(|word| word.parse::<u8>().is_err());
                if let (Some(word), Some(call)) = (word.take(), calls.last_mut()) {
                    call.push(word);
                }
                while characters.next_if(|next| ">& ".contains(*next)).is_some() {}
                while characters.next_if(|next| !" |&;".contains(*next)).is_some() {}
            }
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    if let (Some(word), Some(call)) = (word, calls.last_mut()) {
        call.push(word);
    }
    calls.retain(|call| call.first().is_some_and(|first| first == "cairn"));
    calls
}

/// Returns the parser's error about a call. Help and version are not errors.
fn mistake(words: &[String]) -> Option<String> {
    let second = words.get(1).map(String::as_str);
    let is_built = (cfg!(feature = "sql") || second != Some("sql"))
        && (cfg!(feature = "ui") || words.get(2).map(String::as_str) != Some("ui"));
    let error = Cli::try_parse_from(words).err().filter(|error| is_built && error.use_stderr())?;
    Some(format!("{}: {error}", words.join(" ")))
}

fn markdown(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { markdown(&path) } else { vec![path] };
    entries.flat_map(below).filter(|path| path.extension().is_some_and(|it| it == "md")).collect()
}

/// Goal: command lines are split as a shell does. Method: quotes, comments, pipes, lists,
/// redirections.
#[test]
fn command_lines_are_split_as_a_shell_does() {
    let line =
        "printf 'a b' | cairn kv batch \"x y\" 2>&1 > out; cairn hash get a 'b c' && echo no # cairn kv";
    let words = |line: &[&str]| line.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    assert_eq!(
        words_of(line),
        [words(&["cairn", "kv", "batch", "x y"]), words(&["cairn", "hash", "get", "a", "b c"])]
    );
}
