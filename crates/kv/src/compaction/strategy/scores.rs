//! How far a tree is from the shape that its strategy wants.

/// One level against its target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelScore {
    /// The level.
    pub level: usize,
    /// Sorted runs in it.
    pub runs: usize,
    /// Bytes in it.
    pub bytes: u64,
    /// Bytes that the strategy would like it to have at most; 0 when it wants it empty, `u64::MAX`
    /// without a limit.
    pub target_bytes: u64,
    /// From 1 on there is something to do.
    pub score: f64,
}

/// The state of a tree, for statistics and for the write controller.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// The levels from 0 to the last that matters.
    pub levels: Vec<LevelScore>,
    /// Bytes that compactions have to read and write until no score is above 1, by estimate.
    pub debt_bytes: u64,
    /// Sorted runs that a lookup may have to ask.
    pub runs: usize,
}
