//! Decides which entries survive a flush or a compaction.
//!
//! Snapshots divide the sequence numbers into *stripes*. Two versions of a key in one stripe look
//! the same to every reader, so only the newest in each stripe survives.
//!
//! ```text
//!   snapshots:            10          20
//!   versions of a key:  9    12   15      23   25
//!                       ^keep     ^keep        ^keep      12 and 23 are visible to no reader
//! ```
//!
//! Merge operands need the entries below them, down to and including the first one that is not an
//! operand. If the operator cannot combine them, or there is no operator, both the operands and
//! that entry stay.
//!
//! The values of a keyspace whose entries expire must be in its tables, where their time of writing
//! is visible. Values that an earlier version of the program put into blob files are moved back.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cairn_vfs::sync::Arc;

use crate::batch::VALUE_BYTES_MAX;
use crate::blob::BlobRef;
use crate::cursor::Cursor;
use crate::file::FileNumber;
use crate::iter::visible::BlobSource;
use crate::kind::{Kind, SEQNO_MAX, Seqno};
use crate::merge_operator::{OPERATOR, Operator};
use crate::range_del::RangeTombstones;
use crate::ttl::{self, Ttl};
use crate::{Error, Result, user_code};

/// A compaction filter's decision about an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterDecision {
    /// Keeps the entry.
    Keep,
    /// Removes the entry, as if it had been deleted when it was written.
    Remove,
    /// Replaces the value. A value longer than [`crate::VALUE_BYTES_MAX`] is ignored, and the entry
    /// stays unchanged.
    Change(Vec<u8>),
}

/// Decides during compactions about values that no snapshot protects, like RocksDB's compaction
/// filter.
pub trait CompactionFilter: std::fmt::Debug + Send + Sync + 'static {
    /// Returns its name, for messages and the event log.
    fn name(&self) -> &str;

    /// Decides about `key` and `value`, which a compaction writes to `level`. Called in key order,
    /// once per compaction for the newest version of a key; never for tombstones, merge operands
    /// and values in blob files.
    ///
    /// A panic is caught: the compaction is abandoned with [`Error::Panicked`], which names the
    /// key, and its inputs stay.
    fn filter(&self, level: usize, key: &[u8], value: &[u8]) -> FilterDecision;
}

/// The name for the filter in messages.
const FILTER: &str = "the compaction filter";

/// Number of entries between two calls of `interrupt`.
const ENTRIES_PER_LOOK: u32 = 1024;

/// The stream's knowledge about the rest of the store.
pub(crate) struct Rules<'a> {
    /// Sequence numbers of all snapshots, ascending.
    pub snapshots: Vec<Seqno>,
    /// Range tombstones of all inputs together.
    pub tombstones: Arc<RangeTombstones>,
    /// Combines chains of merge operands.
    pub operator: Operator,
    /// Tells when entries expire.
    pub ttl: Option<Ttl>,
    /// The source of expiring values that are in blob files. Without it these values stay there.
    pub blobs: Option<Arc<dyn BlobSource>>,
    /// The user's filter.
    pub filter: Option<Arc<dyn CompactionFilter>>,
    /// The level of the output.
    pub level: usize,
    /// Called regularly to decide whether to continue; its error ends the stream. Needed because
    /// many entries may pass before one survives.
    pub interrupt: Option<&'a dyn Fn() -> Result<()>>,
    /// The store's directory, for messages.
    pub store: Arc<PathBuf>,
    /// The keyspace's name, for messages.
    pub keyspace: &'a str,
    /// If true, a panic of the operator leaves its operands unchanged. Otherwise it ends the stream
    /// with the error.
    pub keeps_unmerged: bool,
}

