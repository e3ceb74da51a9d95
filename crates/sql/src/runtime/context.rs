//! The part of a session that expressions can use.

use std::cell::Cell;

use cairn_vfs::sync::Arc;

use super::sequence::SessionSequences;
use super::{Settings, Shared};
use crate::error::Result;
use crate::expr::Context;

/// Times, sequences and settings.
#[derive(Debug)]
pub(crate) struct SessionContext {
    shared: Arc<Shared>,
    pub settings: Settings,
    pub sequences: Arc<SessionSequences>,
    /// The start of the transaction, determined at the first use.
    began: Cell<Option<i64>>,
    /// Like `began`, for the statement.
    statement_began: Cell<Option<i64>>,
    random: Cell<u64>,
}

impl SessionContext {
    pub fn new(shared: Arc<Shared>, backend: u32) -> Self {
        let settings = Settings::new(&shared);
        let seed = shared.seed(backend);
        SessionContext {
            shared,
            settings,
            sequences: Arc::default(),
            began: Cell::new(None),
            statement_began: Cell::new(None),
            random: Cell::new(seed),
        }
    }

    /// Begins a transaction.
    pub fn begin(&mut self) {
        self.began.set(None);
        self.begin_statement();
    }

    /// Begins a statement.
    pub fn begin_statement(&mut self) {
        self.statement_began.set(None);
    }
}

impl Context for SessionContext {
    fn transaction_time(&self) -> i64 {
        if let Some(began) = self.began.get() {
            return began;
        }
        // The time of the first statement that asks for it.
        let now = self.statement_time();
        self.began.set(Some(now));
        now
    }

    fn statement_time(&self) -> i64 {
        if let Some(began) = self.statement_began.get() {
            return began;
        }
        let now = self.clock_time();
        self.statement_began.set(Some(now));
        now
    }

    fn clock_time(&self) -> i64 {
        self.shared.clock.wall().as_micros() as i64
    }

    fn random(&self) -> u64 {
        // Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn next_value(&self, sequence: &str) -> Result<i64> {
        self.sequences.next(&self.shared, self.settings.schema(), sequence)
    }

    fn current_value(&self, sequence: Option<&str>) -> Result<i64> {
        self.sequences.current(self.settings.schema(), sequence)
    }

    fn set_value(&self, sequence: &str, value: i64, is_called: bool) -> Result<i64> {
        self.sequences.set(&self.shared, self.settings.schema(), sequence, value, is_called)
    }

    fn setting(&self, name: &str) -> Option<String> {
        self.settings.get(name)
    }
}
