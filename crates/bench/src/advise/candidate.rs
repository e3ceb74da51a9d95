//! Candidates for an answer: stores, each with settings that fit the available memory.

use serde::{Deserialize, Serialize};

use super::question::Question;
use crate::core::error::{Error, Result};
use crate::core::workload::Durability;
use crate::stores::cairn_hash_kv;
use crate::stores::catalog::Registry;
use crate::stores::guarantee::Fit;
use crate::stores::kv::{KvSettings, KvStore};
use crate::suites::kv::job::KvWorkload;
use crate::suites::kv::map_bytes;

/// Memory given to a store when the question sets no limit.
const MEMORY_BYTES: u64 = 512 << 20;
const MIB: u64 = 1 << 20;

/// A store together with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Name of the candidate, unique among candidates.
    pub name: String,
    /// Name of the store.
    pub store: String,
    /// True for Cairn's own stores.
    pub ours: bool,
    /// Settings with which the store is opened.
    pub settings: KvSettings,
}

impl Candidate {
    /// Returns the settings as source code in the store's own API, to be pasted. Errors: the store
    /// is not available in this build.
    pub(super) fn code(&self, stores: &Registry<dyn KvStore>) -> Result<String> {
        Ok(stores.get(&self.store)?.code(&self.settings))
    }

    /// Returns the bytes of all caches and buffers when full: the bound up to which the store's
    /// memory grows with its size.
    pub(super) fn memory_bound(&self, threads: u32) -> u64 {
        let buffers = if has_buffers(&self.store) { BUFFERS * self.settings.write_buffer_bytes } else { 0 };
        self.settings.cache_bytes.saturating_mul(caches(&self.store, threads)).saturating_add(buffers)
    }
}

/// A candidate that was excluded, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discarded {
    /// Name of the candidate.
    pub name: String,
    /// The reason, such as the constraint that it breaks.
    pub reason: String,
}

/// Stores with write buffers whose size can be set.
const WITH_BUFFERS: [&str; 4] = ["cairn", "rocksdb", "leveldb", "fjall"];

/// Number of write buffers that can be full at the same time.
const BUFFERS: u64 = 2;

/// The store that has a separate cache for each connection.
const PER_CONNECTION: &str = "sqlite";

fn has_buffers(store: &str) -> bool {
    WITH_BUFFERS.contains(&store)
}

/// Returns the number of caches that a store allocates for `threads` threads, each of which has a
/// connection.
fn caches(store: &str, threads: u32) -> u64 {
    if store == PER_CONNECTION { u64::from(threads.max(1)) } else { 1 }
}

/// Returns the candidates for a question, and the stores that are excluded because they promise
/// less than the workload asks for, or because they are not available.
///
/// Errors: [`Error::Invalid`] for a store name that does not exist.
pub(super) fn candidates(
    question: &Question,
    stores: &Registry<dyn KvStore>,
) -> Result<(Vec<Candidate>, Vec<Discarded>)> {
    let wanted = &question.constraints.stores;
    let mut names = stores.all_names();
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(&name.as_str())) {
        let what = format!("store {unknown:?}: expected {}", names.join(", "));
        return Err(Error::invalid(what));
    }
    names.retain(|name| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name));
    let (mut found, mut discarded) = (Vec::new(), Vec::new());
    for name in names {
        let mut discard = |reason: String| discarded.push(Discarded { name: name.to_owned(), reason });
        let store = match stores.get(name) {
            Ok(store) => store,
            Err(error) => {
                discard(format!("is not available: {error}"));
                continue;
            }
        };
        if let Some(reason) = unfit(&*store, question) {
            discard(reason);
            continue;
        }
        found.extend(with_settings(&*store, question));
    }
    Ok((found, discarded))
}

/// Returns why a store cannot be the answer, however fast it is.
fn unfit(store: &dyn KvStore, question: &Question) -> Option<String> {
    let workload = &question.workload;
    if store.name() == cairn_hash_kv::NAME {
        let shares = workload.shares();
        if shares.read < 1.0 {
            return Some("is built once and then only looked up; this workload writes or scans".to_owned());
        }
    }
    let guarantee = store.guarantee(workload.durability);
    let weaker = workload.writes() > 0.0 && guarantee.fit == Fit::Weaker;
    weaker.then(|| {
        // The store has no guarantee between these two, and its cost at the stronger one answers
        // another question.
        let keeps = workload.durability == Durability::Buffered
            && store.guarantee(Durability::Sync).fit != Fit::Weaker;
        let more = if keeps { "; it takes part with --durability sync" } else { "" };
        format!("promises less than {}: {}{more}", workload.durability, guarantee.means)
    })
}

fn with_settings(store: &dyn KvStore, question: &Question) -> Vec<Candidate> {
    let memory = question.constraints.memory_bytes.unwrap_or(MEMORY_BYTES);
    let has_buffers = has_buffers(store.name());
    let caches = caches(store.name(), question.workload.threads);
    let candidate = |name: String, buffer: u64| {
        // An eighth of the memory is left for the rest of the process.
        let buffers = if has_buffers { BUFFERS * buffer } else { 0 };
        let cache = (memory.saturating_sub(buffers + memory / 8) / caches).max(MIB);
        let settings = KvSettings {
            durability: question.workload.durability,
            cache_bytes: cache,
            write_buffer_bytes: buffer,
            map_bytes: map_bytes(
                &KvWorkload::Ycsb(question.workload.run(Vec::new())),
                question.workload.shape(),
            ),
            ..KvSettings::default()
        };
        Candidate { name, store: store.name().to_owned(), ours: store.ours(), settings }
    };
    let usual = (memory / 8).clamp(MIB, 64 * MIB);
    let mut found = vec![candidate(store.name().to_owned(), usual)];
    let large = (memory / 4).clamp(MIB, 1 << 30);
    if has_buffers && question.workload.writes() > 0.2 && large > usual {
        found.push(candidate(format!("{}, large buffers", store.name()), large));
    }
    found
}
