//! Takes costs of operations from the output of db_bench and from the statistics in RocksDB's
//! `LOG`.

use crate::error::{Error, Result};
use crate::hardware::Hardware;
use crate::options::Compression;

/// Sets write and read costs from db_bench's output. Returns a description of the costs for people.
///
/// Errors: the output has no benchmark; its lookups ran on an empty store and measure nothing.
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
            let what = format!("{name} found 0 of {of} keys: it ran on an empty store and measures nothing");
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

/// Parses `(206545 of 1000000 found)`.
fn found_of(line: &str) -> Option<(f64, f64)> {
    let inside = line.get(line.find('(')? + 1..line.find(" found)")?)?;
    let (found, of) = inside.split_once(" of ")?;
    Some((found.trim().parse().ok()?, of.trim().parse().ok()?))
}

/// Parses the number before a unit.
fn number_before(text: &str, unit: &str) -> Option<f64> {
    let head = text.get(..text.find(unit)?)?;
    head.split_whitespace().next_back()?.parse().ok()
}

/// A line of RocksDB's compaction statistics, with the names of its columns.
struct Row<'t> {
    words: Vec<&'t str>,
    columns: Vec<&'t str>,
}

impl Row<'_> {
    fn get(&self, column: &str) -> Option<f64> {
        let at = self.columns.iter().position(|name| *name == column)?;
        // `Size` is two words in a line, number and unit, but one in the header.
        let shift = usize::from(self.words.len() > self.columns.len());
        self.words.get(at + shift)?.parse().ok()
    }
}

/// Returns the rows of level 0 and of the sum in the last table.
fn last_table(text: &str) -> (Option<Row<'_>>, Option<Row<'_>>) {
    let mut columns: Vec<&str> = Vec::new();
    let (mut zero, mut last) = (None, (None, None));
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first() {
            Some(&"Level") if words.contains(&"Comp(sec)") => (columns, zero) = (words, None),
            Some(&"L0") => zero = Some(Row { words, columns: columns.clone() }),
            Some(&"Sum") => last = (zero.take(), Some(Row { words, columns: columns.clone() })),
            _ => {}
        }
    }
    last
}

/// Returns the codec of most files, from the options at the beginning of a `LOG`.
fn codec_of(text: &str) -> Option<Compression> {
    let of = |option: &str| {
        let value = text.lines().find_map(|line| Some(line.split_once(option)?.1.trim()))?;
        match value {
            "NoCompression" => Some(Compression::None),
            "Snappy" => Some(Compression::Snappy),
            "LZ4" | "LZ4HC" => Some(Compression::Lz4),
            "ZSTD" => Some(Compression::Zstd),
            _ => None,
        }
    };
    of("Options.bottommost_compression:").or_else(|| of("Options.compression:"))
}

/// The largest share of a merge's time that is attributed to its codec.
const CODEC_SHARE_MAX: f64 = 0.9;

