//! The buffer between a recording thread and the thread that writes its operations.
//!
//! ```text
//!            head: written up to here             tail: recorded up to here
//!   words  ─────┴──[operation│key│key][time][operation│key]──┴─────  round and round
//!
//!   operation   kind 4 bits · joined 1 · backwards 1 · state 2 · key bytes 12 · keyspace 12 ·
//!               number 32, followed by the key's hash, or by the key in words
//!   time        kind 15 in 4 bits · nanoseconds since the start 60
//! ```
//!
//! There is one producer. There is one consumer at a time, which holds the lane's lock. Words are
//! relaxed atomics, which are plain moves on the processors that matter. Head and tail are stored
//! with release and loaded with acquire. Unless the trace keeps raw keys, keys are hashed before
//! they enter the ring: the cost is the number of cache lines that move from the thread's core to
//! the other one and back.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_vfs::sync::{CacheAligned, Mutex, lock};

use crate::event::Detail;
use crate::format::{KeyForm, StoredKey};

/// The size of a ring in words, 256 KiB: some 16,000 operations, or five milliseconds of lookups in
/// memory. With a smaller ring the helper comes too late if its core has other work, and a thread
/// that drains its own ring, or wakes the helper, pays more than this size costs in cache misses.
pub(super) const WORDS: usize = 1 << 15;
/// Longer raw keys bypass the ring.
pub(super) const KEY_BYTES: usize = 1024;
/// Hashed keys whose original is longer bypass the ring.
const HASHED_BYTES: usize = (1 << 12) - 1;

const KIND_BITS: u64 = 0x0f;
const TIME: u64 = 0x0f;
const JOINED: u64 = 1 << 4;
const BACKWARDS: u64 = 1 << 5;
const STATE_SHIFT: u32 = 6;
const KEY_SHIFT: u32 = 8;
const KEYSPACE_SHIFT: u32 = 20;
const NUMBER_SHIFT: u32 = 32;

const _: () = assert!(KEY_BYTES <= HASHED_BYTES && (KEY_BYTES / 8 + 2) * 4 < WORDS);

/// Encodes the first word of an operation. Returns `None` for a rare or large operation, which
/// bypasses the ring.
#[inline(always)]
pub(super) fn operation(keyspace: u32, key: StoredKey<'_>, detail: Detail<'_>, joined: bool) -> Option<u64> {
    let (kind, state, number) = match detail {
        Detail::Get(Some(None)) => (0, 0, 0),
        Detail::Get(None) => (0, 1, 0),
        Detail::Get(Some(Some(bytes))) => (0, 2, bytes),
        Detail::Put(bytes) => (1, 0, bytes),
        Detail::Delete => (2, 0, 0),
        Detail::Merge(bytes) => (3, 0, bytes),
        Detail::Scan { entries, backwards } => (4 | if backwards { BACKWARDS } else { 0 }, 0, entries),
        Detail::Block { bytes, hit } => (7, hit.map_or(0, |hit| if hit { 1 } else { 2 }), bytes),
        Detail::DeleteRange { .. } | Detail::Statement(_) => return None,
    };
    let (key_bytes, longest) = match key {
        StoredKey::Hash(_, bytes) => (bytes as usize, HASHED_BYTES),
        StoredKey::Raw(key) => (key.len(), KEY_BYTES),
    };
    if key_bytes > longest || keyspace >= 1 << 12 || number > u64::from(u32::MAX) {
        return None;
    }
    Some(
        kind | if joined { JOINED } else { 0 }
            | state << STATE_SHIFT
            | (key_bytes as u64) << KEY_SHIFT
            | u64::from(keyspace) << KEYSPACE_SHIFT
            | number << NUMBER_SHIFT,
    )
}

/// An item in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// The time of the operations that follow.
    Time(u64),
    /// An operation.
    Operation { joined: bool, keyspace: u32, key: StoredKey<'a>, detail: Detail<'static> },
}

/// The position of the producer.
#[derive(Debug, Default)]
pub(super) struct Place {
    tail: Cell<u64>,
    /// The tail may advance to this position, according to the head when it was last loaded.
    limit: Cell<u64>,
}

