//! Progress bars on standard error. They are drawn only on a terminal.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_bench::report::whole::text::duration;
use cairn_bench::suites::all::{SuiteName, TimeLeft, Watch};
use cairn_hash::table::{Progress as BuildProgress, Stage};
use indicatif::{ProgressBar, ProgressStyle};

/// The bar is updated once per this many records; an update for each would cost more than storing
/// one.
const RECORDS_PER_TICK: u64 = 4096;

const COUNTED: &str = "{msg:24} {wide_bar} {percent:>3} % {eta}";
const BYTES: &str = "{msg:24} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}";
const STEPS: &str = "      {wide_bar} {pos}/{len} {elapsed} {msg:40}";
const WHOLE: &str = "      {wide_bar} {elapsed} {msg:60}";
const ENDLESS: &str = "{msg:24} {spinner} {binary_bytes} {binary_bytes_per_sec}";

/// Progress through an input, and the steps after it.
#[derive(Debug, Clone)]
pub struct InputProgress {
    bar: ProgressBar,
    read_bytes: Arc<AtomicU64>,
    records: u64,
}

impl InputProgress {
    /// Creates a bar for an input of `total_bytes`, or a spinner if its length is unknown.
    pub fn new(total_bytes: Option<u64>) -> Self {
        InputProgress::counting(total_bytes, Arc::default())
    }

    /// The same for a reader that already counts its bytes in `read_bytes`.
    pub fn counting(total_bytes: Option<u64>, read_bytes: Arc<AtomicU64>) -> Self {
        let bar = match total_bytes {
            Some(bytes) => styled(ProgressBar::new(bytes), BYTES),
            None => styled(ProgressBar::new_spinner(), ENDLESS),
        };
        bar.set_message("reading");
        InputProgress { bar, read_bytes, records: 0 }
    }

    /// Returns the counter that readers of the input add to.
    pub fn counter(&self) -> Arc<AtomicU64> {
        self.read_bytes.clone()
    }

    /// Counts a record.
    pub fn record(&mut self) {
        self.records += 1;
        if self.records.is_multiple_of(RECORDS_PER_TICK) {
            self.bar.set_position(self.read_bytes.load(Ordering::Relaxed));
        }
    }

    /// Updates the bar after a large piece of the input.
    #[cfg(feature = "sql")]
    pub fn piece(&mut self) {
        self.bar.set_position(self.read_bytes.load(Ordering::Relaxed));
    }

    /// Removes the bar at the end of the input.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for InputProgress {
    /// Removes the bar after an error.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The bar for the steps of a table's builder after the last record.
#[derive(Debug)]
pub struct BuildBar {
    bar: ProgressBar,
}

impl BuildBar {
    /// Creates a bar that is hidden until the first update.
    pub fn new() -> Self {
        BuildBar { bar: ProgressBar::hidden() }
    }
}

impl BuildProgress for BuildBar {
    fn advanced(&mut self, stage: Stage, done: u64, total: u64) {
        if self.bar.is_hidden() {
            self.bar = styled(ProgressBar::new(total), COUNTED);
        }
        self.bar.set_length(total);
        self.bar.set_message(match stage {
            Stage::Sort => "sorting and writing",
            _ => "publishing",
        });
        self.bar.set_position(done);
    }
}

impl Drop for BuildBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The bar of a lab run. Without a terminal, each group and note is a line on standard error.
#[derive(Debug)]
pub struct SuiteBar {
    bar: RefCell<ProgressBar>,
}

impl SuiteBar {
    /// Creates a bar that is hidden until the first group.
    pub fn new() -> Self {
        SuiteBar { bar: RefCell::new(ProgressBar::hidden()) }
    }

    fn say(&self, line: &str) {
        let bar = self.bar.borrow();
        bar.suspend(|| {
            // Nothing can be done if standard error is closed.
            let _ = writeln!(io::stderr(), "{line}");
        });
    }
}

impl cairn_bench::core::progress::Progress for SuiteBar {
    fn group(&self, index: usize, count: usize, name: &str) {
        self.bar.borrow().finish_and_clear();
        self.say(&format!("[{}/{count}] {name}", index + 1));
        if io::stderr().is_terminal() {
            *self.bar.borrow_mut() = styled(ProgressBar::new(0), STEPS);
        }
    }

    fn step(&self, done: usize, total: usize, what: &str) {
        let bar = self.bar.borrow();
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
    }

    fn note(&self, line: &str) {
        self.say(&format!("note: {line}"));
    }
}

impl Drop for SuiteBar {
    fn drop(&mut self) {
        self.bar.borrow().finish_and_clear();
    }
}

/// The bar of a run over all suites: the progress of the current part, and the remaining time of
/// the whole run. Without a terminal, each part and note is a line on standard error.
#[derive(Debug)]
pub struct AllBar {
    inner: SuiteBar,
}

/// The number of steps of a bar that shows a share.
const SHARES: f64 = 1000.0;

impl AllBar {
    /// Creates a bar that is hidden until the first part.
    pub fn new() -> Self {
        AllBar { inner: SuiteBar::new() }
    }
}

impl Watch for AllBar {
    fn part(&self, (index, count): (usize, usize), suite: SuiteName, name: &str, left: TimeLeft) {
        self.inner.bar.borrow().finish_and_clear();
        self.inner.say(&format!("[{}/{count}] {}: {name} · {}", index + 1, suite.word(), remaining(left)));
        if io::stderr().is_terminal() {
            *self.inner.bar.borrow_mut() = styled(ProgressBar::new(SHARES as u64), WHOLE);
        }
    }

    fn step(&self, share: f64, what: &str, left: TimeLeft) {
        let bar = self.inner.bar.borrow();
        bar.set_position((share * SHARES) as u64);
        bar.set_message(format!("{} · {what}", remaining(left)));
    }

    fn note(&self, line: &str) {
        self.inner.say(&format!("note: {line}"));
    }
}

/// Returns `about 6 min 20 s left`. Before the first measurement, calls it a first guess.
fn remaining(left: TimeLeft) -> String {
    let time = duration(left.seconds);
    if left.measured { format!("about {time} left") } else { format!("first guess: {time} left") }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("━╸ ")),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the library accepts every template; it would silently replace an invalid one.
    #[test]
    fn templates_are_known() {
        for template in [COUNTED, BYTES, STEPS, WHOLE, ENDLESS] {
            ProgressStyle::with_template(template).unwrap();
        }
    }
}