impl Rules<'_> {
    /// Returns the stripe of `seqno`: the first snapshot that sees it, or [`SEQNO_MAX`].
    #[inline]
    fn stripe(&self, seqno: Seqno) -> Seqno {
        if self.snapshots.is_empty() {
            return SEQNO_MAX;
        }
        let at = self.snapshots.partition_point(|&snapshot| snapshot < seqno);
        let stripe = self.snapshots.get(at).copied().unwrap_or(SEQNO_MAX);
        debug_assert!(stripe >= seqno, "number {seqno} in the stripe that ends at {stripe}");
        stripe
    }

    /// Returns true when every snapshot sees an entry with this sequence number.
    #[inline]
    fn seen_by_all(&self, seqno: Seqno) -> bool {
        self.snapshots.first().is_none_or(|&first| seqno <= first)
    }

    /// Returns true when a range tombstone hides `key` at `seqno` from every reader that could see
    /// it.
    #[inline]
    fn is_covered(&self, key: &[u8], seqno: Seqno) -> bool {
        if self.tombstones.is_empty() {
            return false;
        }
        let newest = self.tombstones.newest_covering(key, self.stripe(seqno));
        newest.is_some_and(|tombstone| tombstone > seqno)
    }
}

/// Numbers of entries that flushes and compactions dropped, by reason.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Versions hidden by a newer one.
    pub shadowed: u64,
    /// Entries hidden by range tombstones.
    pub covered: u64,
    /// Tombstones with nothing left to hide.
    pub tombstones: u64,
    /// Entries that the filter removed, and expired ones.
    pub filtered: u64,
}

impl Dropped {
    /// Adds the counts of another stream.
    pub(crate) fn add(&mut self, other: Dropped) {
        self.shadowed += other.shadowed;
        self.covered += other.covered;
        self.tombstones += other.tombstones;
        self.filtered += other.filtered;
    }
}

/// The surviving entries of the input, in order. [`Stream::advance`] moves to the next one.
pub(crate) struct Stream<'a, C, B> {
    input: C,
    rules: Rules<'a>,
    /// Number of input entries until the next call of `interrupt`.
    until_look: u32,
    /// Returns whether a key, asked in ascending order, can have older entries outside the input.
    has_older: B,
    key: Vec<u8>,
    has_key: bool,
    /// The stripe of the last survivor of `key`, if that survivor hides all older versions in the
    /// stripe.
    hidden_stripe: Option<Seqno>,
    /// The value of the current survivor if it differs from the input's entry.
    value: Vec<u8>,
    current: Current,
    /// Survivors produced together from several inputs, the next one last.
    pending: Vec<(Seqno, Kind, Vec<u8>)>,
    dropped: Dropped,
    /// Bytes of values in blob files whose entries did not survive, by file.
    garbage: BTreeMap<FileNumber, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    /// Before the first survivor, or after the last.
    None,
    /// The input's current entry, with this sequence number.
    Input(Seqno),
    /// `key` and `value`, with this sequence number and kind.
    Made(Seqno, Kind),
}

