//! Power losses while the segments cut off by a tear are removed.

use cairn_vfs::FaultOptions;

use super::crash::goes_on;
use super::*;

/// How an earlier power loss left a log of five segments, of which the first and a part of the
/// second were synced.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// The second segment ends where it had been synced.
    End,
    /// The third segment never got its header.
    Header,
}

/// Files and their content.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// Returns the disk after that loss, the numbers of the remaining records, and the segments that
/// are cut off.
fn torn(loss: Loss) -> (Files, Vec<u64>, Vec<PathBuf>) {
    let fs = memory();
    let (log, mut appender, _) = open(&fs, &small(), 1).unwrap();
    let mut lsns: Vec<Lsn> = Vec::new();
    while lsns.last().is_none_or(|lsn| lsn.segment() < 5 || lsn.offset() < 6000) {
        let lsn = appender.append(&[&payload(lsns.len() as u64)]).unwrap();
        lsns.push(lsn);
        if log.synced() == Lsn::ZERO && lsn.segment() == 2 && lsn.offset() > 6000 {
            log.sync_to(lsn).unwrap();
        }
    }
    let mut files = files(&*fs);
    assert_eq!(files.len(), 5);
    let kept = match loss {
        Loss::End => {
            files[1].1[log.synced().offset() as usize..].fill(0);
            lsns.iter().filter(|lsn| **lsn <= log.synced()).count()
        }
        Loss::Header => {
            files[2].1[..4096].fill(0);
            lsns.iter().filter(|lsn| lsn.segment() <= 2).count()
        }
    };
    assert!(kept < lsns.len());
    let cut_off = files[2..].iter().map(|(path, _)| path.clone()).collect();
    (files, (0..kept as u64).collect(), cut_off)
}

/// Opens the log in these files and writes nothing. Returns the disks that a power loss at each
/// operation of that may leave: the two fixed images and `random` others. Each holds `expected`,
/// and so does the opened log.
fn crashes_of_opening(
    files: &[(PathBuf, Vec<u8>)],
    options: &Options,
    random: u64,
    expected: &[u64],
    context: &str,
) -> Vec<(String, FaultFs)> {
    let fs = FaultFs::new(FaultOptions::seeded(23));
    files.iter().for_each(|(path, bytes)| fs.install(path, bytes).unwrap());
    fs.capture_crash_points();
    let (.., found) = open(&shared(&fs), options, 23).unwrap();
    assert!(found == expected, "{context}: {} records of {}", found.len(), expected.len());
    let mut disks = Vec::new();
    for point in fs.take_crash_points() {
        for (image, disk) in point.images(random) {
            let context = format!("{context}, {image} at {}", point.operation());
            let found = recover(&shared(&disk), Lsn::ZERO, Mode::TolerateTornTail);
            let found = found.unwrap_or_else(|error| panic!("{context}: {error}")).numbers();
            assert!(found == expected, "{context}: {} records of {}", found.len(), expected.len());
            disks.push((context, disk));
        }
    }
    disks
}

/// Goal: when the power fails while segments cut off by a tear are removed or renamed, and fails
/// again in the next opening, all synced records come back and no abandoned ones. (A segment that
/// outlives the one before it would suggest that all segments before it were released.) Method:
/// three segments cut off; crash images at every operation of the opening that removes them, and at
/// every operation of a later opening after some of them are gone.
#[test]
fn removing_abandoned_segments_survives_power_loss() {
    for (loss, recycled) in [(Loss::End, 0), (Loss::End, 2), (Loss::Header, 0), (Loss::Header, 2)] {
        let (whole, expected, cut_off) = torn(loss);
        let options = small().recycled_max(recycled);
        let context = format!("{loss:?}, {recycled} recycled");
        // Indexed by the number of segments that still exist.
        let mut images = [0; 4];
        for (context, disk) in crashes_of_opening(&whole, &options, 6, &expected, &context) {
            let fs = shared(&disk);
            let there = cut_off.iter().filter(|path| fs.exists(path).unwrap()).count();
            images[there] += 1;
            // If none or all of them are gone, the next opening equals the first one, or has
            // nothing to remove.
            if (1..cut_off.len()).contains(&there) {
                for (context, disk) in crashes_of_opening(&files(&*fs), &options, 1, &expected, &context) {
                    goes_on(&shared(&disk), &expected, &context);
                }
            }
            goes_on(&fs, &expected, &context);
        }
        println!("{context}: {images:?} images with 0, 1, 2 and 3 of the segments that were cut off");
        assert!(images.iter().all(|&images| images > 0), "{context}: {images:?}");
    }
}
