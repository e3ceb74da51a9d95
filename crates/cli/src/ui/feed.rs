//! The output of a program, line by line, for any number of readers.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

/// The number of lines that are kept.
const LINES_MAX: usize = 5_000;

/// The maximum number of bytes kept of a line.
pub const LINE_BYTES_MAX: usize = 2_000;

/// The progress of a run, as in `[3/12] get`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The current group, counted from 1.
    pub at: usize,
    /// The number of groups.
    pub of: usize,
    /// The name of the group.
    pub name: String,
}

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Whether it succeeded.
    pub ok: bool,
    /// A description.
    pub how: String,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<String>,
    /// The number of lines dropped before the first one that is kept.
    dropped: usize,
    progress: Option<Progress>,
    ended: Option<Ended>,
}

/// The lines so far. Memory is bounded: of endless output only the last lines are kept.
#[derive(Debug)]
pub struct Feed {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

impl Feed {
    /// Creates a feed without lines.
    pub fn new() -> Feed {
        Feed { state: Mutex::default(), changes: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Ignore poisoning: no change can be left incomplete by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a line.
    pub fn line(&self, line: &str) {
        let mut state = self.state();
        if let Some(progress) = progress_of(line) {
            state.progress = Some(progress);
        }
        let mut end = line.len().min(LINE_BYTES_MAX);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        state.lines.push_back(line.get(..end).unwrap_or_default().to_owned());
        if state.lines.len() > LINES_MAX {
            state.lines.pop_front();
            state.dropped += 1;
        }
        drop(state);
        self.tell();
    }

    /// Marks the end of the output.
    pub fn end(&self, ended: Ended) {
        self.state().ended = Some(ended);
        self.tell();
    }

    fn tell(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns a receiver that is notified of changes from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns how the program ended, if it did.
    pub fn ended(&self) -> Option<Ended> {
        self.state().ended.clone()
    }

    /// Returns the state as JSON, without lines.
    pub fn summary(&self) -> Value {
        let state = self.state();
        json!({
            "running": state.ended.is_none(),
            "ok": state.ended.as_ref().map(|ended| ended.ok),
            "how": state.ended.as_ref().map(|ended| ended.how.as_str()),
            "progress": state.progress.as_ref().map(|it| json!({ "at": it.at, "of": it.of, "name": it.name })),
        })
    }

    /// Returns the lines from number `from` on, and the number of the next line.
    pub fn since(&self, from: usize) -> (Vec<String>, usize) {
        let state = self.state();
        let skip = from.saturating_sub(state.dropped);
        (state.lines.iter().skip(skip).cloned().collect(), state.dropped + state.lines.len())
    }
}

/// Parses the progress that a line reports.
fn progress_of(line: &str) -> Option<Progress> {
    let (numbers, name) = line.strip_prefix('[')?.split_once("] ")?;
    let (at, of) = numbers.split_once('/')?;
    let (at, of) = (at.parse().ok()?, of.parse().ok()?);
    (1..=of).contains(&at).then(|| Progress { at, of, name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a reader gets every line once from any position, and the end. Method: a feed with
    /// group headers among its lines.
    #[test]
    fn each_line_is_sent_once() {
        let feed = Feed::new();
        let changes = feed.changes();
        feed.line("[1/3] get");
        feed.line("note: [2/3] is no group");
        assert_eq!(feed.since(0), (vec!["[1/3] get".to_owned(), "note: [2/3] is no group".to_owned()], 2));
        assert_eq!(feed.since(2), (Vec::new(), 2));
        assert_eq!(feed.summary()["progress"], json!({ "at": 1, "of": 3, "name": "get" }));
        assert!(changes.has_changed().unwrap() && feed.ended().is_none());
        feed.line("[3/3] put: a [x] b");
        assert_eq!(feed.summary()["progress"]["name"], "put: a [x] b");
        feed.end(Ended { ok: true, how: "done".to_owned() });
        assert_eq!(
            (&feed.summary()["running"], &feed.summary()["ok"]),
            (&Value::Bool(false), &Value::Bool(true))
        );
        for wrong in ["[4/3] x", "[0/3] x", "[a/b] x", "[1/2]x", "1/2] x"] {
            assert_eq!(progress_of(wrong), None, "{wrong}");
        }
    }

    /// Goal: endless output needs bounded memory. Method: more lines than are kept; a line that is
    /// too long and is cut within a character.
    #[test]
    fn feeds_are_bounded() {
        let feed = Feed::new();
        (0..LINES_MAX + 10).for_each(|number| feed.line(&number.to_string()));
        let (lines, next) = feed.since(0);
        assert_eq!((lines.len(), lines[0].as_str(), next), (LINES_MAX, "10", LINES_MAX + 10));
        assert_eq!(feed.since(LINES_MAX + 9).0, [(LINES_MAX + 9).to_string()]);
        feed.line(&("a".to_owned() + &"é".repeat(LINE_BYTES_MAX)));
        assert_eq!(feed.since(next).0[0].len(), LINE_BYTES_MAX - 1);
    }
}
