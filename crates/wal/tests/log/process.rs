//! Killed processes, and real sizes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use cairn_vfs::StdFs;

use super::*;

const CHILD: &str = "CAIRN_WAL_CHILD";

fn recovered(fs: &Arc<dyn Fs>, dir: &Path) -> (Vec<u64>, Tail) {
    let mut recovery = Recovery::open(fs, dir, Lsn::ZERO, &RecoveryOptions::default()).unwrap();
    let mut numbers = Vec::new();
    while let Some(record) = recovery.next().unwrap() {
        numbers.push(number_of(record.payload));
    }
    (numbers, recovery.finish().unwrap())
}

/// Goal: a committed record survives the process without any sync, and the next process continues
/// after it. Method: this test runs itself as a child, which appends until it is killed with
/// `SIGKILL`; the records that the child reported as committed are recovered, in order and without
/// holes, over many lives of one log.
#[test]
fn records_survive_killed_processes() {
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let options = Options::default().segment_bytes(256 << 10).window_bytes(16 << 10);
    if let Some(dir) = std::env::var_os(CHILD) {
        let (numbers, tail) = recovered(&fs, Path::new(&dir));
        let (_log, mut appender) = Log::open(&fs, &options, tail, &mut SeededRng::new(1)).unwrap();
        let mut out = std::io::stdout();
        for number in numbers.len() as u64.. {
            appender.append(&[&payload(number)]).unwrap();
            if number % 100 == 99 {
                writeln!(out, "{CHILD}={number}").unwrap();
            }
        }
    }
    // In shared memory the log is mapped, whatever file system the temporary directory of a
    // container is on. There is only a little of it.
    let shared = tempfile::tempdir_in("/dev/shm").ok().map(|dir| (dir, 3));
    for (dir, rounds) in std::iter::once((tempfile::tempdir().unwrap(), rounds(12, 200))).chain(shared) {
        killed_again_and_again(&fs, dir.path(), rounds as usize);
    }
}

fn killed_again_and_again(fs: &Arc<dyn Fs>, dir: &Path, rounds: usize) {
    let mut before = 0;
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::records_survive_killed_processes", "--nocapture"])
            .env(CHILD, dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let numbers =
            lines.filter_map(|line| line.unwrap().split_once('=').and_then(|(_, n)| n.parse::<u64>().ok()));
        let said = numbers.take(1 + round % 5).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let (found, _) = recovered(fs, dir);
        assert!(found.iter().copied().eq(0..found.len() as u64), "round {round}: holes");
        assert!(
            found.len() as u64 > said && found.len() > before,
            "round {round}: {} of {said}",
            found.len()
        );
        before = found.len();
    }
    println!("killed processes in {}: {before} records", dir.display());
}

/// Goal: the longest record works on the real disk. Method: a record of 80 MiB between two small
/// ones; in the long form of 1 GiB, which takes 2 GiB of disk and as much memory.
#[test]
fn a_gigabyte_in_one_record() {
    let bytes = if rounds(0, 1) == 0 { 80 << 20 } else { cairn_wal::MAX_RECORD_BYTES };
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let dir = tempfile::tempdir().unwrap();
    let (_, tail) = recovered(&fs, dir.path());
    let (log, mut appender) = Log::open(&fs, &Options::default(), tail, &mut SeededRng::new(1)).unwrap();
    appender.append(&[b"before"]).unwrap();
    let mut reservation = appender.reserve(bytes).unwrap();
    for (index, chunk) in reservation.payload_mut().chunks_mut(4096).enumerate() {
        chunk.fill(index as u8);
    }
    reservation.commit().unwrap();
    appender.append(&[b"after"]).unwrap();
    log.sync().unwrap();
    let mut recovery = Recovery::open(&fs, dir.path(), Lsn::ZERO, &RecoveryOptions::default()).unwrap();
    assert_eq!(recovery.next().unwrap().unwrap().payload, b"before");
    let record = recovery.next().unwrap().unwrap();
    assert_eq!(record.payload.len(), bytes);
    let sound = |(index, chunk): (usize, &[u8])| chunk.iter().all(|&byte| byte == index as u8);
    assert!(record.payload.chunks(4096).enumerate().step_by(97).all(sound));
    assert_eq!(recovery.next().unwrap().unwrap().payload, b"after");
    assert!(recovery.next().unwrap().is_none());
}
