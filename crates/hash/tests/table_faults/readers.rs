//! Readers that are open while their table is replaced.

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cairn_hash::table::{Progress, Stage};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{FaultOptions, Operation, StdFs};

use super::*;

/// Checks readers of the old table against its content at every progress report of a build.
#[derive(Debug)]
struct Watch {
    readers: Arc<Vec<Reader>>,
    model: Model,
    looks: Arc<AtomicU64>,
}

impl Progress for Watch {
    fn advanced(&mut self, stage: Stage, done: u64, _total: u64) {
        for reader in self.readers.iter() {
            assert_holds(reader, &self.model, &format!("{stage:?} {done}"));
        }
        self.looks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Goal: a reader keeps the table that it opened, in every mode, before, during and after a
/// rebuild; a reader opened afterwards sees the new table. Method: check from within the build,
/// then rebuild once more and remove the file.
#[test]
fn old_readers_keep_the_old_table() {
    let directory = tempfile::tempdir().unwrap();
    let fault = FaultFs::new(FaultOptions::seeded(seed(15)));
    let places: [(Arc<dyn Fs>, std::path::PathBuf); 2] =
        [(shared(&fault), TABLE.into()), (Arc::new(StdFs::new()), directory.path().join(TABLE))];
    for (fs, path) in places {
        let build = |content: &Content, watch: Option<Watch>| {
            let mut builder =
                Builder::create_in(&fs, &path, content.options.clone(), &mut SeededRng::new(1)).unwrap();
            content.records.iter().for_each(|(key, value)| builder.put(key, value).unwrap());
            content.deleted.iter().for_each(|key| builder.delete(key).unwrap());
            watch.into_iter().for_each(|watch| builder.set_progress(Box::new(watch)));
            builder.finish().unwrap();
        };
        let open = |mode| Reader::open_in(&fs, &path, ReaderOptions::default().mode(mode)).unwrap();
        build(&old(), None);
        let readers = Arc::new(MODES.map(open).into_iter().collect::<Vec<_>>());
        let (model, looks) = (old().model(), Arc::new(AtomicU64::new(0)));
        for content in contents() {
            let watch = Watch { readers: readers.clone(), model: model.clone(), looks: looks.clone() };
            build(&content, Some(watch));
            readers.iter().for_each(|reader| assert_holds(reader, &model, "after the rename"));
            MODES.map(open).iter().for_each(|reader| assert_holds(reader, &content.model(), "opened after"));
        }
        assert!(looks.load(Ordering::Relaxed) >= 8);
        fs.remove(&path).unwrap();
        readers.iter().for_each(|reader| assert_holds(reader, &model, "after the removal"));
    }
}

/// Goal: opening a table while it is replaced gives one of the complete tables. Method: threads
/// open and read as fast as they can, on real files, during two hundred builds.
#[test]
fn opening_races_with_replacing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(TABLE);
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let versions: Vec<Content> = (0..4)
        .map(|n| Content::new("version", numbered(40 + n, &format!("version {n}")), Compression::None))
        .collect();
    let models: Vec<Model> = versions.iter().map(Content::model).collect();
    let build = |content: &Content| {
        let mut builder =
            Builder::create_in(&fs, &path, content.options.clone(), &mut SeededRng::new(1)).unwrap();
        content.records.iter().for_each(|(key, value)| builder.put(key, value).unwrap());
        builder.finish().unwrap();
    };
    build(&versions[0]);
    let (done, opened) = (AtomicBool::new(false), AtomicU64::new(0));
    cairn_vfs::thread::scope(|scope| {
        for thread in 0..2 {
            let (fs, path, done, opened, models) = (&fs, &path, &done, &opened, &models);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let mode = MODES[(opened.load(Ordering::Relaxed) as usize + thread) % 3];
                    let reader = Reader::open_in(fs, path, ReaderOptions::default().mode(mode)).unwrap();
                    let found = scanned(&reader).unwrap();
                    assert!(models.contains(&found), "{} entries", found.len());
                    opened.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..rounds(200, 5000) as usize {
            build(&versions[round % versions.len()]);
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("opening races with replacing: {} opens", opened.load(Ordering::Relaxed));
    assert!(opened.load(Ordering::Relaxed) > 0);
}

/// Goal: a stream over a value never returns bytes that failed verification, even if it is read
/// again after the error. Method: a device that garbles each read in turn; pieces that cross the
/// end of the read-ahead.
#[test]
fn streams_fail_permanently_after_an_error() {
    let value: Vec<u8> = (0..700_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let content = Content::new("stream", vec![(b"k".to_vec(), value.clone())], Compression::None);
    let bytes = content.bytes();
    let mut refused = 0;
    for nth in 0..12 {
        for fault in [Fault::BitFlip, Fault::Io] {
            let fs = FaultFs::new(FaultOptions::seeded(seed(16) + nth));
            fs.install(Path::new(TABLE), &bytes).unwrap();
            let reader = open(&shared(&fs), Mode::Pread).unwrap();
            fs.inject(Rule::nth(Operation::Read, fs.operation_count_of(Operation::Read) + nth, fault));
            let Ok(Some(mut stream)) = reader.get_reader(b"k") else {
                refused += 1;
                continue;
            };
            let (mut read, mut piece, mut pieces) = (Vec::new(), vec![0; 5000], [5000, 100].into_iter());
            loop {
                match stream.read(&mut piece) {
                    Ok(0) => break,
                    Ok(count) => read.extend_from_slice(&piece[..count]),
                    Err(_) => {
                        refused += 1;
                        // Reads again, with a piece so small that the data read ahead before the
                        // error covers it.
                        piece.truncate(pieces.next_back().unwrap());
                    }
                }
            }
            assert!(read == value, "{fault:?} {nth}: {} bytes", read.len());
        }
    }
    println!("streams after an error: {refused} refusals");
    assert!(refused >= 4, "{refused}");
}
