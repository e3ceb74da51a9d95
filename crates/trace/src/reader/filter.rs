//! What is passed over in a trace whose share of the keys was lowered: whatever was recorded of
//! other keys while there were more.

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_codec::key_hash::KeyHash;

use crate::event::Event;
use crate::format::{Adaptive, Header, KeyForm, SampleHash};
use crate::sample;

/// Lets through the operations of keys that were recorded to the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    threshold: u64,
    keys: KeyForm,
    adaptive: Adaptive,
}

impl Filter {
    /// Of a trace that is in the end of one key in `last`; `None` where that is all that it has
    /// anyway.
    pub fn new(header: &Header, last: u32) -> Option<Filter> {
        let adaptive = header.adaptive.filter(|_| last > header.sample)?;
        Some(Filter { threshold: sample::threshold(last), keys: header.keys, adaptive })
    }

    /// True for an event that stays. What is left of a batch is joined to what is left of it:
    /// `goes_on` is its lane's, and says whether anything of the current batch has stayed.
    pub fn takes(&self, event: &mut Event<'_>, goes_on: &mut bool) -> bool {
        // The hash that the recorder compared: of the key as it is kept, which is cut where it was
        // too long.
        let seed = self.adaptive.seed;
        let hash = match (self.keys, self.adaptive.hash) {
            (KeyForm::Hashed, _) => event.key.first_chunk().map_or(0, |hash| u64::from_le_bytes(*hash)),
            (KeyForm::Raw, SampleHash::Rapid) => KeyHash::new(seed).of(event.key),
            (KeyForm::Raw, SampleHash::Xxh3) => xxh3_64_seeded(event.key, seed),
        };
        sample::takes(hash, self.threshold, &mut event.joined, goes_on)
    }
}