impl Place {
    pub const fn new() -> Place {
        Place { tail: Cell::new(0), limit: Cell::new(0) }
    }
}

/// Rings that no recorder uses. Rings are never freed, so that a thread can hold a reference to its
/// ring without a reference count.
static FREE: Mutex<Vec<&'static Ring>> = Mutex::new(Vec::new());

/// A ring of words with a single producer and a single consumer.
#[derive(Debug)]
pub(super) struct Ring {
    words: [AtomicU64; WORDS],
    head: CacheAligned<AtomicU64>,
    tail: CacheAligned<AtomicU64>,
}

impl Ring {
    /// Returns an empty ring. The caller gives it back with [`Ring::give_back`].
    pub fn take() -> &'static Ring {
        let free = lock(&FREE).pop();
        free.unwrap_or_else(|| {
            let words = [const { AtomicU64::new(0) }; WORDS];
            Box::leak(Box::new(Ring { words, head: CacheAligned::default(), tail: CacheAligned::default() }))
        })
    }

    /// Returns the ring to the free list for another recorder. Its contents are lost.
    pub fn give_back(&'static self) {
        self.head.0.store(self.tail.0.load(Ordering::Acquire), Ordering::Release);
        lock(&FREE).push(self);
    }

    /// Makes the calling thread the producer.
    pub fn enter(&self, place: &Place) {
        place.tail.set(self.tail.0.load(Ordering::Acquire));
        place.limit.set(self.head.0.load(Ordering::Acquire) + WORDS as u64);
    }

    #[inline]
    fn word(&self, at: u64) -> &AtomicU64 {
        // The mask keeps the index in bounds.
        &self.words[at as usize % WORDS]
    }

    /// Puts an operation into the ring. Returns false if there is no room.
    #[inline(always)]
    pub fn push(&self, place: &Place, operation: u64, key: StoredKey<'_>) -> bool {
        let tail = place.tail.get();
        let words = match key {
            StoredKey::Hash(..) => 1,
            StoredKey::Raw(key) => key.len().div_ceil(8),
        };
        let end = tail + 1 + words as u64;
        if !self.has_room(place, end) {
            return false;
        }
        self.word(tail).store(operation, Ordering::Relaxed);
        match key {
            StoredKey::Hash(hash, _) => self.word(tail + 1).store(hash, Ordering::Relaxed),
            StoredKey::Raw(key) => self.put_key(tail + 1, key),
        }
        self.show(place, end);
        true
    }

    #[inline(always)]
    fn put_key(&self, at: u64, key: &[u8]) {
        let (words, rest) = key.as_chunks::<8>();
        let put = |at: u64, word: &[u8; 8]| self.word(at).store(u64::from_le_bytes(*word), Ordering::Relaxed);
        match words {
            // Handle the usual lengths without the loop that the compiler optimizes for long keys.
            [] => {}
            [one] => put(at, one),
            [one, two] => {
                put(at, one);
                put(at + 1, two);
            }
            more => (at..).zip(more).for_each(|(at, word)| put(at, word)),
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(slot, byte)| *slot = *byte);
            put(at + words.len() as u64, &word);
        }
    }

    /// Puts the time of the operations that follow into the ring. Returns false if there is no
    /// room.
    #[inline]
    pub fn push_time(&self, place: &Place, now_ns: u64) -> bool {
        let tail = place.tail.get();
        if !self.has_room(place, tail + 1) {
            return false;
        }
        self.word(tail).store(now_ns << 4 | TIME, Ordering::Relaxed);
        self.show(place, tail + 1);
        true
    }

    #[inline]
    fn has_room(&self, place: &Place, end: u64) -> bool {
        end <= place.limit.get() || end <= self.look_at_head(place)
    }

    #[cold]
    fn look_at_head(&self, place: &Place) -> u64 {
        // ORDER: words are reused only after the consumer has read them.
        let limit = self.head.0.load(Ordering::Acquire) + WORDS as u64;
        place.limit.set(limit);
        limit
    }

    #[inline]
    fn show(&self, place: &Place, end: u64) {
        place.tail.set(end);
        // ORDER: a consumer that sees the tail sees the words before it.
        self.tail.0.store(end, Ordering::Release);
    }

    /// Returns true if more than half of the ring is in use.
    #[inline]
    pub fn is_filling(&self, place: &Place) -> bool {
        let is_past = |limit: u64| place.tail.get() + WORDS as u64 / 2 > limit;
        is_past(place.limit.get()) && is_past(self.look_at_head(place))
    }

    /// Returns the number of words in use.
    pub fn used(&self) -> u64 {
        // ORDER: load the head first. The producer may put and drain between the two loads, and the
        // tail never falls behind an earlier head.
        let head = self.head.0.load(Ordering::Acquire);
        self.tail.0.load(Ordering::Acquire).saturating_sub(head)
    }

    /// Takes up to `words_max` words out of the ring, plus the rest of the last operation, and
    /// passes each item to `take`. `keys` is the form in which all keys were put in. Only one
    /// thread at a time may call this.
    pub fn drain(&self, keys: KeyForm, words_max: u64, mut take: impl FnMut(Item<'_>)) {
        let tail = self.tail.0.load(Ordering::Acquire);
        let mut at = self.head.0.load(Ordering::Relaxed);
        let stop = tail.min(at.saturating_add(words_max));
        let mut bytes = [[0; 8]; KEY_BYTES / 8];
        while at < stop {
            let first = self.word(at).load(Ordering::Relaxed);
            at += 1;
            if first & KIND_BITS == TIME {
                take(Item::Time(first >> 4));
                continue;
            }
            let key_bytes = (first >> KEY_SHIFT) as usize & HASHED_BYTES;
            if keys == KeyForm::Hashed {
                let hash = self.word(at).load(Ordering::Relaxed);
                at += 1;
                take(of_words(first, StoredKey::Hash(hash, key_bytes as u32)));
                continue;
            }
            for slot in bytes.iter_mut().take(key_bytes.div_ceil(8)) {
                *slot = self.word(at).load(Ordering::Relaxed).to_le_bytes();
                at += 1;
            }
            let key = bytes.as_flattened().get(..key_bytes).unwrap_or_default();
            take(of_words(first, StoredKey::Raw(key)));
        }
        self.head.0.store(at, Ordering::Release);
    }
}

