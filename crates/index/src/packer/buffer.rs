//! One column of the rows that wait for a page.

use hashbrown::HashMap;

use super::{PackError, Value};
use crate::leaf::Kind;
use crate::{stream, strings};

/// Values in row order. Byte strings get codes in the order of their first occurrence. A page of
/// any number of rows therefore needs a prefix of the strings, whose size is known in advance.
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
    /// For each number of leading strings, their front-coded size in bytes.
    front: Vec<usize>,
    /// Number of leading strings that have the length of the first one.
    uniform: usize,
    /// For each row, the number of strings that the rows up to it need.
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
        self.assert_invariants();
        code as u64
    }

    /// Checks that each string has a code and a size.
    fn assert_invariants(&self) {
        let strings = self.strings.len();
        debug_assert_eq!(self.codes.len(), strings, "a number for each string");
        debug_assert_eq!(self.front.len(), strings, "a size for each number of strings");
        debug_assert!(self.uniform <= strings, "{} of {strings} strings", self.uniform);
        debug_assert!(self.needed.last().is_none_or(|needed| *needed as usize <= strings));
    }

    /// Drops all but the first `rows` rows, and the strings that only the dropped rows use.
    fn truncate(&mut self, rows: usize) {
        self.needed.truncate(rows);
        let strings = self.needed.last().map_or(0, |needed| *needed as usize);
        for string in self.strings.drain(strings..) {
            self.codes.remove(&string);
        }
        self.front.truncate(strings);
        self.uniform = self.uniform.min(strings);
        self.assert_invariants();
    }

    fn bytes(&self, count: usize) -> usize {
        debug_assert!(count <= self.strings.len(), "{count} of {} strings", self.strings.len());
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
        self.assert_invariants();
        Ok(())
    }

    /// Returns the number of rows that wait.
    pub(super) fn rows(&self) -> usize {
        self.integers.len()
    }

    /// Checks that each row has a value in every list.
    fn assert_invariants(&self) {
        let rows = self.integers.len();
        debug_assert_eq!(self.nulls.len(), rows);
        debug_assert!(self.null_count <= rows, "{} NULLs of {rows}", self.null_count);
        let needed = if self.kind == Kind::Bytes { rows } else { 0 };
        debug_assert_eq!(self.interned.needed.len(), needed);
    }

    /// Drops all but the first `rows` rows.
    pub(super) fn truncate(&mut self, rows: usize) {
        let null_count: u64 = self.nulls.drain(rows..).sum();
        self.null_count -= null_count as usize;
        self.integers.truncate(rows);
        self.interned.truncate(rows);
        debug_assert_eq!(self.null_count as u64, self.nulls.iter().sum::<u64>());
        self.assert_invariants();
    }

    /// Plans the best encoding of the first `rows` rows. The size of the strings is an upper bound:
    /// it counts their common prefix at each restart.
    pub(super) fn plan(&self, rows: usize) -> Plan {
        debug_assert!(rows <= self.integers.len(), "{rows} rows of {}", self.integers.len());
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

    /// Appends the first `rows` rows, and calls `ended` after each of the three parts.
    pub(super) fn emit(&self, plan: &Plan, rows: usize, out: &mut Vec<u8>, ended: impl Fn(&mut [u8], usize)) {
        let before = out.len();
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
        debug_assert!(out.len() - before <= plan.bytes, "{} bytes are planned", plan.bytes);
        ended(out, 2);
    }

    /// Drops the first `rows` rows.
    pub(super) fn drop_front(&mut self, rows: usize) {
        let null_count: u64 = self.nulls.drain(..rows).sum();
        self.null_count -= null_count as usize;
        self.integers.drain(..rows);
        if self.kind == Kind::Integers {
            return;
        }
        let old = std::mem::take(&mut self.interned);
        for (code, null) in self.integers.iter_mut().zip(&self.nulls) {
            // A NULL may have the code of a dropped string. Any valid code will do for it.
            *code = match old.strings.get(*code as usize) {
                Some(string) if *null == 0 => self.interned.code(string),
                _ => (self.interned.strings.len() as u64).saturating_sub(1),
            };
            self.interned.needed.push(self.interned.strings.len() as u32);
        }
        self.interned.assert_invariants();
        self.assert_invariants();
    }
}
