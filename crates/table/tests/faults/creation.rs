//! Faults during the creation of a database.

use cairn_table::{Durability, Isolation};
use cairn_vfs::fault::{Fault, fault_sweep};
use cairn_vfs::{FaultFs, FaultOptions};

use super::transactions::{content, def, open};
use super::{rounds, seed};

fn make(disk: &FaultFs) -> cairn_table::Result<()> {
    let db = open(disk)?;
    let mut transaction = db.begin(Isolation::ReadCommitted)?;
    transaction.create_table(def("t"))?;
    transaction.commit(Durability::Sync)
}

/// Opens the database, creates the table if it does not exist, and opens it again.
fn check_cancelled(disk: &FaultFs, is_made: bool, context: &str) {
    let db = open(disk).unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = content(&db).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(found.contains_key("t") || !is_made, "{context}: the table is not there");
    db.check().unwrap_or_else(|error| panic!("{context}: {error}"));
    drop(db);
    if !found.contains_key("t") {
        make(disk).unwrap_or_else(|error| panic!("{context}: {error}"));
    }
    let db = open(disk).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(content(&db).unwrap().contains_key("t"), "{context}");
}

/// Goal: a database whose creation was interrupted, by a power loss or a kill, can be opened, and
/// created again. Method: crash images at every operation, from the first on.
#[test]
fn power_loss_during_creation() {
    let own = seed();
    let mut images = 0;
    for round in 0..rounds(4, 40) {
        let seed = own.wrapping_add(round);
        let disk = FaultFs::new(FaultOptions::seeded(seed));
        disk.capture_crash_points();
        make(&disk).unwrap();
        let made = disk.operation_count();
        for point in disk.take_crash_points() {
            for (image, crashed) in point.images(rounds(4, 20)) {
                images += 1;
                let context = format!("seed {seed}, {image} at {}", point.operation());
                check_cancelled(&crashed, point.operation() >= made, &context);
            }
        }
    }
    println!("{images} images");
    assert!(images > 300, "{images}");
}

/// Goal: a failed disk operation during the creation of a database is reported, and does not
/// prevent creating it again.
#[test]
fn every_operation_of_creation_fails() {
    let own = seed();
    for fault in [Fault::Io, Fault::Full, Fault::Short] {
        for persistent in [false, true] {
            let struck = fault_sweep(&FaultOptions::seeded(own), fault, persistent, |disk, index| {
                let context = format!("{fault:?} at {index}, persistent: {persistent}");
                let made = make(disk);
                let operations = disk.operation_count();
                disk.clear_rules();
                for (image, crashed) in disk.crash_point().images(2) {
                    check_cancelled(&crashed, made.is_ok(), &format!("{context}, {image}, after {made:?}"));
                }
                // Without a power loss too: the process ends and starts again.
                drop(made);
                assert!(operations > 0);
            });
            assert!(struck > 10, "{fault:?}: {struck}");
        }
    }
}
