use super::*;
use crate::Operation;
use crate::fault::{Fault, When};

/// Goal: every kind of line survives a round trip through text. Method: one of each, with awkward
/// paths, bytes and numbers.
#[test]
fn lines_round_trip() {
    use LoggedOperation as L;
    let path = |text: &str| PathBuf::from(text);
    let bytes = |bytes: &[u8]| Arc::<[u8]>::from(bytes);
    let max = u64::MAX;
    let direct = OpenOptions { direct: true, ..OpenOptions::create_new() };
    let mut log = vec![
        L::Open { handle: 0, path: path(""), options: OpenOptions::read() },
        L::Open { handle: max, path: path("/a b/%25\n\u{e9}"), options: direct },
        L::Open { handle: 1, path: path("x"), options: OpenOptions::create() },
        L::Read { handle: 1, offset: max, len: 2 },
        L::Write { handle: 1, offset: 3, bytes: bytes(b"") },
        L::Write { handle: 1, offset: 3, bytes: bytes(&[0, 0xff, 0x10]) },
        L::SetLen { handle: 1, len: 4 },
        L::Allocate { handle: 1, offset: 5, len: 6 },
        L::SyncData { handle: 1 },
        L::TryLock { handle: 1 },
        L::Len { handle: 1 },
        L::Map { handle: 1 },
        L::Close { handle: 1 },
        L::Metadata { path: path("a") },
        L::Rename { from: path("a"), to: path("b c") },
        L::HardLink { from: path("a"), to: path("b") },
        L::Remove { path: path("a") },
        L::CreateDirAll { path: path("a/b") },
        L::ReadDir { path: path("a") },
        L::SyncDir { path: path(".") },
        L::Crash(CrashImage::None),
        L::Crash(CrashImage::All),
        L::Crash(CrashImage::Random(max)),
        L::ClearRules,
        L::SetQuota(None),
        L::SetQuota(Some(7)),
        L::Install { path: path("a"), bytes: bytes(b"abc") },
        L::DropCaches,
        L::FlipBit { path: path("a"), offset: 9, bit: 7 },
        L::ZeroTail { path: path("a"), from: 1 },
        L::SwapBlocks { path: path("a"), first: 1, second: 2, len: 3 },
        L::Inject(Rule { when: When::Index(5), fault: Fault::Misdirected { by: -512 }, persistent: true }),
    ];
    let faults = [Fault::Io, Fault::Full, Fault::Interrupted, Fault::Short, Fault::Lost];
    let silent = [Fault::ZeroTail, Fault::BitFlip, Fault::DuplicatedRead, Fault::Misdirected { by: 4096 }];
    log.extend(faults.into_iter().chain(silent).map(|fault| L::Inject(Rule::at(3, fault))));
    let kinds = [
        Operation::Open,
        Operation::Read,
        Operation::Write,
        Operation::SetLen,
        Operation::Allocate,
        Operation::SyncData,
        Operation::SyncDir,
        Operation::Rename,
        Operation::Remove,
        Operation::Link,
        Operation::CreateDir,
        Operation::ReadDir,
        Operation::Stat,
        Operation::Map,
        Operation::Lock,
    ];
    log.extend(kinds.map(|kind| L::Inject(Rule::nth(kind, 2, Fault::Io).persistent())));
    for operation in &log {
        let line = operation.to_string();
        assert!(!line.contains('\n') && line.is_ascii(), "{line}");
        assert_eq!(line.parse::<L>().as_ref(), Ok(operation), "{line}");
    }
    let text = format!("# a comment\n\n{}", format_log(&log));
    assert_eq!(parse_log(&text).unwrap(), log);
}

/// Goal: text that is not a valid log line is refused, with its position. Method: one mistake of
/// each kind.
#[test]
fn nonsense_is_refused() {
    for (line, message) in [
        ("", "line 1, word 1: expected an operation, found \"\""),
        ("fly 1", "line 1, word 1: expected a known operation, found \"fly\""),
        ("read 1 2", "line 1, word 4: expected a number, found \"\""),
        ("read 1 two 3", "line 1, word 3: expected a number, found \"two\""),
        ("close 1 2", "line 1, word 3: expected the end of the line, found \"2\""),
        ("write 1 2 abc", "line 1, word 4: expected bytes in hex, found \"abc\""),
        ("write 1 2 zz", "line 1, word 4: expected bytes in hex, found \"zz\""),
        ("remove a%2", "line 1, word 2: expected two hex digits after %, found \"a%2\""),
        ("crash random:x", "line 1, word 2: expected none, all or random:<seed>, found \"random:x\""),
        ("flip-bit a 1 8", "line 1, word 4: expected a number under 8, found \"8\""),
        ("open 1 x new direct a", "line 1, word 3: expected r or rw, found \"x\""),
        ("inject write io once", "line 1, word 2: expected an index or <operation>:<count>, found \"write\""),
        ("inject 1 io sometimes", "line 1, word 4: expected once or always, found \"sometimes\""),
    ] {
        assert_eq!(line.parse::<LoggedOperation>().unwrap_err().to_string(), message);
    }
    let error = parse_log("len 1\n# fine\nlen x\n").unwrap_err().to_string();
    assert!(error.starts_with("line 3, word 2"), "{error}");
}
