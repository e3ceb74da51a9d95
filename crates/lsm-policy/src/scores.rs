//! Scores: how far a tree is from the shape that its strategy aims for.

/// One level compared with its target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelScore {
    /// The level.
    pub level: usize,
    /// Number of sorted runs in it.
    pub runs: usize,
    /// Bytes in it.
    pub bytes: u64,
    /// Maximum number of bytes that the strategy wants in the level; 0 when it should be empty,
    /// `u64::MAX` without a limit.
    pub target_bytes: u64,
    /// From 1 on the level needs a compaction.
    pub score: f64,
}

/// The state of a tree, for statistics and for the write controller.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// The levels from 0 to the last relevant one.
    pub levels: Vec<LevelScore>,
    /// Estimated bytes that compactions have to read and write until no score is above 1.
    pub debt_bytes: u64,
    /// Number of sorted runs that a lookup may have to search.
    pub runs: usize,
}
