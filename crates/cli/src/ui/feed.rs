//! What a program prints, line by line, for as many readers as there are.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

/// Lines that are kept.
const LINES_MAX: usize = 5_000;

/// Bytes of a line that are kept.
pub const LINE_BYTES_MAX: usize = 2_000;

/// How far a run is: `[3/12] get`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The group that it is at, counted from 1.
    pub at: usize,
    /// Of so many.
    pub of: usize,
    /// Its name.
    pub name: String,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Whether it was done.
    pub ok: bool,
    /// In words.
    pub how: String,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<String>,
    /// How many lines came before the first that is kept.
    dropped: usize,
    progress: Option<Progress>,
    ended: Option<Ended>,
}

/// The lines so far. Bounded: of a program that prints without end the last ones are kept.
#[derive(Debug)]
pub struct Feed {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

impl Feed {
    /// Without lines.
    pub fn new() -> Feed {
        Feed { state: Mutex::default(), changes: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is made whole before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line.
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

    /// There will be no more lines.
    pub fn end(&self, ended: Ended) {
        self.state().ended = Some(ended);
        self.tell();
    }

    fn tell(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Tells of changes from here on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How it ended, if it did.
    pub fn ended(&self) -> Option<Ended> {
        self.state().ended.clone()
    }

    /// Where it is, in a word for scripts, without lines.
    pub fn summary(&self) -> Value {
        let state = self.state();
        json!({
            "running": state.ended.is_none(),
            "ok": state.ended.as_ref().map(|ended| ended.ok),
            "how": state.ended.as_ref().map(|ended| ended.how.as_str()),
            "progress": state.progress.as_ref().map(|it| json!({ "at": it.at, "of": it.of, "name": it.name })),
        })
    }

    /// The lines from the one numbered `from` on, and the number of the next one.
    pub fn since(&self, from: usize) -> (Vec<String>, usize) {
        let state = self.state();
        let skip = from.saturating_sub(state.dropped);
        (state.lines.iter().skip(skip).cloned().collect(), state.dropped + state.lines.len())
    }
}

/// What a line says of how far a run is.
fn progress_of(line: &str) -> Option<Progress> {
    let (numbers, name) = line.strip_prefix('[')?.split_once("] ")?;
    let (at, of) = numbers.split_once('/')?;
    let (at, of) = (at.parse().ok()?, of.parse().ok()?);
    (1..=of).contains(&at).then(|| Progress { at, of, name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: readers get every line once, from wherever they begin, and the end. Method: a feed
    /// with groups among its lines.
    #[test]
    fn lines_come_once() {
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

    /// Goal: a program that prints without end takes no more and no more memory. Method: more lines
    /// than are kept, and one that is too long, cut within a character.
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
