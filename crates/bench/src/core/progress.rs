//! The progress of a run, as its user sees it.

/// Observes the progress of a run. The methods are called from the thread that runs the suite.
pub trait Progress {
    /// Group `index` of `count` begins; `name` describes it.
    fn group(&self, index: usize, count: usize, name: &str);

    /// Step `done` of `total` of the group begins.
    fn step(&self, done: usize, total: usize, what: &str);

    /// Reports a problem that the run survives and that the user should know, such as a contender
    /// that cannot run or a full disk.
    fn note(&self, line: &str);
}

/// Ignores all progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn group(&self, _: usize, _: usize, _: &str) {}
    fn step(&self, _: usize, _: usize, _: &str) {}
    fn note(&self, _: &str) {}
}
