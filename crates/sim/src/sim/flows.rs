//! Who gets how much of disk and cores between two events, and what then is the bottleneck.

use super::Simulation;
use super::jobs::Active;
use crate::config::Config;
use crate::options::Engine;
use crate::resource::{Flow, RESOURCES, Resource, Work, share};
use crate::results::Bottleneck;
use crate::stall::Stall;
use crate::tree::Tree;

/// Header of a log record, and of its batch.
const WAL_RECORD_BYTES: f64 = 7.0 + 12.0 + 3.0;

/// RocksDB's writers sleep no shorter.
const ROCKSDB_SLEEP_SECS: f64 = 1e-3;

/// What a delayed writer of Cairn's owes before it sleeps.
const CAIRN_SLEEP_SECS: f64 = 200e-6;

/// Bytes of the log for a write; 0 without a log.
pub(super) fn wal_bytes(config: &Config) -> f64 {
    if config.options.wal { config.write_bytes() + WAL_RECORD_BYTES } else { 0.0 }
}

/// What a write waits for the log to be on stable storage; 0 without a log.
fn log_sync_us(config: &Config) -> f64 {
    let options = &config.options;
    if options.wal && options.wal_sync { config.hardware.disk.sync_latency_us } else { 0.0 }
}

/// What sharing has found; kept from event to event.
#[derive(Debug, Clone)]
pub(super) struct Scratch {
    flows: Vec<Flow>,
    speeds: Vec<f64>,
    held: Vec<Option<Resource>>,
    /// Use of resources.
    pub(super) used: [f64; RESOURCES],
    pub(super) bottleneck: Bottleneck,
    /// The share of the time that a delayed writer sleeps: what its writes leave. 0 where writers
    /// would not run faster without the delayed rate.
    pub(super) asleep: f64,
    /// A write that waits for nobody, seconds.
    pub(super) put_secs: f64,
    levels: Vec<u64>,
    are_levels_known: bool,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch {
            flows: Vec::new(),
            speeds: Vec::new(),
            held: Vec::new(),
            used: [0.0; RESOURCES],
            bottleneck: Bottleneck::Nothing,
            asleep: 0.0,
            put_secs: 0.0,
            levels: Vec::new(),
            are_levels_known: false,
        }
    }
}

impl Scratch {
    /// The speed of a job, by its place.
    pub(super) fn speed(&self, at: usize) -> f64 {
        self.speeds.get(at).copied().unwrap_or(0.0)
    }

    /// Seconds until the first job ends.
    pub(super) fn first_job_end(&self, active: &[Active]) -> Option<f64> {
        active
            .iter()
            .enumerate()
            .map(|(at, job)| job.left * job.flow.alone_secs / self.speed(at).max(1e-12))
            .min_by(f64::total_cmp)
    }

    /// The tree has changed.
    pub(super) fn forget_levels(&mut self) {
        self.are_levels_known = false;
    }

    /// Bytes of levels, summed up once a change.
    pub(super) fn level_bytes(&mut self, tree: &Tree) -> &[u64] {
        if !self.are_levels_known {
            self.levels.clear();
            self.levels.extend(tree.levels.iter().map(|level| level.bytes()));
            self.are_levels_known = true;
        }
        &self.levels
    }
}

