//! The loops over prepared keys, compiled once for every engine.
//!
//! An engine implements how a batch is walked and passes each answer to a closure. Processing the
//! answers (digests, reading the clock between them) is the same code for all engines, so that all
//! are measured in the same way.

use cairn_vfs::Clock;

use super::Session;
use crate::core::digest::Digest;
use crate::core::error::Result;
use crate::core::histogram::Latencies;
use crate::core::workload::KeyBatch;

/// The lookups of an engine over prepared keys.
pub trait Lookups {
    /// Looks up one key after the other and calls `visit` with each answer, in order.
    fn each(&mut self, keys: KeyBatch<'_>, visit: impl FnMut(Option<&[u8]>)) -> Result<()>;

    /// Looks keys up by the engine's batch operation and calls `visit` with the position and answer
    /// of each key, in any order. The default is [`Lookups::each`].
    fn each_batched(
        &mut self,
        keys: KeyBatch<'_>,
        mut visit: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let mut position = 0;
        self.each(keys, |value| {
            visit(position, value);
            position += 1;
        })
    }
}

/// Passes `keys` to `look_up` in slices of `batch_keys`, each with the position of its first key.
pub fn in_batches(
    keys: KeyBatch<'_>,
    batch_keys: usize,
    mut look_up: impl FnMut(usize, &[&[u8]]) -> Result<()>,
) -> Result<()> {
    let mut batch: Vec<&[u8]> = Vec::with_capacity(batch_keys);
    let mut first = 0;
    let mut keys = keys.iter();
    loop {
        batch.clear();
        batch.extend(keys.by_ref().take(batch_keys));
        if batch.is_empty() {
            return Ok(());
        }
        look_up(first, &batch)?;
        first += batch.len();
    }
}

impl<L: Lookups> Session for L {
    #[inline(never)]
    fn run(&mut self, keys: KeyBatch<'_>) -> Result<Digest> {
        let mut digest = Digest::default();
        let mut position = 0;
        self.each(keys, |value| {
            digest.add_answer(position, value);
            position += 1;
        })?;
        Ok(digest)
    }

    #[inline(never)]
    fn run_batched(&mut self, keys: KeyBatch<'_>) -> Result<Digest> {
        let mut digest = Digest::default();
        self.each_batched(keys, |position, value| digest.add_answer(position, value))?;
        Ok(digest)
    }

    #[inline(never)]
    fn run_timed(
        &mut self,
        keys: KeyBatch<'_>,
        clock: &dyn Clock,
        latencies: &mut Latencies,
    ) -> Result<Digest> {
        let mut digest = Digest::default();
        let mut position = 0;
        let mut before = clock.now();
        self.each(keys, |value| {
            latencies.record(clock.now() - before);
            digest.add_answer(position, value);
            position += 1;
            // The clock is read again, so that histogram and digest are not charged to the next
            // lookup.
            before = clock.now();
        })?;
        Ok(digest)
    }
}

/// Answers every key with the same value without a lookup: the cost of the loop, the keys and the
/// digest.
#[derive(Debug)]
pub struct Baseline {
    value: Vec<u8>,
}

impl Baseline {
    /// Creates a baseline whose answers are `value_bytes` long.
    pub fn new(value_bytes: usize) -> Self {
        Baseline { value: vec![b'x'; value_bytes] }
    }
}

impl Lookups for Baseline {
    #[inline]
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        for key in keys.iter() {
            // The length depends on the key, because the compiler would otherwise hoist the work
            // out of the loop.
            let len = if std::hint::black_box(key).is_empty() { 0 } else { self.value.len() };
            visit(Some(&self.value[..len]));
        }
        Ok(())
    }
}
