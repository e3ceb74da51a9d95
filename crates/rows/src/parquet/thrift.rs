//! Walks over Thrift's compact protocol without building anything, and checks that lengths and
//! counts fit the available bytes.
//!
//! ```text
//! struct = { field } 0x00
//! field  = (delta of the id u4, type u4) [ id zigzag varint, where the delta is 0 ] value
//! value  = nothing (true, false) | byte | zigzag varint | 8 bytes | length varint, bytes
//!        | list | map | struct
//! list   = (count u4, type u4) [ count varint, where the count is 15 ] { value }
//!          (a boolean in a list is a byte)
//! ```

/// The maximum nesting depth of structs.
const DEPTH_MAX: usize = 32;

/// Why bytes are not a valid struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The bytes end within the struct.
    Cut,
    /// A length or count exceeds the available bytes.
    Long,
    /// An unknown type, or structs that are nested too deeply.
    Kind,
}

/// A numeric field of the outer struct, or of a struct in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    /// The field of the outer struct that contains the number; `None` for the outer struct's own
    /// fields.
    pub within: Option<i16>,
    pub field: i16,
    pub value: i64,
}

/// Walks over a struct at the start of `bytes`, which are followed by `beyond` more bytes in the
/// file. Returns its numbers.
pub(super) fn walk(bytes: &[u8], beyond: u64) -> (Vec<Number>, Result<(), Flaw>) {
    let mut walk = Walk { bytes, at: 0, beyond, within: Vec::new(), numbers: Vec::new() };
    let walked = walk.structure();
    (walk.numbers, walked)
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    beyond: u64,
    /// The field ids of the enclosing structs.
    within: Vec<i16>,
    numbers: Vec<Number>,
}

impl Walk<'_> {
    fn byte(&mut self) -> Result<u8, Flaw> {
        let byte = self.bytes.get(self.at).copied().ok_or(Flaw::Cut)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, Flaw> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Flaw::Kind)
    }

    fn zigzag(&mut self) -> Result<i64, Flaw> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Checks that `count` does not exceed the bytes that follow in the file.
    fn fits(&self, count: u64) -> Result<(), Flaw> {
        let here = self.bytes.len().saturating_sub(self.at) as u64;
        if count > here.saturating_add(self.beyond) { Err(Flaw::Long) } else { Ok(()) }
    }

    fn pass(&mut self, count: u64) -> Result<(), Flaw> {
        self.fits(count)?;
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        self.at = end.filter(|end| *end <= self.bytes.len()).ok_or(Flaw::Cut)?;
        Ok(())
    }

    fn structure(&mut self) -> Result<(), Flaw> {
        let mut field = 0_i16;
        loop {
            let head = self.byte()?;
            let (delta, kind) = (head >> 4, head & 15);
            if kind == 0 {
                return Ok(());
            }
            field = match delta {
                0 => self.zigzag()? as i16,
                delta => field.wrapping_add(delta.into()),
            };
            if kind > 2 {
                self.value(kind, field)?;
            }
        }
    }

    fn value(&mut self, kind: u8, field: i16) -> Result<(), Flaw> {
        match kind {
            1..=3 => self.pass(1),
            4..=6 => {
                let value = self.zigzag()?;
                let within = match self.within.as_slice() {
                    [] => None,
                    [outer] => Some(*outer),
                    _ => return Ok(()),
                };
                self.numbers.push(Number { within, field, value });
                Ok(())
            }
            7 => self.pass(8),
            8 => {
                let length = self.varint()?;
                self.pass(length)
            }
            9 | 10 => self.list(field),
            11 => self.map(field),
            12 => self.inner(field),
            13 => self.pass(16),
            _ => Err(Flaw::Kind),
        }
    }

    fn list(&mut self, field: i16) -> Result<(), Flaw> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        // BOUND: each element takes at least one byte.
        self.fits(count)?;
        self.within.push(field);
        (0..count).try_for_each(|_| self.value(head & 15, 0))?;
        self.within.pop();
        Ok(())
    }

    fn map(&mut self, field: i16) -> Result<(), Flaw> {
        let count = self.varint()?;
        self.fits(count)?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        self.within.push(field);
        for _ in 0..count {
            self.value(kinds >> 4, 0)?;
            self.value(kinds & 15, 0)?;
        }
        self.within.pop();
        Ok(())
    }

    fn inner(&mut self, field: i16) -> Result<(), Flaw> {
        // BOUND: the nesting depth is limited.
        if self.within.len() >= DEPTH_MAX {
            return Err(Flaw::Kind);
        }
        self.within.push(field);
        self.structure()?;
        self.within.pop();
        Ok(())
    }
}
