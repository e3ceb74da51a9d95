//! Stores for tests: a correct one in memory, and variants of it with planted faults.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use cairn_vfs::{Clock, SystemClock};

use crate::core::error::{Error, Result};
use crate::core::settings::Settings;
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;
use crate::stores::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};

/// The fault of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No fault.
    None,
    /// Every 97th put has no effect.
    LosesPuts,
    /// Keeps the first value of a key forever.
    KeepsOldValues,
    /// Every 97th successful get returns the value of another key.
    MixesUpKeys,
    /// Deletes have no effect.
    KeepsDeleted,
    /// The last write of a batch is missing.
    CutsBatches,
    /// Finds absent keys.
    FindsTheAbsent,
    /// Omits one entry from every scan.
    ScansWithGaps,
    /// Returns the answers of a multi-get in the wrong places.
    ShiftsMultiGets,
    /// Changes one byte of long values.
    FlipsBytes,
    /// Fails at the 50th put.
    Fails,
    /// Defers work: each flush takes a while.
    SettlesLate,
    /// A full scan allocates [`COPY_BYTES`].
    CopiesInScans,
}

/// Duration of a flush with [`Fault::SettlesLate`].
pub(crate) const SETTLES_IN: Duration = Duration::from_millis(40);
/// Memory of a full scan with [`Fault::CopiesInScans`].
pub(crate) const COPY_BYTES: usize = 96 << 20;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A map behind a lock.
#[derive(Debug)]
pub(crate) struct Planted {
    pub(crate) name: &'static str,
    pub(crate) fault: Fault,
}

impl KvStore for Planted {
    fn name(&self) -> &str {
        self.name
    }

    fn title(&self) -> &str {
        self.name
    }

    fn version(&self) -> String {
        "1".to_owned()
    }

    fn guarantee(&self, _: Durability) -> Guarantee {
        Guarantee::weaker("a map in memory")
    }

    fn settings(&self, _: &KvSettings) -> Settings {
        Settings::new()
    }

    fn code(&self, _: &KvSettings) -> String {
        String::new()
    }

    fn open(&self, _: &Path, _: &KvSettings) -> Result<Box<dyn KvDb>> {
        Ok(Box::new(Open { fault: self.fault, map: Arc::default() }))
    }
}

struct Open {
    fault: Fault,
    map: Arc<RwLock<(Map, u64)>>,
}

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(Session { fault: self.fault, map: self.map.clone(), gets: 0 }))
    }

    fn flush(&self) -> Result<()> {
        let clock = SystemClock::new();
        let start = clock.now();
        while self.fault == Fault::SettlesLate && clock.now() - start < SETTLES_IN {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct Session {
    fault: Fault,
    map: Arc<RwLock<(Map, u64)>>,
    gets: u64,
}

impl Session {
    fn apply(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let (map, puts) = &mut *self.map.write().unwrap();
        *puts += u64::from(value.is_some());
        let turn = puts.is_multiple_of(97);
        match (value, self.fault) {
            (Some(_), Fault::LosesPuts) if turn => {}
            (Some(_), Fault::KeepsOldValues) if map.contains_key(key) => {}
            (Some(_), Fault::Fails) if *puts == 50 => {
                return Err(Error::engine("planted", "the disk is gone"));
            }
            (Some(value), Fault::FlipsBytes) if value.len() > 8 => {
                let mut value = value.to_vec();
                *value.last_mut().unwrap() ^= 1;
                map.insert(key.to_vec(), value);
            }
            (Some(value), _) => {
                map.insert(key.to_vec(), value.to_vec());
            }
            (None, Fault::KeepsDeleted) => {}
            (None, _) => {
                map.remove(key);
            }
        }
        Ok(())
    }
}

impl KvSession for Session {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.apply(key, Some(value))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.apply(key, None)
    }

    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        let mut batch = Batch(Vec::new());
        fill(&mut batch)?;
        if self.fault == Fault::CutsBatches {
            batch.0.pop();
        }
        batch.0.iter().try_for_each(|(key, value)| self.apply(key, value.as_deref()))
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (map, _) = &*self.map.read().unwrap();
        self.gets += u64::from(map.contains_key(key));
        let turn = self.gets.is_multiple_of(97);
        let value = match map.get(key) {
            Some(_) if self.fault == Fault::MixesUpKeys && turn => map.values().next_back(),
            None if self.fault == Fault::FindsTheAbsent => map.values().next(),
            value => value,
        };
        value.map(|value| visit(value)).map_or(Ok(false), |()| Ok(true))
    }

    fn multi_get(&mut self, keys: &[&[u8]], visit: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        let (map, _) = &*self.map.read().unwrap();
        for (place, key) in keys.iter().enumerate() {
            let shifted = if self.fault == Fault::ShiftsMultiGets { (place + 1) % keys.len() } else { place };
            visit(shifted, map.get(*key).map(Vec::as_slice));
        }
        Ok(())
    }

    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let (map, _) = &*self.map.read().unwrap();
        if self.fault == Fault::CopiesInScans && from.is_empty() {
            std::hint::black_box(vec![1_u8; COPY_BYTES]);
        }
        let from: &[u8] = from;
        for (place, (key, value)) in
            map.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).enumerate()
        {
            if self.fault == Fault::ScansWithGaps && place == 2 {
                continue;
            }
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }
}

struct Batch(Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl KvBatch for Batch {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.push((key.to_vec(), Some(value.to_vec())));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.push((key.to_vec(), None));
        Ok(())
    }
}
