//! The meaning of the lab's durability levels in a store.

/// How a store matches one of the three durability levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Exactly.
    Equal,
    /// It can only guarantee more, which costs it time.
    Stronger,
    /// It cannot guarantee as much, which saves it time.
    Weaker,
}

/// The meaning of one of the lab's durability levels in one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guarantee {
    /// How it compares with the definition of the level.
    pub fit: Fit,
    /// The store's settings and calls that implement it.
    pub means: &'static str,
}

impl Guarantee {
    /// Creates a guarantee that matches the level exactly.
    pub const fn equal(means: &'static str) -> Self {
        Guarantee { fit: Fit::Equal, means }
    }

    /// Creates a guarantee that exceeds the level.
    pub const fn stronger(means: &'static str) -> Self {
        Guarantee { fit: Fit::Stronger, means }
    }

    /// Creates a guarantee that falls short of the level.
    pub const fn weaker(means: &'static str) -> Self {
        Guarantee { fit: Fit::Weaker, means }
    }

    /// Returns the guarantee in one line, for the settings of a contender.
    pub fn sentence(&self) -> String {
        match self.fit {
            Fit::Equal => self.means.to_owned(),
            Fit::Stronger => format!("stronger than asked: {}", self.means),
            Fit::Weaker => format!("WEAKER than asked: {}", self.means),
        }
    }
}
