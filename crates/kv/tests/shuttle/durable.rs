//! Tests that acknowledged writes are durable at the moment of the acknowledgement.

use cairn_kv::{Operation, WriteBatch};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{CrashImage, FaultFs, FaultOptions, Operation as DiskOperation};

use super::*;

/// Opens the store in the state that a power loss at this moment leaves.
fn after_power_loss(disk: &FaultFs) -> Db {
    let image: Arc<dyn Fs> = Arc::new(disk.crash_point().image(CrashImage::None));
    builder(&image, 0, &keyspace()).open().unwrap()
}

/// Goal: a `Sync` write is on the disk when it returns, with everything logged before it in either
/// keyspace, whatever is sealed, flushed, compacted and released meanwhile.
/// Method: two writers of large unsynced values, two of which fill a segment of the log, and of
/// `Sync` batches; at each return, the store is opened as a power loss would leave it.
#[test]
fn what_a_sync_acknowledged() {
    explore(150, || {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        let fs: Arc<dyn Fs> = Arc::new(disk.clone());
        let db = builder(&fs, 2, &keyspace()).open().unwrap();
        thread::scope(|scope| {
            for writer in 0..2u8 {
                let (db, disk) = (&db, &disk);
                scope.spawn(move || {
                    for round in 1..=2u64 {
                        let value = round.to_be_bytes();
                        let large = [&value[..], &[writer; 3000]].concat();
                        db.put_with([writer, 0], large, Durability::Buffered).unwrap();
                        let mut batch = WriteBatch::new();
                        for keyspace in db.keyspaces() {
                            let put = Operation::Put { key: &[writer, 1], value: &value };
                            batch.add(keyspace.id(), put).unwrap();
                        }
                        db.write_with(&batch, Durability::Sync).unwrap();
                        let found = after_power_loss(disk);
                        let other = found.keyspace(OTHER).unwrap();
                        for (keyspace, key) in [(&*found, 0), (&*found, 1), (&other, 1)] {
                            let left = number(keyspace.get([writer, key]).unwrap().as_deref());
                            assert_eq!(left, round, "writer {writer}, key {key} of {}", keyspace.name());
                        }
                    }
                });
            }
        });
    });
}

/// Goal: a flush that returned is on the disk, and a batch over both keyspaces is there in both or
/// in none, whichever of them was flushed.
/// Method: a writer of batches, and two threads that each flush a keyspace and then inspect the
/// state that a power loss leaves.
#[test]
fn flushes_and_batches() {
    explore(200, || {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        let fs: Arc<dyn Fs> = Arc::new(disk.clone());
        // Nothing is flushed automatically.
        let options = KeyspaceOptions { memtable_bytes: 1 << 20, ..keyspace() };
        let db = builder(&fs, 1, &options).open().unwrap();
        let write = |round: u64| {
            let mut batch = WriteBatch::new();
            for keyspace in db.keyspaces() {
                let put = Operation::Put { key: b"key", value: &round.to_be_bytes() };
                batch.add(keyspace.id(), put).unwrap();
            }
            db.write_with(&batch, Durability::Buffered).unwrap();
        };
        write(1);
        thread::scope(|scope| {
            let (db, disk) = (&db, &disk);
            scope.spawn(move || (2..=4).for_each(write));
            for at in 0..2 {
                scope.spawn(move || {
                    let keyspace = &db.keyspaces()[at];
                    let before = number(keyspace.get("key").unwrap().as_deref());
                    keyspace.flush().unwrap();
                    let left = after_power_loss(disk);
                    let found: Vec<_> = left
                        .keyspaces()
                        .iter()
                        .map(|keyspace| number(keyspace.get("key").unwrap().as_deref()))
                        .collect();
                    assert!(found[0] == found[1] && found[0] >= before, "{found:?}, flushed {before}");
                });
            }
        });
    });
}

/// Goal: a killed process keeps every acknowledged `Buffered` write, even beside a record that
/// could not be written.
/// Method: three writers; one of their records fails; the store is opened on the state of the
/// kernel at that moment.
#[test]
fn what_a_kill_keeps_when_a_record_fails() {
    for nth in 0..3 {
        explore(150, move || {
            let disk = FaultFs::new(FaultOptions::seeded(1));
            let fs: Arc<dyn Fs> = Arc::new(disk.clone());
            let db =
                builder(&fs, 0, &KeyspaceOptions { memtable_bytes: 1 << 20, ..keyspace() }).open().unwrap();
            db.put_with("first", 1u64.to_be_bytes(), Durability::Sync).unwrap();
            let before = disk.operation_count_of(DiskOperation::Write);
            disk.inject(Rule::nth(DiskOperation::Write, before + nth, Fault::Io));
            let acknowledged: Vec<u8> = thread::scope(|scope| {
                let writers: Vec<_> = (0..3u8)
                    .map(|writer| {
                        let db = &db;
                        scope.spawn(move || db.put_with([writer], 1u64.to_be_bytes(), Durability::Buffered))
                    })
                    .collect();
                let results = writers.into_iter().map(|writer| writer.join().unwrap());
                (0..).zip(results).filter_map(|(writer, result)| result.is_ok().then_some(writer)).collect()
            });
            assert!(acknowledged.len() < 3);
            let image: Arc<dyn Fs> = Arc::new(disk.crash_point().image(CrashImage::All));
            let left = builder(&image, 0, &keyspace()).open().unwrap();
            for writer in acknowledged {
                assert_eq!(number(left.get([writer]).unwrap().as_deref()), 1, "of writer {writer}");
            }
        });
    }
}
