//! One column of the rows that wait for a page.

use hashbrown::HashMap;

use super::{PackError, Value};
use crate::leaf::Kind;
use crate::{stream, strings};

/// Values in the order of rows. Byte strings are numbered in the order in which they first come, so
/// that a page of any number of rows needs the first so many of them, and what those take is known
/// beforehand.
pub(super) struct ColumnBuffer {
    kind: Kind,
    nulls: Vec<u64>,
    null_count: usize,
    integers: Vec<u64>,
    interned: Interned,
}

#[derive(Default)]
struct Interned {
    codes: HashMap<Box<[u8]>, u64>,
    strings: Vec<Box<[u8]>>,
    /// Bytes of the first so many strings, front-coded.
    front: Vec<usize>,
    /// How many of the first strings have the first one's length.
    uniform: usize,
    /// For each row, how many strings the rows up to it need.
    needed: Vec<u32>,
}

pub(super) struct Plan {
    nulls: Option<stream::Plan>,
    integers: stream::Plan,
    strings: usize,
    pub(super) bytes: usize,
}

impl Interned {
    fn code(&mut self, bytes: &[u8]) -> u64 {
        if let Some(code) = self.codes.get(bytes) {
            return *code;
        }
        let code = self.strings.len();
        let before = self.strings.last().map_or(&b""[..], |last| last);
        let so_far = self.front.last().copied().unwrap_or(0);
        self.front.push(so_far + strings::front_bytes(code, before, bytes));
        if self.uniform == code && self.strings.first().is_none_or(|first| first.len() == bytes.len()) {
            self.uniform += 1;
        }
        self.strings.push(bytes.into());
        self.codes.insert(bytes.into(), code as u64);
        code as u64
    }

    /// Forgets the rows behind the first so many, and the strings that came with them.
    fn truncate(&mut self, rows: usize) {
        self.needed.truncate(rows);
        let strings = self.needed.last().map_or(0, |needed| *needed as usize);
        for string in self.strings.drain(strings..) {
            self.codes.remove(&string);
        }
        self.front.truncate(strings);
        self.uniform = self.uniform.min(strings);
    }

    fn bytes(&self, count: usize) -> usize {
        let front = if count == 0 { 0 } else { self.front[count - 1] };
        let fixed = match self.strings.first() {
            Some(first) if count > 0 && count <= self.uniform => count * first.len(),
            _ => usize::MAX,
        };
        strings::HEAD_BYTES + front.min(fixed)
    }
}

impl ColumnBuffer {
    pub(super) fn new(kind: Kind) -> Self {
        let interned = Interned::default();
        ColumnBuffer { kind, nulls: Vec::new(), null_count: 0, integers: Vec::new(), interned }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn push(&mut self, value: Value<'_>) -> Result<(), PackError> {
        let integer = match (value, self.kind) {
            (Value::Integer(integer), Kind::Integers) => integer,
            (Value::Bytes(bytes), Kind::Bytes) => self.interned.code(bytes),
            (Value::Null, _) => {
                self.null_count += 1;
                self.integers.last().copied().unwrap_or(0)
            }
            _ => return Err(PackError::WrongColumns),
        };
        self.nulls.push(u64::from(value == Value::Null));
        self.integers.push(integer);
        if self.kind == Kind::Bytes {
            self.interned.needed.push(self.interned.strings.len() as u32);
        }
        Ok(())
    }

    /// Forgets the rows behind the first `rows`.
    pub(super) fn truncate(&mut self, rows: usize) {
        let null_count: u64 = self.nulls.drain(rows..).sum();
        self.null_count -= null_count as usize;
        self.integers.truncate(rows);
        self.interned.truncate(rows);
    }

    /// How the first `rows` rows are encoded best. The strings' share is an upper bound: what all
    /// of them begin with is counted with each restart.
    pub(super) fn plan(&self, rows: usize) -> Plan {
        let has_nulls = self.null_count > 0 && self.nulls[..rows].contains(&1);
        let nulls = has_nulls.then(|| stream::plan(&self.nulls[..rows]));
        let integers = stream::plan(&self.integers[..rows]);
        let mut bytes = integers.bytes + nulls.as_ref().map_or(0, |plan| plan.bytes);
        let mut strings = 0;
        if self.kind == Kind::Bytes {
            strings = rows.checked_sub(1).map_or(0, |last| self.interned.needed[last] as usize);
            bytes += self.interned.bytes(strings);
        }
        Plan { nulls, integers, strings, bytes }
    }

    /// Appends the first `rows` rows, and calls `ended` behind each of the three parts.
    pub(super) fn emit(&self, plan: &Plan, rows: usize, out: &mut Vec<u8>, ended: impl Fn(&mut [u8], usize)) {
        if let Some(nulls) = &plan.nulls {
            nulls.emit(&self.nulls[..rows], out);
        }
        ended(out, 0);
        plan.integers.emit(&self.integers[..rows], out);
        ended(out, 1);
        if self.kind == Kind::Bytes {
            let strings: Vec<&[u8]> = self.interned.strings[..plan.strings].iter().map(|s| &**s).collect();
            strings::emit(&strings, out);
        }
        ended(out, 2);
    }

    /// Forgets the first `rows` rows.
    pub(super) fn drop_front(&mut self, rows: usize) {
        let null_count: u64 = self.nulls.drain(..rows).sum();
        self.null_count -= null_count as usize;
        self.integers.drain(..rows);
        if self.kind == Kind::Integers {
            return;
        }
        let old = std::mem::take(&mut self.interned);
        for (code, null) in self.integers.iter_mut().zip(&self.nulls) {
            // A NULL may carry the number of a string that has gone; any number will do.
            *code = match old.strings.get(*code as usize) {
                Some(string) if *null == 0 => self.interned.code(string),
                _ => (self.interned.strings.len() as u64).saturating_sub(1),
            };
            self.interned.needed.push(self.interned.strings.len() as u32);
        }
    }
}