impl<'a, C: Cursor, B: FnMut(&[u8]) -> Result<bool>> Stream<'a, C, B> {
    /// Creates a stream of the survivors of `input`, which must be positioned on its first entry.
    pub(crate) fn new(input: C, rules: Rules<'a>, has_older: B) -> Self {
        debug_assert!(rules.snapshots.is_sorted_by(|a, b| a < b), "snapshots {:?}", rules.snapshots);
        Stream {
            input,
            rules,
            until_look: ENTRIES_PER_LOOK,
            has_older,
            key: Vec::new(),
            has_key: false,
            hidden_stripe: None,
            value: Vec::new(),
            current: Current::None,
            pending: Vec::new(),
            dropped: Dropped::default(),
            garbage: BTreeMap::new(),
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    pub(crate) fn seqno(&self) -> Seqno {
        match self.current {
            Current::Input(seqno) | Current::Made(seqno, _) => seqno,
            Current::None => 0,
        }
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        match self.current {
            Current::Made(_, kind) => kind,
            _ => self.input.kind(),
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.current {
            Current::Made(..) => &self.value,
            _ => self.input.value(),
        }
    }

    /// Returns the numbers of entries dropped so far.
    pub(crate) fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Returns the bytes of values in blob files that the output no longer refers to, by file.
    pub(crate) fn take_garbage(&mut self) -> BTreeMap<FileNumber, u64> {
        std::mem::take(&mut self.garbage)
    }

    /// Moves to the next survivor. Returns false at the end. After an error the stream has ended.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        if let Some((seqno, kind, value)) = self.pending.pop() {
            debug_assert!(self.has_key, "a survivor without a key");
            self.value = value;
            self.current = Current::Made(seqno, kind);
            return Ok(true);
        }
        if matches!(self.current, Current::Input(_)) {
            self.input.next()?;
        }
        self.current = Current::None;
        while self.input.valid() {
            self.check_interrupt()?;
            let is_new_key = !self.has_key || self.input.key() != self.key.as_slice();
            if is_new_key {
                self.key.clear();
                self.key.extend_from_slice(self.input.key());
                self.has_key = true;
                self.hidden_stripe = None;
            }
            let seqno = self.input.seqno();
            let stripe = self.rules.stripe(seqno);
            if self.hidden_stripe == Some(stripe) {
                self.dropped.shadowed += 1;
                self.drop_input()?;
                continue;
            }
            if self.rules.is_covered(&self.key, seqno) {
                // A range tombstone that hides an entry also hides everything older in the stripe.
                self.hidden_stripe = Some(stripe);
                self.dropped.covered += 1;
                self.drop_input()?;
                continue;
            }
            let survives = match self.input.kind() {
                Kind::Put | Kind::Blob => self.keep_value(seqno, stripe)?,
                Kind::Delete => self.keep_tombstone(seqno, stripe)?,
                Kind::Merge => {
                    self.merge(stripe)?;
                    match self.pending.pop() {
                        Some((seqno, kind, value)) => {
                            self.value = value;
                            self.current = Current::Made(seqno, kind);
                            true
                        }
                        None => false,
                    }
                }
            };
            debug_assert_eq!(survives, self.current != Current::None, "the survivor is {:?}", self.current);
            if survives {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    fn check_interrupt(&mut self) -> Result<()> {
        debug_assert!((1..=ENTRIES_PER_LOOK).contains(&self.until_look), "{} entries", self.until_look);
        self.until_look -= 1;
        if self.until_look > 0 {
            return Ok(());
        }
        self.until_look = ENTRIES_PER_LOOK;
        self.rules.interrupt.map_or(Ok(()), |interrupt| interrupt())
    }

    /// Drops the input's entry.
    #[inline]
    fn drop_input(&mut self) -> Result<()> {
        if self.input.kind() == Kind::Blob {
            self.count_garbage();
        }
        self.input.next()
    }

    /// Counts the value of the input's entry, which is in a blob file, as garbage.
    fn count_garbage(&mut self) {
        debug_assert!(self.input.kind() == Kind::Blob, "garbage of kind {:?}", self.input.kind());
        let reference = BlobRef::decode(self.input.value());
        self.count_garbage_of(reference);
    }

    fn count_garbage_of(&mut self, reference: Option<BlobRef>) {
        if let Some(reference) = reference {
            *self.garbage.entry(reference.number).or_default() += reference.bytes;
        }
    }

    /// Returns the sequence number of a survivor: 0 when no reader and no older entry can tell the
    /// difference.
    #[inline]
    fn final_seqno(&mut self, seqno: Seqno) -> Result<Seqno> {
        let is_last = seqno != 0 && self.rules.seen_by_all(seqno) && !(self.has_older)(&self.key)?;
        // A range tombstone that stays must not cover newer entries, so their sequence numbers stay
        // too.
        Ok(if is_last && self.rules.tombstones.is_empty() { 0 } else { seqno })
    }

    #[inline]
    fn keep_value(&mut self, seqno: Seqno, stripe: Seqno) -> Result<bool> {
        debug_assert!(matches!(self.input.kind(), Kind::Put | Kind::Blob), "{:?}", self.input.kind());
        self.hidden_stripe = Some(stripe);
        let is_back = self.take_back()?;
        let is_in_table = is_back || self.input.kind() == Kind::Put;
        let mut value = if is_back { self.value.as_slice() } else { self.input.value() };
        let mut written = None;
        if let Some(ttl) = self.rules.ttl.filter(|_| is_in_table) {
            let secs = ttl::written_secs(&self.key, value)
                .map_err(|what| Error::corruption(&self.rules.store, 0, what))?;
            if ttl.is_over(secs) {
                return self.remove_filtered(seqno);
            }
            value = &value[..value.len() - ttl::STAMP_BYTES];
            written = Some(secs);
        }
        if let Some(filter) = &self.rules.filter
            && is_in_table
            && stripe == SEQNO_MAX
        {
            let (level, key) = (self.rules.level, self.key.as_slice());
            let decision =
                user_code::call(self.rules.keyspace, key, FILTER, || filter.filter(level, key, value))?;
            match decision {
                FilterDecision::Keep => {}
                FilterDecision::Change(value) if value.len() > VALUE_BYTES_MAX => {}
                FilterDecision::Remove => return self.remove_filtered(seqno),
                FilterDecision::Change(value) => {
                    self.value = match written {
                        Some(secs) => ttl::stamp(&value, secs),
                        None => value,
                    };
                    self.input.next()?;
                    self.current = Current::Made(seqno, Kind::Put);
                    return Ok(true);
                }
            }
        }
        let seqno = self.final_seqno(seqno)?;
        if is_back {
            self.input.next()?;
            self.current = Current::Made(seqno, Kind::Put);
        } else {
            self.current = Current::Input(seqno);
        }
        Ok(true)
    }

    /// Reads the value of the input's entry into `value` if it is in a blob file and expires, and
    /// counts its bytes there as garbage. Returns whether this is the case.
    #[inline]
    fn take_back(&mut self) -> Result<bool> {
        if self.rules.ttl.is_none() || self.input.kind() != Kind::Blob {
            return Ok(false);
        }
        let Some(blobs) = &self.rules.blobs else { return Ok(false) };
        blobs.load(self.input.value(), &mut self.value)?;
        self.count_garbage();
        Ok(true)
    }

    /// Removes the newest version, which has expired or was rejected by the filter. A tombstone
    /// replaces it while older versions may exist.
    fn remove_filtered(&mut self, seqno: Seqno) -> Result<bool> {
        debug_assert!(self.hidden_stripe.is_some(), "an older version would become visible");
        self.dropped.filtered += 1;
        self.input.next()?;
        if self.rules.snapshots.is_empty() && !(self.has_older)(&self.key)? {
            return Ok(false);
        }
        self.value.clear();
        self.current = Current::Made(seqno, Kind::Delete);
        Ok(true)
    }

    fn keep_tombstone(&mut self, seqno: Seqno, stripe: Seqno) -> Result<bool> {
        self.hidden_stripe = Some(stripe);
        debug_assert!(self.input.kind() == Kind::Delete, "a tombstone of kind {:?}", self.input.kind());
        if self.rules.seen_by_all(seqno) && !(self.has_older)(&self.key)? {
            self.dropped.tombstones += 1;
            self.input.next()?;
            return Ok(false);
        }
        self.current = Current::Input(seqno);
        Ok(true)
    }

    /// Consumes the merge operands of one stripe and the entry below them, if it is in the same
    /// stripe. Leaves the result in `pending`.
    fn merge(&mut self, stripe: Seqno) -> Result<()> {
        debug_assert!(self.pending.is_empty(), "survivors of the previous merge are left");
        debug_assert!(self.input.kind() == Kind::Merge, "a merge of {:?}", self.input.kind());
        let newest = self.input.seqno();
        let mut operands: Vec<(Seqno, Vec<u8>)> = Vec::new(); // newest first
        let mut base: Option<(Seqno, Kind, Vec<u8>)> = None;
        let mut is_hidden = false;
        while self.input.valid() && self.input.key() == self.key.as_slice() {
            let seqno = self.input.seqno();
            if self.rules.stripe(seqno) != stripe {
                break;
            }
            if self.rules.is_covered(&self.key, seqno) {
                is_hidden = true;
                break;
            }
            let (kind, value) = if self.take_back()? {
                (Kind::Put, std::mem::take(&mut self.value))
            } else {
                (self.input.kind(), self.input.value().to_vec())
            };
            self.input.next()?;
            if kind == Kind::Merge {
                operands.push((seqno, value));
            } else {
                base = Some((seqno, kind, value));
                break;
            }
        }
        debug_assert!(!operands.is_empty(), "the merge began at an operand");
        debug_assert!(base.is_none() || !is_hidden, "a base below a range tombstone");
        let is_end = base.is_some() || is_hidden;
        self.hidden_stripe = is_end.then_some(stripe);
        // Checks whether this is the start of the key's history: nothing older exists, and all
        // snapshots see it.
        let oldest = operands.last().map_or(newest, |(seqno, _)| *seqno);
        let has_more = self.input.valid() && self.input.key() == self.key.as_slice();
        let may_be_first = !is_end && !has_more && self.rules.seen_by_all(oldest);
        let is_first = may_be_first && !(self.has_older)(&self.key)?;
        let parts: Vec<&[u8]> = operands.iter().rev().map(|(_, value)| value.as_slice()).collect();
        if (is_end || is_first)
            && let Some(merged) = self.merged(base.as_ref(), &parts)?
        {
            if let Some((_, Kind::Blob, reference)) = &base {
                self.count_garbage_of(BlobRef::decode(reference));
            }
            let seqno = self.final_seqno(newest)?;
            self.pending.push((seqno, Kind::Put, merged));
            return Ok(());
        }
        // There is no base, or the operator produced no value: the operands stay, combined into one
        // if the operator can.
        let fits = |value: &Vec<u8>| value.len() <= VALUE_BYTES_MAX;
        let whole = match self.rules.operator.as_ref().filter(|_| parts.len() > 1) {
            Some(operator) => self.called(|key| operator.merge_operands(key, &parts))?.flatten().filter(fits),
            None => None,
        };
        match base {
            // Operands on a tombstone give the same result as on nothing.
            Some((seqno, Kind::Delete, _))
                if self.rules.seen_by_all(seqno) && !(self.has_older)(&self.key)? =>
            {
                self.dropped.tombstones += 1;
            }
            Some(base) => self.pending.push(base),
            None => {}
        }
        match whole {
            Some(value) => self.pending.push((newest, Kind::Merge, value)),
            None => self
                .pending
                .extend(operands.into_iter().rev().map(|(seqno, value)| (seqno, Kind::Merge, value))),
        }
        debug_assert!(!self.pending.is_empty(), "the operands are lost");
        Ok(())
    }

    /// Returns the result of applying `operands`, oldest first, to `base`. Returns `None` if there
    /// is no operator, if it rejects the operands, if the base is in a damaged blob file, or if the
    /// result is too long for a value. The entries then stay unchanged, and reads of the key return
    /// the error. One bad key must not stop the store.
    fn merged(
        &mut self,
        base: Option<&(Seqno, Kind, Vec<u8>)>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        debug_assert!(!operands.is_empty(), "a merge without operands");
        let Some(operator) = self.rules.operator.clone() else { return Ok(None) };
        let mut loaded = Vec::new();
        let base = match base {
            Some((_, Kind::Blob, reference)) => {
                let Some(blobs) = &self.rules.blobs else { return Ok(None) };
                match blobs.load(reference, &mut loaded) {
                    Err(Error::Corruption { .. }) => return Ok(None),
                    result => result?,
                }
                Some(loaded.as_slice())
            }
            Some((_, Kind::Put, value)) => Some(value.as_slice()),
            _ => None,
        };
        let merged = self.called(|key| operator.merge(key, base, operands))?.and_then(|merged| merged.ok());
        Ok(merged.filter(|merged| merged.len() <= VALUE_BYTES_MAX))
    }

    /// Calls the operator for the current key. Returns `None` if it panics and `keeps_unmerged` is
    /// set.
    fn called<T>(&self, code: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        match user_code::call(self.rules.keyspace, &self.key, OPERATOR, || code(&self.key)) {
            Err(_) if self.rules.keeps_unmerged => Ok(None),
            result => result.map(Some),
        }
    }
}
