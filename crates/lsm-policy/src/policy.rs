//! Any of the policies, as chosen by [`StrategyOptions`].

use crate::{
    Fifo, InvalidOption, Job, Key, LazyLeveled, Leveled, Manual, ManualStep, Scores, State, Strategy,
    StrategyOptions, Universal,
};

/// One of the policies.
#[derive(Debug, Clone)]
pub enum Policy {
    /// See [`Leveled`].
    Leveled(Leveled),
    /// See [`Universal`].
    Universal(Universal),
    /// See [`Fifo`].
    Fifo(Fifo),
    /// See [`LazyLeveled`].
    LazyLeveled(LazyLeveled),
}

impl Policy {
    /// Returns the policy's name in options and reports: [`Strategy::name`], for any key type.
    pub fn name(&self) -> &'static str {
        self.chosen::<u32>().name()
    }

    /// Returns true if many runs in level 0 mean that compactions are behind: [`Strategy::merges`],
    /// for any key type.
    pub fn merges(&self) -> bool {
        self.chosen::<u32>().merges()
    }

    fn chosen<K: Key>(&self) -> &dyn Strategy<K> {
        match self {
            Policy::Leveled(policy) => policy,
            Policy::Universal(policy) => policy,
            Policy::Fifo(policy) => policy,
            Policy::LazyLeveled(policy) => policy,
        }
    }
}

impl StrategyOptions {
    /// Creates the strategy.
    ///
    /// Errors: [`InvalidOption`].
    pub fn build(&self) -> Result<Policy, InvalidOption> {
        self.check()?;
        Ok(match self {
            StrategyOptions::Leveled(options) => Policy::Leveled(Leveled::new(options.clone())),
            StrategyOptions::Universal(options) => Policy::Universal(Universal::new(options.clone())),
            StrategyOptions::Fifo(options) => Policy::Fifo(Fifo::new(options.clone())),
            StrategyOptions::LazyLeveled(options) => Policy::LazyLeveled(LazyLeveled::new(options.clone())),
        })
    }
}

impl<K: Key> Strategy<K> for Policy {
    fn name(&self) -> &'static str {
        Policy::name(self)
    }

    fn pick(&self, state: &State<K>) -> Option<Job<K::Owned>> {
        self.chosen().pick(state)
    }

    fn merges(&self) -> bool {
        Policy::merges(self)
    }

    fn scores(&self, state: &State<K>) -> Scores {
        self.chosen().scores(state)
    }

    fn compact_range(&self, state: &State<K>, manual: &Manual<K>) -> ManualStep<K::Owned> {
        self.chosen().compact_range(state, manual)
    }
}
