//! Costs of operations from what db_bench prints and from the statistics in RocksDB's `LOG`.

use crate::error::{Error, Result};
use crate::hardware::Hardware;

/// Takes write and read costs out of db_bench's output. Returns what was taken, for people.
///
/// Errors: no benchmark in it; lookups of an empty store, which say nothing.
pub fn apply_db_bench(hardware: &mut Hardware, text: &str, file: &str) -> Result<Vec<String>> {
    let mut taken = Vec::new();
    let mut found_any = false;
    for (at, line) in text.lines().enumerate() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let name = name.trim();
        let Some(micros) = number_before(rest, "micros/op") else { continue };
        found_any = true;
        if let Some((found, of)) = found_of(line)
            && found == 0.0
            && of > 0.0
        {
            let what =
                format!("{name} found 0 of {of} keys: it ran on an empty store, and is no measurement");
            return Err(Error::parse(file, at + 1, what));
        }
        match name {
            "fillseq" | "fillrandom" | "overwrite" | "filluniquerandom" => {
                hardware.cpu.put_us = micros;
                taken.push(format!("{name}: a write takes {micros} us"));
            }
            "readrandom" | "readhot" => {
                let parts = hardware.cpu.get_us + hardware.cpu.filter_us + hardware.cpu.block_hit_us;
                let factor = micros / parts.max(1e-9);
                hardware.cpu.get_us *= factor;
                hardware.cpu.filter_us *= factor;
                hardware.cpu.block_hit_us *= factor;
                taken.push(format!("{name}: a cached lookup takes {micros} us"));
            }
            _ => {}
        }
    }
    if !found_any {
        return Err(Error::parse(file, 1, "no line with micros/op: is this db_bench's output?"));
    }
    hardware.source = format!("db_bench: {}", taken.join("; "));
    Ok(taken)
}

/// `(206545 of 1000000 found)`.
fn found_of(line: &str) -> Option<(f64, f64)> {
    let inside = line.get(line.find('(')? + 1..line.find(" found)")?)?;
    let (found, of) = inside.split_once(" of ")?;
    Some((found.trim().parse().ok()?, of.trim().parse().ok()?))
}

/// The number that stands before a unit.
fn number_before(text: &str, unit: &str) -> Option<f64> {
    let head = text.get(..text.find(unit)?)?;
    head.split_whitespace().next_back()?.parse().ok()
}

/// Takes the cost of a merged byte out of the last table of compaction statistics in a `LOG`.
///
/// Errors: there is none, or nothing was compacted.
pub fn apply_log(hardware: &mut Hardware, text: &str, file: &str) -> Result<Vec<String>> {
    let mut columns: Vec<&str> = Vec::new();
    let mut last = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"Level") && words.contains(&"Comp(sec)") {
            columns = words;
        } else if words.first() == Some(&"Sum") {
            last = Some((words, columns.clone()));
        }
    }
    let missing = |what: &str| Error::parse(file, text.lines().count().max(1), what);
    let (words, columns) = last.ok_or_else(|| missing("no table of compaction statistics"))?;
    // `Size` takes two words in a line, number and unit, and one in the head.
    let column = |name: &str| {
        let at = columns.iter().position(|column| *column == name)?;
        let shift = usize::from(words.len() > columns.len());
        words.get(at + shift).and_then(|word| word.parse::<f64>().ok())
    };
    let read = column("Read(GB)").ok_or_else(|| missing("no column Read(GB)"))?;
    let secs = column("CompMergeCPU(sec)").filter(|secs| *secs > 0.0).or_else(|| column("Comp(sec)"));
    let secs = secs.ok_or_else(|| missing("no column Comp(sec)"))?;
    if read <= 0.0 || secs <= 0.0 {
        return Err(missing("nothing was compacted: let it run for longer"));
    }
    let ns = secs * 1e9 / (read * 1073741824.0);
    hardware.cpu.compact_entry_us = 0.0;
    hardware.cpu.compact_byte_ns = ns;
    hardware.source = format!("RocksDB LOG: {secs:.1} s of processor for {read:.1} GB read by compactions");
    Ok(vec![format!("LOG: merging a byte takes {ns:.2} ns")])
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENCH: &str = "\
fillseq      :       2.640 micros/op 378787 ops/sec 2.640 seconds 1000000 operations;  367.0 MB/s
readrandom   :       3.080 micros/op 324625 ops/sec 3.08 seconds 1000000 operations; 65.0 MB/s (632199 of 1000000 found)
";

    const LOG: &str = "\
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) Wnew(GB) Moved(GB) W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)
----
  L0      2/0   15.26 MB   0.5      0.0     0.0      0.0       2.8      2.8       0.0   1.0      0.0    170.0     17.10             12.00       100    0.171       0      0       0.0       0.0
 Sum     10/0   1.20 GB   0.0     10.0     2.8      7.2      12.5      5.3       0.0   4.4    170.0    212.0     60.20             43.00       150    0.4    10M    1M       0.0       0.0
";

    /// Goal: costs are taken; a benchmark of an empty store is refused. Method: lines as the tools print them.
    #[test]
    fn costs_are_taken() {
        let mut hardware = Hardware::default();
        apply_db_bench(&mut hardware, BENCH, "bench.txt").unwrap();
        assert_eq!(hardware.cpu.put_us, 2.64);
        let sum = hardware.cpu.get_us + hardware.cpu.filter_us + hardware.cpu.block_hit_us;
        assert!((sum - 3.08).abs() < 1e-9);
        let empty = BENCH.replace("632199 of", "0 of");
        let error = apply_db_bench(&mut hardware, &empty, "bench.txt").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("empty store"), "{error}");
        apply_log(&mut hardware, LOG, "LOG").unwrap();
        assert!((hardware.cpu.compact_byte_ns - 43e9 / (10.0 * 1073741824.0)).abs() < 1e-9);
        assert!(apply_log(&mut hardware, "nothing", "LOG").is_err());
        assert!(apply_db_bench(&mut hardware, "nothing", "x").is_err());
    }
}
