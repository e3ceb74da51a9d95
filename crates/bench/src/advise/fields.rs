//! Fields of workload files in the form in which people write them: sizes with units, distributions
//! in words, and numbers whose error messages state the allowed range.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::core::text::{self, parse_bytes};

/// The range of a field, both ends included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub least: u64,
    pub most: u64,
    /// An example value for messages, if the field is a size; `None` if it is a count.
    example: Option<&'static str>,
}

const fn count(least: u64, most: u64) -> Bounds {
    Bounds { least, most, example: None }
}

const fn size(least: u64, most: u64, example: &'static str) -> Bounds {
    Bounds { least, most, example: Some(example) }
}

pub(super) const RECORDS: Bounds = count(100, u32::MAX as u64);
pub(super) const KEY_BYTES: Bounds = size(12, 1024, "16");
pub(super) const VALUE_BYTES: Bounds = size(8, 1 << 24, "512 or \"64KiB\"");
pub(super) const THREADS: Bounds = count(1, 256);
pub(super) const SCAN_RECORDS: Bounds = count(1, 1_000_000);
/// Range of a size of memory or disk.
const SPACE: Bounds = size(1, u64::MAX, "268435456 or \"256MiB\"");

impl Bounds {
    pub(super) fn contains(self, value: u64) -> bool {
        (self.least..=self.most).contains(&value)
    }

    fn read<'de, D: Deserializer<'de>>(self, from: D) -> Result<u64, D::Error> {
        from.deserialize_any(self)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bounds { least, most, example } = self;
        match example {
            None => write!(f, "a whole number from {least} to {most}"),
            Some(example) if *most == u64::MAX => write!(f, "a size over 0, such as {example}"),
            Some(example) => {
                let [least, most] = [least, most].map(|bytes| text::bytes(*bytes as f64));
                write!(f, "a size from {least} to {most}, such as {example}")
            }
        }
    }
}

/// Checks the range while the text is parsed, so that the parser reports the position.
impl de::Visitor<'_> for Bounds {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
        match self.contains(value) {
            true => Ok(value),
            false => Err(E::invalid_value(de::Unexpected::Unsigned(value), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<u64, E> {
        let wrong = || E::invalid_value(de::Unexpected::Signed(value), &self);
        u64::try_from(value).map_err(|_| wrong()).and_then(|value| self.visit_u64(value))
    }

    fn visit_str<E: de::Error>(self, words: &str) -> Result<u64, E> {
        let bytes = self.example.and_then(|_| parse_bytes(words)).filter(|bytes| self.contains(*bytes));
        bytes.ok_or_else(|| E::invalid_value(de::Unexpected::Str(words), &self))
    }
}

pub(super) fn records<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    RECORDS.read(from)
}

pub(super) fn key_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    KEY_BYTES.read(from).map(|bytes| bytes as usize)
}

pub(super) fn value_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    VALUE_BYTES.read(from).map(|bytes| bytes as usize)
}

pub(super) fn threads<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    THREADS.read(from).map(|count| count as u32)
}

pub(super) fn scan_records<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    SCAN_RECORDS.read(from)
}

/// Parses a size of memory or disk, or `null` for no limit.
pub(super) fn space<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    struct Space(u64);

    impl<'de> Deserialize<'de> for Space {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Space, D::Error> {
            SPACE.read(from).map(Space)
        }
    }

    Ok(Option::<Space>::deserialize(from)?.map(|Space(bytes)| bytes))
}

/// Distributions in words.
pub(super) mod distribution {
    use std::fmt;

    use serde::{Deserializer, Serializer, de};

    use crate::core::workload::Distribution;

    pub(crate) fn serialize<S: Serializer>(of: &Distribution, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(of)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Distribution, D::Error> {
        from.deserialize_str(Words)
    }

    /// Parses the words while the text is read, so that the parser reports the position of an
    /// error.
    struct Words;

    impl de::Visitor<'_> for Words {
        type Value = Distribution;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a distribution such as \"zipfian 0.99\"")
        }

        fn visit_str<E: de::Error>(self, words: &str) -> Result<Distribution, E> {
            words.parse().map_err(E::custom)
        }
    }
}
