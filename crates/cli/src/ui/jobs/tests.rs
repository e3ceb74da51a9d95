//! Tests of the arguments of runs, and of following files.

use std::io;

use cairn_vfs::MemFs;

use super::*;

fn arguments(suite: &str, word: &str, seconds: Option<u64>) -> Result<Vec<String>, Refusal> {
    let asked = StartRequest { suite: suite.to_owned(), word: word.to_owned(), seconds };
    asked.arguments(Path::new("runs"))
}

/// Goal: only suites of the list are started, and no input of the page is taken for an option.
/// Method: words that look like options, lists with blanks, line breaks, limits out of range.
#[test]
fn only_known_arguments_start_a_run() {
    let all = arguments("hash", " --full ", Some(60)).unwrap().join(" ");
    assert_eq!(all, "bench hash --quick --results runs --time-limit 60 -- --full");
    let all = arguments("pool", "", None).unwrap().join(" ");
    assert_eq!(all, "bench pool 50 12 --results runs");
    let all = arguments("kv", "cairn,redb", None).unwrap();
    assert_eq!(all[all.len() - 4..], ["--dbs", "cairn,redb", "--results", "runs"]);
    assert!(arguments("kv", "", None).unwrap().join(" ").contains(" --dbs cairn,rocksdb,"));
    let all = arguments("all", "hash,kv", None).unwrap().join(" ");
    assert_eq!(all, "bench all --quick --suites hash,kv --results runs");
    assert_eq!(arguments("all", "", None).unwrap().join(" "), "bench all --quick --results runs");
    for (suite, word, seconds) in [
        ("record", "", None),
        ("", "", None),
        ("kv", "--work-dir=/", None),
        ("kv", "cairn redb", None),
        ("kv", "cairn;rm", None),
        ("all", "--resume", None),
        ("hash", "a\nb", None),
        ("hash", "", Some(0)),
        ("hash", "", Some(SECONDS_MAX + 1)),
    ] {
        assert!(arguments(suite, word, seconds).is_err(), "{suite} {word:?} {seconds:?}");
    }
    assert!(arguments("hash", &"x".repeat(WORD_BYTES_MAX + 1), None).is_err());
}

/// Goal: the command accepts the arguments of every suite. Method: the command's own parser.
#[test]
fn suites_can_be_typed() {
    use clap::Parser;
    for (name, ..) in SUITES {
        let word = match *name {
            "kv" => "cairn",
            "all" => "hash",
            _ => "--word",
        };
        let mut typed = vec!["cairn".to_owned()];
        typed.extend(arguments(name, word, Some(9)).unwrap());
        if let Err(error) = crate::args::Cli::try_parse_from(&typed) {
            panic!("{typed:?}: {error}");
        }
    }
}

/// Goal: a growing file is read line by line, each line once; a file that has become shorter is
/// read from its beginning; of a large file only the end is read. Method: a file that is appended
/// to within a line, truncated, and extended by more than is read at once.
#[test]
fn files_are_followed() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let path = Path::new("/log");
    let mut tail = Tail::default();
    assert!(tail.read(&fs, path).is_err(), "it is not there yet");
    let file = fs.open(path, OpenOptions::create_new()).unwrap();
    let mut end = 0;
    let mut append = |bytes: &[u8]| {
        file.write_all_at(bytes, end).unwrap();
        end += bytes.len() as u64;
    };
    append(b"[1/2] one\nha");
    assert_eq!(tail.read(&fs, path).unwrap(), ["[1/2] one"]);
    assert!(tail.read(&fs, path).unwrap().is_empty());
    append(b"lf\n\xff\nrest");
    assert_eq!(tail.read(&fs, path).unwrap(), ["half", "\u{fffd}"]);
    append(&b"x\n".repeat(READ_BYTES_MAX as usize));
    assert_eq!(tail.read(&fs, path).unwrap().len(), READ_BYTES_MAX as usize / 2);
    file.set_len(0).unwrap();
    file.write_all_at(b"new\n", 0).unwrap();
    assert_eq!(tail.read(&fs, path).unwrap(), ["new"]);
}

/// Goal: a file without line breaks needs bounded memory, and the line after a long one is
/// complete.
/// Method: a file that grows within a line, by less than is read at once.
#[test]
fn endless_line_is_truncated() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let path = Path::new("/log");
    let file = fs.open(path, OpenOptions::create_new()).unwrap();
    let mut tail = Tail::default();
    let piece = vec![b'x'; READ_BYTES_MAX as usize / 2];
    for count in 0..4 {
        file.write_all_at(&piece, count * piece.len() as u64).unwrap();
        assert!(tail.read(&fs, path).unwrap().is_empty());
        assert_eq!(tail.rest.len(), LINE_READ_MAX);
    }
    file.write_all_at(b"\nnext\n", 4 * piece.len() as u64).unwrap();
    let lines = tail.read(&fs, path).unwrap();
    assert_eq!((lines.len(), lines[0].len(), lines[1].as_str()), (2, LINE_READ_MAX, "next"));
}

/// The output of a program that prints a single endless line, and the number of bytes read so far.
struct Endless {
    job: Arc<Job>,
    read: usize,
}

impl Read for Endless {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.read > READ_BYTES_MAX as usize {
            // The line has not ended yet.
            assert_eq!(self.job.feed.since(0).0, ["é".repeat(LINE_BYTES_MAX / 2)]);
            return Ok(0);
        }
        let bytes = "é".as_bytes().iter().cycle().skip(self.read % 2);
        buf.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        self.read += buf.len();
        Ok(buf.len())
    }
}

/// Goal: output without line breaks needs bounded memory, and the lines after a long one are
/// complete.
/// Method: a pipe that checks the feed before its line ends; a long line with others after it.
#[test]
fn output_without_line_breaks_is_cut() {
    let endless = Arc::new(job(1, String::new(), None));
    read_lines(&endless, Box::new(Endless { job: Arc::clone(&endless), read: 0 }));
    assert_eq!(endless.feed.since(0).1, 1);
    let long = Arc::new(job(1, String::new(), None));
    let text = format!("{}\n[1/2] next\n\nrest", "x".repeat(READ_BYTES_MAX as usize));
    read_lines(&long, Box::new(io::Cursor::new(text)));
    assert_eq!(long.feed.since(0).0, [&*"x".repeat(LINE_BYTES_MAX), "[1/2] next", "", "rest"]);
}
