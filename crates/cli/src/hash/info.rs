//! `cairn hash info` and `cairn hash verify`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_hash::generations;
use cairn_hash::sparkey::{SparkeyInfo, SparkeyReader};
use cairn_hash::table::{Mode, Reader, ReaderOptions, TableInfo, VerifyReport};
use cairn_vfs::Fs;
use serde_json::{Map, Value, json};

use super::store::{Store, kind_of};
use crate::args::hash::{Kind, StoreArgs};
use crate::damage::{self, Finding};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, counted};

/// Prints the contents of the headers.
pub fn info(fs: &Arc<dyn Fs>, args: &StoreArgs) -> Result<Outcome> {
    let store = Store::open(fs, &args.store)?;
    if let Store::Sparkey(pair) = &store {
        // The header has no checksum; its counts can be verified without reading the log.
        pair.verify_counts()?;
    }
    let mut out = Output::new();
    match &store {
        Store::Table(store) => {
            // Oldest first: the base, then its deltas.
            let tables: Vec<TableInfo> = store.tables().iter().rev().map(|table| table.info()).collect();
            if args.json {
                let generations: Vec<Value> = tables.iter().map(of_table).collect();
                let bytes: u64 = tables.iter().map(|table| table.file_bytes).sum();
                out.json(&json!({
                    "store": args.store.display().to_string(),
                    "format": "cairn",
                    "file_bytes": bytes,
                    "generations": generations,
                }))?;
            } else {
                tables.iter().try_for_each(|table| out.line(table))?;
            }
        }
        Store::Sparkey(store) if args.json => {
            let mut described =
                Map::from_iter([("store".to_owned(), args.store.display().to_string().into())]);
            if let Value::Object(pair) = of_pair(&store.info()) {
                described.extend(pair);
            }
            out.json(&described.into())?;
        }
        Store::Sparkey(store) => describe_pair(&store.info(), &mut out)?,
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Returns a table's header as JSON, for scripts.
pub fn of_table(table: &TableInfo) -> Value {
    json!({
        "file": table.path.display().to_string(),
        "id": format!("{:016x}", table.id),
        "parent": format!("{:016x}", table.parent),
        "generation": table.generation,
        "delta": table.delta,
        "entries": table.entries,
        "tombstones": table.tombstones,
        "records": table.puts,
        "key_bytes": table.key_bytes,
        "value_bytes": table.value_bytes,
        "key_bytes_max": table.key_bytes_max,
        "value_bytes_max": table.value_bytes_max,
        "data_bytes": table.data_bytes,
        "blob_bytes": table.blob_bytes,
        "index_bytes": table.index_bytes,
        "index_bytes_per_entry": table.index_bytes_per_entry(),
        "dictionary_bytes": table.dictionary_bytes,
        "file_bytes": table.file_bytes,
        "compression": table.compression.name(),
        "fixed_width": table.fixed_width,
    })
}

/// Returns the headers of a Sparkey pair as JSON, for scripts.
pub fn of_pair(info: &SparkeyInfo) -> Value {
    let SparkeyInfo { log, index, .. } = info;
    json!({
        "format": "sparkey",
        "index": info.index_path.display().to_string(),
        "log": info.log_path.display().to_string(),
        "identifier": format!("{:08x}", log.identifier),
        "entries": index.entries,
        "records": log.puts,
        "deletes": log.deletes,
        "not_indexed_bytes": log.data_end - index.data_end,
        "key_bytes_max": log.key_bytes_max,
        "value_bytes_max": log.value_bytes_max,
        "garbage_bytes": index.garbage_bytes,
        "compression": log.compression.to_string(),
        "block_bytes": log.block_bytes,
        "log_bytes": log.data_end,
        "index_bytes": info.index_bytes,
        "index_bytes_per_entry": per_entry(info),
        "hash_bits": index.hash_bytes * 8,
        "address_bits": index.address_bytes * 8,
        "slots": index.capacity.get(),
        "displacement_max": index.displacement_max,
        "file_bytes": log.data_end + info.index_bytes,
    })
}

fn per_entry(info: &SparkeyInfo) -> f64 {
    if info.index.entries == 0 { 0.0 } else { info.index_bytes as f64 / info.index.entries as f64 }
}

fn describe_pair(info: &SparkeyInfo, out: &mut Output) -> Result<()> {
    let SparkeyInfo { log, index, .. } = info;
    out.line(info.index_path.display())?;
    out.line(format!("  log            {}, identifier {:08x}", info.log_path.display(), log.identifier))?;
    let (puts, deletes) = (counted(log.puts, "put", "puts"), counted(log.deletes, "delete", "deletes"));
    out.line(format!("  entries        {} ({puts}, {deletes})", index.entries))?;
    let bytes = |bytes| counted(bytes, "byte", "bytes");
    let (key, value) = (bytes(log.key_bytes_max), bytes(log.value_bytes_max));
    out.line(format!("  longest        key {key}, value {value}"))?;
    out.line(format!("  log            {}, compression {}", bytes(log.data_end), log.compression))?;
    out.line(format!("  garbage        {} before compression", bytes(index.garbage_bytes)))?;
    if log.data_end > index.data_end {
        out.line(format!("  not indexed    {}", bytes(log.data_end - index.data_end)))?;
    }
    let slots = counted(index.capacity.get(), "slot", "slots");
    let slots = format!("{slots} of {} + {} bits", index.hash_bytes * 8, index.address_bytes * 8);
    out.line(format!(
        "  index          {}, {:.2} an entry; {slots}",
        bytes(info.index_bytes),
        per_entry(info)
    ))
}

/// Reads and verifies everything. Every file is read, even if an earlier one is damaged.
///
/// Files are read instead of mapped, because an unreadable sector of a mapped file would raise a
/// signal.
pub fn verify(fs: &Arc<dyn Fs>, args: &StoreArgs) -> Result<Outcome> {
    let checked = match Store::open_unmapped(fs, &args.store) {
        Ok(Store::Table(store)) => {
            let tables = store.tables().iter().rev();
            check_tables(&args.store, tables.map(|table| (table.path().to_owned(), table.verify())))
        }
        Ok(Store::Sparkey(store)) => check_pair(&args.store, &store)?,
        Err(error) => check_unopened(fs, &args.store, error)?,
    };
    let mut out = Output::new();
    if args.json {
        out.json(&damage::report(&args.store, &checked.damage, checked.of_kind))?;
    } else {
        checked.lines.iter().try_for_each(|line| out.line(line))?;
        checked.damage.iter().try_for_each(|found| out.line(format!("damaged: {found}")))?;
    }
    out.finish()?;
    damage::check_sound(&args.store, &checked.damage)
}

/// The results of a verification.
#[derive(Debug, Default)]
struct Checked {
    damage: Vec<Finding>,
    /// The intact files, as text for people.
    lines: Vec<String>,
    /// Fields of this kind of store, for scripts.
    of_kind: Value,
}

/// Verifies a store that cannot be opened. The files of a table with deltas are verified one by
/// one, so that damage in one of them does not hide damage in others.
///
/// Errors: the store cannot be opened for another reason than damage.
fn check_unopened(fs: &Arc<dyn Fs>, path: &Path, error: Error) -> Result<Checked> {
    let (error, is_table) = match error {
        Error::Hash(error) if kind_of(&**fs, path)? == Kind::Cairn => (as_damage(path, error), true),
        Error::Hash(error) => (error, false),
        error => return Err(error),
    };
    // Two files that do not belong together may each be intact.
    let is_between = matches!(error, cairn_hash::Error::Mismatch { .. });
    let is_of_delta = is_table && damage::file_of(&error).is_some_and(|file| file != path);
    // Without its base there is no store, so other errors about the base are returned. A delta that
    // cannot be opened is as bad as a damaged one.
    let found = if is_of_delta { Finding::about(path, &error) } else { Finding::of(path, error.into())? };
    if !is_table {
        return Ok(Checked { damage: vec![found], ..Checked::default() });
    }
    let verified = generations::files_in(fs, path)?.into_iter().map(|file| {
        let table = Reader::open_in(fs, &file, ReaderOptions::default().mode(Mode::Pread));
        let report = table.and_then(|table| table.verify()).map_err(|error| as_damage(path, error));
        (file, report)
    });
    let mut checked = check_tables(path, verified);
    if is_between || checked.damage.is_empty() {
        checked.damage.push(found);
    }
    Ok(checked)
}

/// Converts an error about a file of the table at `path`. A base that does not begin like a table
/// is not a store. A delta is identified by its name, so there it is damage.
fn as_damage(path: &Path, error: cairn_hash::Error) -> cairn_hash::Error {
    match error {
        cairn_hash::Error::Foreign { file, detail, .. } if file != path => {
            cairn_hash::Error::corruption(&file, 0, format!("it {detail}"))
        }
        error => error,
    }
}

/// Collects the findings in each file of the store at `path`. A file that cannot be verified is a
/// finding; the other files are verified regardless.
fn check_tables(
    path: &Path,
    tables: impl Iterator<Item = (PathBuf, cairn_hash::Result<VerifyReport>)>,
) -> Checked {
    let mut checked = Checked::default();
    let (mut generations, mut sum) = (Vec::new(), VerifyReport::default());
    for (file, verified) in tables {
        let file = file.display();
        match verified {
            Ok(report) => {
                checked.lines.push(format!("{file}: {report}"));
                sum.pages += report.pages;
                sum.entries += report.entries;
                sum.tombstones += report.tombstones;
                sum.value_bytes += report.value_bytes;
                let mut generation = of_table_report(&report);
                if let Value::Object(generation) = &mut generation {
                    generation.insert("file".to_owned(), file.to_string().into());
                }
                generations.push(generation);
            }
            Err(error) => checked.damage.push(Finding::about(path, &error)),
        }
    }
    checked.of_kind = of_table_report(&sum);
    if let Value::Object(of_kind) = &mut checked.of_kind {
        of_kind.insert("generations".to_owned(), generations.into());
    }
    checked
}

fn of_table_report(report: &VerifyReport) -> Value {
    json!({
        "pages": report.pages,
        "entries": report.entries,
        "tombstones": report.tombstones,
        "value_bytes": report.value_bytes,
    })
}

fn check_pair(path: &Path, store: &SparkeyReader) -> Result<Checked> {
    let mut checked = Checked::default();
    match store.verify() {
        Ok(report) => {
            let [entries, puts, deletes, slots] = [
                counted(report.entries, "entry", "entries"),
                counted(report.puts, "put", "puts"),
                counted(report.deletes, "delete", "deletes"),
                counted(report.slots, "slot", "slots"),
            ];
            checked.lines.push(format!(
                "{}: {entries}, {puts}, {deletes}, {slots}: sound, as far as a format without checksums can tell",
                store.info().index_path.display()
            ));
            checked.of_kind = json!({
                "entries": report.entries,
                "records": report.puts,
                "deletes": report.deletes,
                "slots": report.slots,
                "record_bytes": report.record_bytes,
                "garbage_bytes": report.garbage_bytes,
            });
        }
        Err(error) => checked.damage.push(Finding::of(path, error.into())?),
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use cairn_hash::generations::StoreBuilder;
    use cairn_hash::sparkey::{self, IndexOptions, LogOptions, LogWriter};
    use cairn_hash::table::BuildOptions;
    use cairn_vfs::fault::{Fault, Rule};
    use cairn_vfs::{FaultFs, FaultOptions, Operation, SeededRng};

    use super::*;
    use crate::hook_fs::HookFs;

    const STORES: [&str; 2] = ["s.cairn", "s.spi"];

    /// Returns a disk with a table of three generations and a Sparkey pair.
    fn disk() -> (FaultFs, Arc<dyn Fs>) {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        let fs: Arc<dyn Fs> = Arc::new(disk.clone());
        let (path, rng) = (Path::new(STORES[0]), &mut SeededRng::new(1));
        for generation in 0..3 {
            let options = BuildOptions::default().threads(1).memory_bytes(16 << 20);
            let mut store = match generation {
                0 => StoreBuilder::create_in(&fs, path, options, rng).unwrap(),
                _ => StoreBuilder::append_in(&fs, path, options, rng).unwrap(),
            };
            store.put(b"k", &[generation; 10]).unwrap();
            store.finish().unwrap();
        }
        let mut log = LogWriter::create_in(&fs, STORES[1], &LogOptions::default()).unwrap();
        log.put(b"k", b"v").unwrap();
        log.close().unwrap();
        sparkey::build_index_in(&fs, STORES[1], &IndexOptions::default()).unwrap();
        (disk, fs)
    }

    fn verify_store(fs: &Arc<dyn Fs>, store: &str) -> Result<Outcome> {
        verify(fs, &StoreArgs { store: store.into(), json: false })
    }

    /// Goal: an unreadable sector is a finding of `verify` and does not end it. Method: no file is
    /// mapped, because such a sector would raise a signal; each read in turn fails, in stores of
    /// both formats.
    #[test]
    fn unreadable_sectors_are_reported() {
        let (disk, fs) = disk();
        for store in STORES {
            let reads = || disk.operation_count_of(Operation::Read);
            let (maps, before) = (disk.operation_count_of(Operation::Map), reads());
            verify_store(&fs, store).unwrap();
            assert_eq!(disk.operation_count_of(Operation::Map), maps, "{store}");
            let count = reads() - before;
            assert!(count > 3, "{store}: {count}");
            for nth in 0..count {
                disk.inject(Rule::nth(Operation::Read, reads() + nth, Fault::Io));
                let error = verify_store(&fs, store).unwrap_err();
                assert!(matches!(error, Error::Damaged(_)), "{store}, read {nth}: {error}");
                disk.clear_rules();
            }
        }
    }

    /// Goal: a delta that cannot be opened, or that a later version wrote, does not keep the other
    /// files from being verified. Method: a disk that refuses to open one delta; a delta with a
    /// future version. A base that cannot be opened is an error and not a finding.
    #[test]
    fn unreadable_file_does_not_hide_damage_in_others() {
        let (disk, fs) = disk();
        let delta = "s.cairn.delta.000001";
        let refusing = |name: &'static str| {
            HookFs::over(&fs, move |_, file| {
                if file != Path::new(name) {
                    return Ok(());
                }
                Err(cairn_vfs::Error::new(Operation::Open, file, std::io::ErrorKind::PermissionDenied.into()))
            })
        };
        let expect_one = |fs: &Arc<dyn Fs>| {
            let error = verify_store(fs, STORES[0]).unwrap_err();
            assert!(matches!(&error, Error::Damaged(told) if told.contains("1 finding")), "{error}");
        };
        expect_one(&refusing(delta));
        let error = verify_store(&refusing(STORES[0]), STORES[0]).unwrap_err();
        assert!(matches!(&error, Error::Hash(cairn_hash::Error::Vfs(_))), "{error}");
        let later = fs.open(Path::new(delta), cairn_vfs::OpenOptions::write()).unwrap();
        later.write_all_at(&[99], 8).unwrap();
        expect_one(&fs);
        drop(disk);
    }
}
