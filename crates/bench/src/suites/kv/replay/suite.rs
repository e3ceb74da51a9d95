//! The suite that replays a trace: one group, whose workload is the trace.

use std::collections::BTreeMap;

use super::Replay;
use crate::core::error::{Error, Result};
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::results::Run;
use crate::stores::catalog::{Catalog, Selection};
use crate::stores::kv::{KvSettings, KvStore};
use crate::suites::driver::drive;
use crate::suites::kv::job::KvWorkload;
use crate::suites::kv::outcome::Shape;
use crate::suites::kv::suite::{KvSuite, Planned};
use crate::suites::kv::{KvGroup, Options};

/// The suite's name in stored runs.
pub const NAME: &str = "replay";

/// Replays a trace on all requested stores that are available. Of `options`, only those for stores,
/// rounds and directories apply.
///
/// Errors: those of [`Replay::load`] and of [`super::run`].
pub fn run(
    options: &Options,
    replay: &Replay,
    catalog: &Catalog,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Run> {
    run_with(options, replay, catalog.kv.select(&options.dbs)?, progress, stop)
}

/// Like [`run`], with stores of the caller's choice.
pub fn run_with(
    options: &Options,
    replay: &Replay,
    stores: Selection<dyn KvStore>,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Run> {
    options.check_stores()?;
    let loaded = replay.load()?;
    if loaded.operations() == 0 {
        return Err(Error::invalid(format!(
            "{}: no operation in it can be replayed",
            replay.trace.display()
        )));
    }
    let notes = loaded.all_notes();
    notes.iter().for_each(|note| progress.note(note));
    let settings = KvSettings { map_bytes: loaded.map_bytes(), ..options.settings.clone() };
    let group = KvGroup {
        name: format!("replay of {}", replay.name),
        workload: KvWorkload::Replay(replay.clone()),
        shape: Shape { key_bytes: loaded.key_bytes_mean(), value_bytes: loaded.value_bytes_mean() },
        settings,
        timed: options.latencies && replay.speed.is_none(),
        device: false,
    };
    let speed = replay
        .speed
        .map_or_else(|| "full speed".to_owned(), |speed| format!("{speed} times the recorded speed"));
    let source = if loaded.source().is_empty() { "an unnamed source" } else { loaded.source() };
    let mut data = format!(
        "{} operations on {} keys of the trace {}, from {source}, at {speed}. Values are made up, of the recorded lengths; {} keys were \
         loaded before.",
        loaded.operations(),
        loaded.keys(),
        replay.name,
        loaded.initial()
    );
    notes.iter().for_each(|note| data += &format!(" {note}."));
    data += &format!(" For every store: {}.", options.stores_sentence());
    drop(loaded);
    // The data sentence contains all settings.
    let planned = Planned { suite: NAME, groups: vec![group], data, settings: BTreeMap::new() };
    drive(&mut KvSuite::new(options, &planned, stores), progress, stop)
}
