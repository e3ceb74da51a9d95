//! Goal: the layers of the crate hold, and DataFusion stays behind its seam. Method: the sources,
//! read as text.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the crate, from the ground up. Each may use those before it.
const LAYERS: [&str; 20] = [
    "sqlstate",
    "error",
    "types",
    "datum",
    "column",
    "command_tag",
    "syntax",
    "expr",
    "batch",
    "runtime",
    "direct",
    "rows",
    "session",
    "pg_catalog",
    "general",
    "ddl",
    "copy",
    "executor",
    "outcome",
    "connection",
];

/// Modules that use each other: a database connects, and a connection knows its database.
const TOP: [&str; 2] = ["connection", "database"];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The test of the page of functions, which reads the whole crate.
const PAGE_TEST: &str = "expr/functions/page.rs";

/// The name of the module of the crate that a file belongs to, and its code without comments and
/// tests.
fn code() -> Vec<(String, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let read = |path: &PathBuf| {
        let within = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        let is_tests = within.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
        if within == "lib.rs" || is_tests || within == PAGE_TEST {
            return None;
        }
        let module = within.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(path).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        Some((within, module, code.collect::<Vec<_>>().join("\n")))
    };
    files.iter().filter_map(read).collect()
}

#[test]
fn only_the_general_path_names_datafusion() {
    for (file, module, code) in code() {
        assert!(module == "general" || !code.contains("datafusion"), "{file} names DataFusion");
        let is_top = TOP.contains(&module.as_str());
        assert!(
            module == "general" || is_top || !code.contains("crate::general"),
            "{file} passes by the seam"
        );
    }
}

#[test]
fn modules_use_those_below_them() {
    let rank = |name: &str| match TOP.contains(&name) {
        true => Some(LAYERS.len()),
        false => LAYERS.iter().position(|layer| *layer == name),
    };
    for (file, module, code) in code() {
        let own = rank(&module).unwrap_or_else(|| panic!("{module} has no layer"));
        for used in code.split("crate::").skip(1) {
            let name: String = used
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_')
                .collect();
            let Some(used) = rank(&name) else { continue };
            assert!(used <= own, "{file} uses {name}, which is above it");
        }
    }
}