/// Sets the cost of a merged byte from the last table of compaction statistics in a `LOG`. The cost
/// excludes flushes, whose time is in the row of level 0, and the codec, which has figures of its
/// own. If the codec's figures alone would exceed the time of the merges, the codec is made faster.
///
/// Errors: there is no such table, or nothing was compacted.
pub fn apply_log(hardware: &mut Hardware, text: &str, file: &str) -> Result<Vec<String>> {
    let missing = |what: &str| Error::parse(file, text.lines().count().max(1), what);
    let (zero, sum) = last_table(text);
    let sum = sum.ok_or_else(|| missing("no table of compaction statistics"))?;
    let merges = |name: &str| {
        let of_zero = zero.as_ref().and_then(|row| row.get(name)).unwrap_or(0.0);
        sum.get(name).map(|all| all - of_zero)
    };
    let read = merges("Read(GB)").ok_or_else(|| missing("no column Read(GB)"))?;
    let written = merges("Write(GB)").ok_or_else(|| missing("no column Write(GB)"))?;
    let secs = merges("CompMergeCPU(sec)").filter(|secs| *secs > 0.0).or_else(|| merges("Comp(sec)"));
    let secs = secs.ok_or_else(|| missing("no column Comp(sec)"))?;
    if read <= 0.0 || secs <= 0.0 {
        return Err(missing("nothing was compacted below level 0: let it run for longer"));
    }
    let mut notes = Vec::new();
    let compression = codec_of(text).unwrap_or_else(|| {
        notes.push("LOG: it names no known codec; its bytes count as uncompressed".to_owned());
        Compression::None
    });
    let codec = hardware.codec(compression);
    // The statistics count compressed bytes, the costs uncompressed ones.
    let raw = |gigabytes: f64| gigabytes * 1073741824.0 / codec.ratio;
    let codec_secs =
        (raw(read) / codec.decompress_mb_per_sec + raw(written) / codec.compress_mb_per_sec) / 1e6;
    let faster = (codec_secs / (CODEC_SHARE_MAX * secs)).max(1.0);
    if let Some(codec) = hardware.codecs.get_mut(compression.name()).filter(|_| faster > 1.0) {
        codec.compress_mb_per_sec *= faster;
        codec.decompress_mb_per_sec *= faster;
        notes.push(format!("LOG: {} is {faster:.1} times as fast as in the profile", compression.name()));
    }
    let ns = (secs - codec_secs / faster) * 1e9 / raw(read);
    hardware.cpu.compact_entry_us = 0.0;
    hardware.cpu.compact_byte_ns = ns;
    hardware.source = format!("RocksDB LOG: {secs:.1} s of processor for {read:.1} GB read by merges");
    notes.push(format!("LOG: merging a byte takes {ns:.2} ns in addition to its codec"));
    Ok(notes)
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

    /// Goal: costs are taken from the output, and a benchmark of an empty store is refused. Method:
    /// lines in the format of the tools.
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
        assert!(apply_log(&mut hardware, "nothing", "LOG").is_err());
        assert!(apply_db_bench(&mut hardware, "nothing", "x").is_err());
    }
    /// Goal: with the costs from a `LOG`, the model predicts the measured time of its merges.
    /// Method: the same table with codecs that take none, part, and more than all of the measured
    /// time; for each, the model's processor seconds for reading, merging and writing add up to the
    /// table's.
    #[test]
    fn merges_of_a_log_take_what_they_took() {
        const GB: f64 = 1073741824.0;
        for (name, compression, faster) in [
            ("NoCompression", Compression::None, 1.0),
            ("Snappy", Compression::Snappy, 10.0),
            ("Snappy", Compression::Snappy, 1.0),
        ] {
            let mut hardware = Hardware::default();
            for codec in hardware.codecs.values_mut() {
                codec.compress_mb_per_sec *= faster;
                codec.decompress_mb_per_sec *= faster;
            }
            let text =
                format!("   Options.compression: {name}\n  Options.bottommost_compression: Disabled\n{LOG}");
            apply_log(&mut hardware, &text, "LOG").unwrap();
            assert_eq!(hardware.cpu.compact_entry_us, 0.0);
            let codec = hardware.codec(compression);
            // The flushes of level 0 wrote 2.8 GB in 12 seconds.
            let (read, written) = (10.0 * GB / codec.ratio, (12.5 - 2.8) * GB / codec.ratio);
            let secs = read * hardware.cpu.compact_byte_ns * 1e-9
                + read / (codec.decompress_mb_per_sec * 1e6)
                + written / (codec.compress_mb_per_sec * 1e6);
            assert!((secs - (43.0 - 12.0)).abs() < 1e-6, "{name} {faster}: {secs}");
            assert!(hardware.cpu.compact_byte_ns > 0.0, "{name} {faster}");
        }
        let only_flushes = LOG.replace("10.0     2.8      7.2", "0.0     0.0      0.0");
        assert!(apply_log(&mut Hardware::default(), &only_flushes, "LOG").is_err());
    }
}
