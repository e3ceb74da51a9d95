//! Shapes of synthetic keys and values. Record `n` is a function of `n`, so nothing has to be
//! stored.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};

/// The format of key `n`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyShape {
    /// A prefix and the number in decimal, as in Sparkey's benchmark: `key_42`.
    Numbered {
        /// The text before the number.
        prefix: String,
    },
    /// `bytes` pseudo-random bytes, distinct for every `n`. At least 8.
    Fixed {
        /// Length of a key.
        bytes: u32,
    },
}

impl Default for KeyShape {
    fn default() -> Self {
        KeyShape::Numbered { prefix: "key_".to_owned() }
    }
}

impl KeyShape {
    /// Appends key `n`. Distinct numbers give distinct keys.
    pub fn write(&self, n: u64, out: &mut Vec<u8>) {
        match self {
            KeyShape::Numbered { prefix } => {
                out.extend_from_slice(prefix.as_bytes());
                write_decimal(n, out);
            }
            KeyShape::Fixed { bytes } => write_noise(n, *bytes as usize, out),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match self {
            KeyShape::Fixed { bytes } if !(8..=65_536).contains(bytes) => {
                Err(Error::invalid(format!("keys of {bytes} bytes: expected 8 to 65536")))
            }
            _ => Ok(()),
        }
    }
}

/// The format of value `n`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueShape {
    /// The number in decimal and `padding` times `x`, as in Sparkey's benchmark: about 6 bytes
    /// without padding.
    Numbered {
        /// Bytes after the number.
        padding: u32,
    },
    /// Exactly `bytes` bytes that do not compress.
    Fixed {
        /// Length of a value.
        bytes: u32,
    },
    /// `min` to `max` bytes that do not compress; all lengths are equally likely.
    Range {
        /// The shortest length.
        min: u32,
        /// The longest length.
        max: u32,
    },
}

impl Default for ValueShape {
    fn default() -> Self {
        ValueShape::Numbered { padding: 0 }
    }
}

impl ValueShape {
    /// Appends value `n`.
    pub fn write(&self, n: u64, out: &mut Vec<u8>) {
        match *self {
            ValueShape::Numbered { padding } => {
                write_decimal(n, out);
                out.resize(out.len() + padding as usize, b'x');
            }
            ValueShape::Fixed { bytes } => write_noise(n, bytes as usize, out),
            ValueShape::Range { min, max } => {
                let span = u64::from(max - min) + 1;
                let extra = (u128::from(mix(n ^ 0x76a1)) * u128::from(span)) >> 64;
                write_noise(n, (u64::from(min) + extra as u64) as usize, out);
            }
        }
    }

    /// Returns the length that represents this shape in tables: about the mean.
    pub fn typical_bytes(&self) -> u32 {
        match *self {
            ValueShape::Numbered { padding } => 6 + padding,
            ValueShape::Fixed { bytes } => bytes,
            ValueShape::Range { min, max } => min + (max - min) / 2,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match *self {
            ValueShape::Range { min, max } if min > max => Err(Error::invalid(format!(
                "values of {min} to {max} bytes: expected the smaller number first"
            ))),
            _ => Ok(()),
        }
    }
}

fn write_decimal(n: u64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = n;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn write_noise(n: u64, len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len;
    let mut word = mix(n);
    while out.len() < end {
        let bytes = word.to_le_bytes();
        out.extend_from_slice(&bytes[..bytes.len().min(end - out.len())]);
        word = mix(word);
    }
}

/// Mixes a number with SplitMix64's finaliser. It is a bijection of 64-bit numbers, so eight bytes
/// of it distinguish all numbers.
fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
