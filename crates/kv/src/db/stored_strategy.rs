//! The encoding of a compaction strategy with its settings, as stored with a keyspace.
//!
//! ```text
//! kind u8: 1 leveled, 2 universal, 3 FIFO, 4 lazy leveled
//! then the settings in the order of their fields:
//!   integer    varint
//!   ratio      the 8 bytes of a double
//!   optional   0 if absent, or 1 and the number
//! ```

use cairn_codec::varint;

use crate::compaction::strategy::{
    FifoOptions, LazyOptions, LeveledOptions, StrategyOptions, UniversalOptions,
};

const LEVELED: u8 = 1;
const UNIVERSAL: u8 = 2;
const FIFO: u8 = 3;
const LAZY: u8 = 4;

/// Appends the encoding of `options` to `out`.
pub(crate) fn encode(options: &StrategyOptions, out: &mut Vec<u8>) {
    match options {
        StrategyOptions::Leveled(it) => {
            out.push(LEVELED);
            let level_zero =
                [it.level_zero_runs_min as u64, it.level_zero_runs_max as u64, it.level_zero_bytes];
            push_numbers(&[it.table_bytes], out);
            push_numbers(&level_zero, out);
            push_numbers(&[it.base_bytes], out);
            push_ratio(it.multiplier, out);
            push_numbers(&[it.levels as u64], out);
            push_ratio(it.tombstone_ratio, out);
            push_numbers(&[it.expired_secs], out);
            push_optional(it.age_secs, out);
            push_ratio(it.idle_space_ratio, out);
            push_numbers(&[it.parts as u64], out);
        }
        StrategyOptions::Universal(it) => {
            out.push(UNIVERSAL);
            let merges = [it.size_ratio_percent, it.merge_runs_min as u64, it.merge_runs_max as u64];
            push_numbers(&[it.table_bytes, it.runs as u64], out);
            push_numbers(&merges, out);
            push_numbers(&[it.space_amplification_percent, it.levels as u64, it.expired_secs], out);
            push_numbers(&[it.parts as u64], out);
        }
        StrategyOptions::Fifo(it) => {
            out.push(FIFO);
            push_numbers(&[it.bytes_max], out);
            push_optional(it.ttl_secs, out);
        }
        StrategyOptions::LazyLeveled(it) => {
            out.push(LAZY);
            push_numbers(&[it.table_bytes, it.flush_bytes, it.size_ratio as u64, it.levels as u64], out);
            push_ratio(it.tombstone_ratio, out);
            push_numbers(&[it.expired_secs], out);
            push_ratio(it.idle_space_ratio, out);
            push_numbers(&[it.parts as u64], out);
        }
    }
}

fn push_numbers(numbers: &[u64], out: &mut Vec<u8>) {
    numbers.iter().for_each(|&number| varint::push(number, out));
}

fn push_ratio(ratio: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(&ratio.to_le_bytes());
}

fn push_optional(number: Option<u64>, out: &mut Vec<u8>) {
    out.push(u8::from(number.is_some()));
    push_numbers(number.as_slice(), out);
}

/// Decodes `bytes`, all of which must be used. Returns `None` for bytes that [`encode`] does not
/// write, and for settings that the strategy refuses.
pub(crate) fn decode(bytes: &[u8]) -> Option<StrategyOptions> {
    let (&kind, bytes) = bytes.split_first()?;
    let mut from = Reader(bytes);
    let options = match kind {
        LEVELED => StrategyOptions::Leveled(LeveledOptions {
            table_bytes: from.number()?,
            level_zero_runs_min: from.count()?,
            level_zero_runs_max: from.count()?,
            level_zero_bytes: from.number()?,
            base_bytes: from.number()?,
            multiplier: from.ratio()?,
            levels: from.count()?,
            tombstone_ratio: from.ratio()?,
            expired_secs: from.number()?,
            age_secs: from.optional()?,
            idle_space_ratio: from.ratio()?,
            parts: from.count()?,
        }),
        UNIVERSAL => StrategyOptions::Universal(UniversalOptions {
            table_bytes: from.number()?,
            runs: from.count()?,
            size_ratio_percent: from.number()?,
            merge_runs_min: from.count()?,
            merge_runs_max: from.count()?,
            space_amplification_percent: from.number()?,
            levels: from.count()?,
            expired_secs: from.number()?,
            parts: from.count()?,
        }),
        FIFO => StrategyOptions::Fifo(FifoOptions { bytes_max: from.number()?, ttl_secs: from.optional()? }),
        LAZY => StrategyOptions::LazyLeveled(LazyOptions {
            table_bytes: from.number()?,
            flush_bytes: from.number()?,
            size_ratio: from.count()?,
            levels: from.count()?,
            tombstone_ratio: from.ratio()?,
            expired_secs: from.number()?,
            idle_space_ratio: from.ratio()?,
            parts: from.count()?,
        }),
        _ => return None,
    };
    (from.0.is_empty() && options.check().is_ok()).then_some(options)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, used) = varint::decode(self.0).ok()?;
        self.0 = self.0.get(used..)?;
        Some(number)
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn ratio(&mut self) -> Option<f64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(f64::from_le_bytes(*bytes))
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        let (&is_there, rest) = self.0.split_first()?;
        self.0 = rest;
        match is_there {
            0 => Some(None),
            1 => Some(Some(self.number()?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every strategy survives a round trip with all its settings, and nothing else is
    /// accepted. Method: each kind with a distinct value in every field; each encoding truncated,
    /// extended by one byte, and with a setting that the strategy refuses.
    #[test]
    fn round_trip() {
        let all = [
            StrategyOptions::Leveled(LeveledOptions {
                table_bytes: 1,
                level_zero_runs_min: 2,
                level_zero_runs_max: 3,
                level_zero_bytes: 4,
                base_bytes: 5,
                multiplier: 6.5,
                levels: 8,
                tombstone_ratio: 0.125,
                expired_secs: 9,
                age_secs: Some(10),
                idle_space_ratio: f64::INFINITY,
                parts: 11,
            }),
            StrategyOptions::Universal(UniversalOptions {
                table_bytes: 1,
                runs: 2,
                size_ratio_percent: 3,
                merge_runs_min: 4,
                merge_runs_max: usize::MAX,
                space_amplification_percent: 5,
                levels: 6,
                expired_secs: 7,
                parts: 8,
            }),
            StrategyOptions::Fifo(FifoOptions { bytes_max: 1, ttl_secs: Some(u64::MAX) }),
            StrategyOptions::Fifo(FifoOptions { bytes_max: u64::MAX, ttl_secs: None }),
            StrategyOptions::LazyLeveled(LazyOptions {
                table_bytes: 1,
                flush_bytes: 2,
                size_ratio: 3,
                levels: 4,
                tombstone_ratio: 5.5,
                expired_secs: 6,
                idle_space_ratio: 7.5,
                parts: 8,
            }),
        ];
        for options in all {
            let mut bytes = Vec::new();
            encode(&options, &mut bytes);
            assert_eq!(decode(&bytes), Some(options.clone()));
            for len in 0..bytes.len() {
                assert_eq!(decode(&bytes[..len]), None, "{options:?} cut to {len}");
            }
            bytes.push(0);
            assert_eq!(decode(&bytes), None, "{options:?} and a byte more");
        }
        let mut bytes = Vec::new();
        encode(&StrategyOptions::Fifo(FifoOptions { bytes_max: 0, ttl_secs: None }), &mut bytes);
        assert_eq!(decode(&bytes), None, "a size that FIFO refuses");
    }
}
