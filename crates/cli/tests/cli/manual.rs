//! Man pages and completions, and their installation.

use std::path::Path;
use std::process::Command;

use crate::support::Scratch;

/// Goal: a page is written for every command, and the first one is printed. Method: the names of
/// all pages; the page of a command two levels down.
#[test]
fn man_pages_are_written() {
    let scratch = Scratch::new();
    assert!(scratch.run("man").ended(0).text().contains(".TH cairn 1"));
    let said = scratch.run("man pages/man1").ended(0).text();
    let names: Vec<_> = std::fs::read_dir(scratch.path("pages/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(names.len() > 40 && said.contains(&format!("{} pages", names.len())), "{said} {names:?}");
    let page = String::from_utf8(scratch.read("pages/man1/cairn-kv-backup-purge.1")).unwrap();
    for part in ["cairn kv backup purge", "\\-\\-keep", ".SH EXAMPLES", ".SH \"EXIT STATUS\""] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    scratch.write("file", "");
    scratch.run("man file/below").failed(&["file"]);
}

/// Goal: each shell gets a script that knows commands two levels down and their options.
#[test]
fn completions_are_printed() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = scratch.run(&format!("completions {shell}")).ended(0).text();
        for word in ["backup", "purge", "durability"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    scratch.run("completions tcsh").failed(&["tcsh", "bash"]);
}

/// Goal: bash completes commands. Method: the script is loaded and its function called, as bash
/// does.
#[test]
fn bash_completes() {
    let scratch = Scratch::new();
    let asked = "source <(cairn completions bash)\nCOMP_WORDS=(cairn kv sta) COMP_CWORD=2\n_cairn cairn sta kv\necho \"${COMPREPLY[@]}\"";
    assert_eq!(scratch.shell(asked).ended(0).text().trim(), "stats");
}

/// Goal: `make install` installs the command with its man pages and completions. Method: its
/// script, with the program under test.
#[test]
fn install_writes_all_man_pages_and_completions() {
    let scratch = Scratch::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install");
    let ran =
        Command::new(script).arg(scratch.path("usr")).arg(env!("CARGO_BIN_EXE_cairn")).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let there = [
        "bin/cairn",
        "share/man/man1/cairn.1",
        "share/man/man1/cairn-bench-kv.1",
        "share/bash-completion/completions/cairn",
        "share/zsh/site-functions/_cairn",
        "share/fish/vendor_completions.d/cairn.fish",
    ];
    for file in there {
        assert!(scratch.read(&format!("usr/{file}")).len() > 100, "{file}");
    }
}
