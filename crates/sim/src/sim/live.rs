//! Which followed keys are alive: what space amplification is measured against.

/// A bit for each id.
#[derive(Debug, Clone)]
pub(super) struct Live {
    bits: Vec<u64>,
    count: u64,
}

impl Live {
    pub(super) fn new(ids: u64) -> Live {
        Live { bits: vec![0; ids.div_ceil(64) as usize], count: 0 }
    }

    /// Notes that a key was written or deleted.
    pub(super) fn set(&mut self, id: u32, is_alive: bool) {
        let Some(word) = self.bits.get_mut(id as usize / 64) else { return };
        let bit = 1u64 << (id % 64);
        let was_alive = *word & bit != 0;
        if is_alive && !was_alive {
            *word |= bit;
            self.count += 1;
        } else if !is_alive && was_alive {
            *word &= !bit;
            self.count -= 1;
        }
    }

    /// Followed keys that are alive.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    #[cfg(test)]
    pub(super) fn is_alive(&self, id: u32) -> bool {
        self.bits.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }
}
