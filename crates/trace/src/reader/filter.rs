//! The filter for traces whose share of keys was lowered. It skips operations of keys that were
//! recorded only while the share was larger.

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_codec::key_hash::KeyHash;

use crate::event::Event;
use crate::format::{Adaptive, Header, KeyForm, SampleHash};
use crate::sample;

/// Passes operations of keys in the final sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    threshold: u64,
    keys: KeyForm,
    adaptive: Adaptive,
}

impl Filter {
    /// Creates the filter for a final sample of one key in `last`. Returns `None` if the trace
    /// contains only that sample anyway.
    pub fn new(header: &Header, last: u32) -> Option<Filter> {
        let adaptive = header.adaptive.filter(|_| last > header.sample)?;
        Some(Filter { threshold: sample::threshold(last), keys: header.keys, adaptive })
    }

    /// Returns true if an event passes the filter. The remaining operations of a batch stay joined
    /// to each other. `goes_on` belongs to the lane, and tells whether an event of the current
    /// batch has passed.
    pub fn takes(&self, event: &mut Event<'_>, goes_on: &mut bool) -> bool {
        // This must be the hash that the recorder compared: that of the stored key, which is
        // truncated if it was too long.
        let seed = self.adaptive.seed;
        let hash = match (self.keys, self.adaptive.hash) {
            (KeyForm::Hashed, _) => event.key.first_chunk().map_or(0, |hash| u64::from_le_bytes(*hash)),
            (KeyForm::Raw, SampleHash::Rapid) => KeyHash::new(seed).of(event.key),
            (KeyForm::Raw, SampleHash::Xxh3) => xxh3_64_seeded(event.key, seed),
        };
        sample::takes(hash, self.threshold, &mut event.joined, goes_on)
    }
}
