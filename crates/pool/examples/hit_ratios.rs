//! Hit ratios of the policies on the traces in a directory, as Markdown tables.
//!
//! `cargo run --release -p cairn-pool --example hit_ratios -- FOLDER [PERCENT ...]` reads every
//! file in the directory whose name ends in `.txt` or `.txt.gz` (unpacked with `gzip`), with one
//! page number per line. The percentages are relative to the trace's distinct pages; default 1 2 5
//! 10 20.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods, reason = "a command")]

use std::process::Command;

use cairn_pool::PolicyKind;
use cairn_pool::replay::{Trace, table};

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(folder) = args.next() else {
        println!("expected a folder of traces");
        return;
    };
    let mut percents: Vec<f64> = args.map(|arg| arg.parse().unwrap()).collect();
    if percents.is_empty() {
        percents = vec![1.0, 2.0, 5.0, 10.0, 20.0];
    }
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = if name.ends_with(".txt.gz") {
            Command::new("gzip").arg("-dc").arg(&file).output().unwrap().stdout
        } else if name.ends_with(".txt") {
            std::fs::read(&file).unwrap()
        } else {
            continue;
        };
        let trace = Trace::parse(&String::from_utf8(text).unwrap()).unwrap();
        print(name.split('.').next().unwrap(), &trace, &percents);
    }
}

fn print(name: &str, trace: &Trace, percents: &[f64]) {
    println!("\n**{name}**: {} requests for {} pages\n", trace.len(), trace.distinct());
    let capacities: Vec<usize> = percents.iter().map(|&percent| trace.frames_at(percent)).collect();
    let rows = table(trace, &PolicyKind::ALL, &capacities);
    print!("| frames |");
    PolicyKind::ALL.iter().for_each(|kind| print!(" {} |", kind.title()));
    println!(" Belady |");
    println!("|{}", "---:|".repeat(PolicyKind::ALL.len() + 2));
    for (row, percent) in rows.iter().zip(percents) {
        print!("| {} ({percent} %) |", row.capacity);
        let best = row.policies.iter().map(|(_, outcome)| outcome.hits).max().unwrap();
        for (_, outcome) in &row.policies {
            let ratio = 100.0 * outcome.hit_ratio();
            if outcome.hits == best { print!(" **{ratio:.1}** |") } else { print!(" {ratio:.1} |") }
        }
        println!(" {:.1} |", 100.0 * row.optimum.hit_ratio());
    }
}