/// Decodes the operation that begins with this word.
#[inline]
fn of_words(first: u64, key: StoredKey<'_>) -> Item<'_> {
    let (state, number) = (first >> STATE_SHIFT & 3, first >> NUMBER_SHIFT);
    let detail = match first & KIND_BITS {
        0 => Detail::Get(match state {
            0 => Some(None),
            1 => None,
            _ => Some(Some(number)),
        }),
        1 => Detail::Put(number),
        2 => Detail::Delete,
        3 => Detail::Merge(number),
        4 => Detail::Scan { entries: number, backwards: first & BACKWARDS != 0 },
        _ => Detail::Block { bytes: number, hit: (state > 0).then_some(state == 1) },
    };
    Item::Operation {
        joined: first & JOINED != 0,
        keyspace: (first >> KEYSPACE_SHIFT) as u32 & 0xfff,
        key,
        detail,
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::{Rng, SeededRng, thread};

    use super::*;

    /// Goal: operations of each kind and size come out as they went in, and those that do not fit
    /// are refused.
    #[test]
    fn ring_returns_items_in_order() {
        let (ring, long) = (Ring::take(), [7; KEY_BYTES + 1]);
        let details = [
            Detail::Get(None),
            Detail::Get(Some(None)),
            Detail::Get(Some(Some(0))),
            Detail::Get(Some(Some(u64::from(u32::MAX)))),
            Detail::Put(100),
            Detail::Delete,
            Detail::Merge(3),
            Detail::Scan { entries: 5, backwards: true },
            Detail::Scan { entries: 0, backwards: false },
            Detail::Block { bytes: 4096, hit: None },
            Detail::Block { bytes: 4096, hit: Some(true) },
            Detail::Block { bytes: 1, hit: Some(false) },
        ];
        let place = Place::new();
        ring.enter(&place);
        for (number, detail) in details.iter().enumerate() {
            let key = &long[..[0, 1, 7, 8, 9, 16, KEY_BYTES][number % 7]];
            let joined = number % 2 == 1;
            let keyspace = number as u32 * 372;
            assert!(ring.push_time(&place, number as u64 * 1_000));
            let (key, form) = match number % 3 {
                0 => (StoredKey::Hash(u64::MAX - number as u64, key.len() as u32 * 3), KeyForm::Hashed),
                _ => (StoredKey::Raw(key), KeyForm::Raw),
            };
            let first = operation(keyspace, key, *detail, joined).unwrap();
            assert!(ring.push(&place, first, key));
            let mut items = 0;
            ring.drain(form, u64::MAX, |item| {
                match items {
                    0 => assert_eq!(item, Item::Time(number as u64 * 1_000)),
                    _ => assert_eq!(item, Item::Operation { joined, keyspace, key, detail: *detail }),
                }
                items += 1;
            });
            assert_eq!((items, ring.used()), (2, 0));
        }
        let key = StoredKey::Raw(b"key");
        assert_eq!(operation(0, StoredKey::Raw(&long), Detail::Delete, false), None);
        assert_eq!(operation(0, StoredKey::Hash(1, 1 << 12), Detail::Delete, false), None);
        assert_eq!(operation(1 << 12, key, Detail::Delete, false), None);
        assert_eq!(operation(0, key, Detail::Put(1 << 32), false), None);
        assert_eq!(operation(0, key, Detail::Statement(1), false), None);
    }

    /// Goal: a full ring refuses operations and has room again after a drain; nothing is lost or
    /// mixed up when it wraps around. Method: keys of all lengths, some thousand rounds.
    #[test]
    fn ring_wraps_around() {
        let (ring, place, mut rng) = (Ring::take(), Place::new(), SeededRng::new(3));
        ring.enter(&place);
        let (mut put, mut taken) = (0_u64, 0_u64);
        let key_of = |number: u64| vec![number as u8; (number * 7 % 41) as usize];
        for _ in 0..500 {
            loop {
                let key = key_of(put);
                let key = StoredKey::Raw(&key);
                let first = operation(0, key, Detail::Put(put & 0xffff), false).unwrap();
                if !ring.push(&place, first, key) {
                    assert!(ring.is_filling(&place) && ring.used() > WORDS as u64 - 8);
                    break;
                }
                put += 1;
            }
            ring.drain(KeyForm::Raw, rng.below(WORDS as u64) + 1, |item| {
                let key = key_of(taken);
                let key = StoredKey::Raw(&key);
                let detail = Detail::Put(taken & 0xffff);
                assert_eq!(item, Item::Operation { joined: false, keyspace: 0, key, detail });
                taken += 1;
            });
        }
        assert!(taken > 1_000_000 && put > taken);
    }

    /// Goal: one thread can put while another one drains. Method: numbered operations for some
    /// hundred rounds.
    #[test]
    fn two_threads() {
        const COUNT: u64 = 300_000;
        let ring = Ring::take();
        thread::scope(|scope| {
            scope.spawn(|| {
                let place = Place::new();
                ring.enter(&place);
                for number in 0..COUNT {
                    let key = StoredKey::Hash(!number, 8);
                    let first = operation(0, key, Detail::Put(number), false).unwrap();
                    while !ring.push(&place, first, key) {
                        thread::yield_now();
                    }
                }
            });
            let mut expected = 0;
            while expected < COUNT {
                ring.drain(KeyForm::Hashed, 100, |item| {
                    let key = StoredKey::Hash(!expected, 8);
                    let detail = Detail::Put(expected);
                    assert_eq!(item, Item::Operation { joined: false, keyspace: 0, key, detail });
                    expected += 1;
                });
                thread::yield_now();
            }
        });
    }
}