impl Simulation {
    /// Shares disk and cores among jobs, writers and readers. Returns the rate of writers, bytes a
    /// second.
    pub(super) fn share_resources(&mut self) -> f64 {
        let wanted = if self.backlog > 0.0 { f64::INFINITY } else { self.traffic.bytes_per_sec };
        let (rate, limit, able) = self.writer_rate(wanted);
        self.flow.flows.clear();
        self.flow.flows.extend(self.active.iter().map(|job| job.flow));
        let writer = (rate > 0.0).then(|| self.writer_flow(rate));
        self.flow.flows.extend(writer);
        if let Some(flow) = self.reader_flow() {
            self.flow.flows.push(flow);
        }
        let flow = &mut self.flow;
        flow.used = share(&flow.flows, &mut flow.speeds, &mut flow.held);
        let at = self.active.len();
        let speed = if writer.is_some() { flow.speeds.get(at).copied().unwrap_or(0.0) } else { 0.0 };
        let accepted = rate * speed;
        let held_writer = flow.held.get(at).copied().flatten().filter(|_| writer.is_some());
        let held_job = flow.held.iter().take(at).copied().flatten().next();
        let is_behind = wanted > accepted * (1.0 + 1e-9);
        let is_delay_felt = is_behind && limit == Limit::Delay && held_writer.is_none();
        flow.asleep = if is_delay_felt { 1.0 - accepted / able } else { 0.0 };
        flow.bottleneck = match (is_behind, held_writer, limit) {
            (true, Some(resource), _) => Bottleneck::Resource(resource),
            (true, None, Limit::Stop | Limit::Delay) => match self.controller.stall.cause() {
                Some(cause) => Bottleneck::Stall(cause),
                None => Bottleneck::Writers,
            },
            (true, None, Limit::Writers) => Bottleneck::Writers,
            _ => held_job.map_or(Bottleneck::Nothing, Bottleneck::Resource),
        };
        let put_us = self.config.hardware.cpu.put_us;
        flow.put_secs = (put_us / speed.clamp(0.01, 1.0) + log_sync_us(&self.config)) * 1e-6;
        accepted
    }

    /// How fast writers may and can write, what holds them back, and how fast they are when nobody
    /// does.
    fn writer_rate(&self, wanted: f64) -> (f64, Limit, f64) {
        let hardware = &self.config.hardware;
        let secs = (hardware.cpu.put_us + log_sync_us(&self.config)) * 1e-6;
        let able = hardware.cpu.writers * self.config.write_bytes() / secs;
        let (mut rate, mut limit) = (wanted.min(able), Limit::Writers);
        match self.controller.stall {
            Stall::None => {}
            Stall::Stopped(_) => (rate, limit) = (0.0, Limit::Stop),
            Stall::Delayed(_) => {
                let delayed = match self.config.options.engine {
                    Engine::Rocksdb => self.controller.delayed_rate,
                    Engine::CairnKv => self.cairn_delayed_rate(able),
                };
                if delayed < rate {
                    (rate, limit) = (delayed, Limit::Delay);
                }
            }
        }
        (rate, limit, able)
    }

    /// Each byte costs Cairn's writers a sleep beside its write. They sleep when they owe enough,
    /// and what a sleep takes too long is not counted for the next one. RocksDB's count the time
    /// that has passed.
    fn cairn_delayed_rate(&self, able: f64) -> f64 {
        let rate = self.controller.delayed_rate;
        let owed_secs = CAIRN_SLEEP_SECS.max(self.config.write_bytes() / rate);
        let too_long = 1.0 + self.config.hardware.cpu.sleep_extra_us * 1e-6 / owed_secs;
        1.0 / (too_long / rate + 1.0 / able)
    }

    /// The shortest sleep of a delayed writer: short ones are taken together, so that others write
    /// in the meantime.
    pub(super) fn shortest_sleep_secs(&self) -> f64 {
        match self.config.options.engine {
            Engine::Rocksdb => ROCKSDB_SLEEP_SECS,
            Engine::CairnKv => CAIRN_SLEEP_SECS + self.config.hardware.cpu.sleep_extra_us * 1e-6,
        }
    }

    /// One second of writing at a rate.
    fn writer_flow(&self, rate: f64) -> Flow {
        let hardware = &self.config.hardware;
        let writes = rate / self.config.write_bytes();
        let work = Work {
            write_bytes: writes * wal_bytes(&self.config),
            cpu_secs: writes * hardware.cpu.put_us * 1e-6,
            threads: hardware.cpu.writers,
            ..Work::default()
        };
        self.capacity.flow_per_second(&work)
    }

    /// One second of reading, by what lookups cost now.
    fn reader_flow(&self) -> Option<Flow> {
        let work = self.reads.as_ref()?.work_per_sec(&self.config)?;
        Some(self.capacity.flow_per_second(&work))
    }
}

/// What holds writers back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Writers,
    Delay,
    Stop,
}
