//! Output files named `-`.

use crate::support::{Ran, Scratch};

const SIM: &str = "--keys 50000 --seconds 60 --rate 5";

/// Creates a trace of a few requests, called `t`.
fn traced() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("requests.csv", "op,key,value_size\nput,a,10\nget,a,\nget,b,\n");
    scratch.run("trace import requests.csv -o t").ended(0);
    scratch
}

/// Goal: `-` is standard output, which gets the same bytes as a file and nothing else; messages of
/// the command go to standard error. Method: each command that writes a text, with `-` and with a
/// file.
#[test]
fn output_named_minus_is_standard_output() {
    let scratch = traced();
    scratch.write("fill.txt", "fillrandom   :       4.500 micros/op 222222 ops/sec;  245.8 MB/s\n");
    scratch.write("report.json", r#"{"versions":[],"comparisons":[],"signs":[],"skipped":[]}"#);
    let vary = "--vary options.write_buffer_size=1MiB,4MiB";
    let lines = [
        ("trace stats t --html".to_owned(), true),
        (format!("sim run {SIM} --export"), true),
        (format!("sim optimize {SIM} {vary} --export"), true),
        (format!("sim sweep {SIM} {vary} -o"), false),
        ("sim calibrate --db-bench fill.txt -o".to_owned(), false),
        ("sim validate --merge report.json --page".to_owned(), true),
        ("advise --read 1 --write-workload".to_owned(), false),
    ];
    for (line, says_more) in lines {
        let Ran { out: said, err: notes, .. } = scratch.run(&format!("{line} file.csv")).ended(0);
        let ran = scratch.run(&format!("{line} -")).ended(0);
        assert!(ran.out == scratch.read("file.csv"), "{line}: {}", ran.text());
        let without_names = |text: String| text.replace("\npage: file.csv\n", "").replace("file.csv\n", "");
        let said = without_names(String::from_utf8(said).unwrap());
        assert_eq!(says_more, !said.is_empty(), "{line}: {said}");
        assert_eq!(ran.err, notes + &said, "{line}");
        std::fs::remove_file(scratch.path("file.csv")).unwrap();
    }
    let there = scratch.names();
    assert!(!there.contains(&"-".to_owned()), "{there:?}");
}

/// Goal: two results never share standard output, and objects that cannot go there are refused
/// before any work.
/// Method: commands whose JSON would go there too; stores, traces and backups.
#[test]
fn two_results_never_share_standard_output() {
    let scratch = traced();
    for line in [
        "trace stats t --json --html -",
        "sim run --json --export -",
        "sim run --show-config --export -",
        "sim optimize --json --export -",
        "sim sweep --json -o -",
        "sim validate --json --page -",
        "bench hash --json --html -",
        "bench all --json --html -",
    ] {
        let option = line.split(' ').rfind(|word| word.starts_with('-') && word.len() > 1).unwrap();
        let option = if option == "-o" { "--out" } else { option };
        scratch.run(line).failed(&[&format!("{option} -: standard output has the ")]);
    }
    for line in [
        "hash build --format csv requests.csv -o -",
        "hash rewrite store -o -",
        "hash convert store -",
        "trace import requests.csv -o -",
        "trace record -o - -- true",
    ] {
        scratch.run(line).failed(&["'-'", "expected the name of a file"]);
    }
    assert_eq!(scratch.names(), ["requests.csv", "t"]);
}
