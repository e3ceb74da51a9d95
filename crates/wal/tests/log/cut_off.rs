//! Power that fails while the segments that a tear cut off are put away.

use cairn_vfs::FaultOptions;

use super::crash::goes_on;
use super::*;

/// How an earlier power loss left a log of five segments of which the first and a part of the
/// second were synced.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// The second ends where it had been synced.
    End,
    /// The third never got its header.
    Header,
}

/// Files with their bytes.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// The disk after that loss, the numbers of the records that are left, and the segments that are
/// cut off.
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

/// Opens the log of these files and writes nothing. The disks that a power loss at each operation
/// of that may leave, the two fixed images and `random` others; each has `expected`, and so has the
/// log that was opened.
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

/// Goal: whenever the power fails while segments that a tear cut off are removed or renamed, and
/// also when it fails again in the opening after that, all that had been synced comes back, and
/// nothing that was given up. (A segment that outlives the one before it would say of that one, and
/// of all before it, that they were released.) Method: three segments cut off; crash images at
/// every operation of the opening that puts them away, and at every one of an opening after some of
/// them are gone.
#[test]
fn what_is_cut_off_goes_without_the_rest() {
    for (loss, recycled) in [(Loss::End, 0), (Loss::End, 2), (Loss::Header, 0), (Loss::Header, 2)] {
        let (whole, expected, cut_off) = torn(loss);
        let options = small().recycled_max(recycled);
        let context = format!("{loss:?}, {recycled} recycled");
        // By how many of the segments are still there.
        let mut images = [0; 4];
        for (context, disk) in crashes_of_opening(&whole, &options, 6, &expected, &context) {
            let fs = shared(&disk);
            let there = cut_off.iter().filter(|path| fs.exists(path).unwrap()).count();
            images[there] += 1;
            // Where none is gone or all are, the next opening is like the first one, or has nothing
            // to put away.
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
