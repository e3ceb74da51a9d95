//! Divides disk and cores between two events, and names the bottleneck.

use super::Simulation;
use super::jobs::Active;
use crate::config::Config;
use crate::options::Engine;
use crate::resource::{Flow, RESOURCES, Resource, Work, share};
use crate::results::Bottleneck;
use crate::stall::Stall;
use crate::tree::Tree;

/// Headers of a log record and of its batch.
const WAL_RECORD_BYTES: f64 = 7.0 + 12.0 + 3.0;

/// The shortest sleep of a delayed writer in RocksDB.
const ROCKSDB_SLEEP_SECS: f64 = 1e-3;

/// The debt at which a delayed writer of Cairn sleeps.
const CAIRN_SLEEP_SECS: f64 = 200e-6;

/// Returns the log bytes of a write; 0 without a log.
pub(super) fn wal_bytes(config: &Config) -> f64 {
    if config.options.wal { config.write_bytes() + WAL_RECORD_BYTES } else { 0.0 }
}

/// Returns how long a write waits for the sync of the log; 0 without a log.
fn log_sync_us(config: &Config) -> f64 {
    let options = &config.options;
    if options.wal && options.wal_sync { config.hardware.disk.sync_latency_us } else { 0.0 }
}

/// Results of the last division of resources, kept from event to event.
#[derive(Debug, Clone)]
pub(super) struct ResourceShares {
    flows: Vec<Flow>,
    speeds: Vec<f64>,
    limited_by: Vec<Option<Resource>>,
    /// Utilization of resources.
    pub(super) used: [f64; RESOURCES],
    pub(super) bottleneck: Bottleneck,
    /// The share of time that a delayed writer sleeps, which is the time that its writes leave
    /// over. 0 when the delayed rate does not slow writers down.
    pub(super) asleep: f64,
    /// Seconds of a write that does not stall.
    pub(super) put_secs: f64,
    levels: Vec<u64>,
    are_levels_known: bool,
}

impl Default for ResourceShares {
    fn default() -> Self {
        ResourceShares {
            flows: Vec::new(),
            speeds: Vec::new(),
            limited_by: Vec::new(),
            used: [0.0; RESOURCES],
            bottleneck: Bottleneck::Nothing,
            asleep: 0.0,
            put_secs: 0.0,
            levels: Vec::new(),
            are_levels_known: false,
        }
    }
}

impl ResourceShares {
    /// Returns the speed of a job, by its index.
    pub(super) fn speed(&self, at: usize) -> f64 {
        self.speeds.get(at).copied().unwrap_or(0.0)
    }

    /// Returns the seconds until the first job ends.
    pub(super) fn first_job_end(&self, active: &[Active]) -> Option<f64> {
        active
            .iter()
            .enumerate()
            .map(|(at, job)| job.left * job.flow.alone_secs / self.speed(at).max(1e-12))
            .min_by(f64::total_cmp)
    }

    /// Notes that the tree has changed.
    pub(super) fn forget_levels(&mut self) {
        self.are_levels_known = false;
    }

    /// Returns the bytes of each level, summed once after each change.
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
    /// Divides disk and cores among jobs, writers and readers. Returns the rate of writers in bytes
    /// a second.
    pub(super) fn share_resources(&mut self) -> f64 {
        let wanted = if self.backlog > 0.0 { f64::INFINITY } else { self.traffic.bytes_per_sec };
        let (rate, limit, unlimited) = self.writer_rate(wanted);
        self.shares.flows.clear();
        self.shares.flows.extend(self.active.iter().map(|job| job.flow));
        let writer = (rate > 0.0).then(|| self.writer_flow(rate));
        self.shares.flows.extend(writer);
        if let Some(flow) = self.reader_flow() {
            self.shares.flows.push(flow);
        }
        let shares = &mut self.shares;
        shares.used = share(&shares.flows, &mut shares.speeds, &mut shares.limited_by);
        let at = self.active.len();
        let speed = if writer.is_some() { shares.speeds.get(at).copied().unwrap_or(0.0) } else { 0.0 };
        let accepted = rate * speed;
        debug_assert!(
            rate >= 0.0 && rate <= unlimited * (1.0 + 1e-9),
            "found writers at {rate} of {unlimited}"
        );
        let held_writer = shares.limited_by.get(at).copied().flatten().filter(|_| writer.is_some());
        let held_job = shares.limited_by.iter().take(at).copied().flatten().next();
        let is_behind = wanted > accepted * (1.0 + 1e-9);
        let is_delay_felt = is_behind && limit == Limit::Delay && held_writer.is_none();
        shares.asleep = if is_delay_felt { 1.0 - accepted / unlimited } else { 0.0 };
        debug_assert!((0.0..=1.0).contains(&shares.asleep), "found writers asleep for {}", shares.asleep);
        shares.bottleneck = match (is_behind, held_writer, limit) {
            (true, Some(resource), _) => Bottleneck::Resource(resource),
            (true, None, Limit::Stop | Limit::Delay) => match self.controller.stall.cause() {
                Some(cause) => Bottleneck::Stall(cause),
                None => Bottleneck::Writers,
            },
            (true, None, Limit::Writers) => Bottleneck::Writers,
            _ => held_job.map_or(Bottleneck::Nothing, Bottleneck::Resource),
        };
        let put_us = self.config.hardware.cpu.put_us;
        shares.put_secs = (put_us / speed.clamp(0.01, 1.0) + log_sync_us(&self.config)) * 1e-6;
        accepted
    }

    /// Returns the rate of writers before contention, the limit that holds them back, and the rate
    /// without any limit.
    fn writer_rate(&self, wanted: f64) -> (f64, Limit, f64) {
        let hardware = &self.config.hardware;
        let secs = (hardware.cpu.put_us + log_sync_us(&self.config)) * 1e-6;
        let unlimited = hardware.cpu.writers * self.config.write_bytes() / secs;
        let (mut rate, mut limit) = (wanted.min(unlimited), Limit::Writers);
        match self.controller.stall {
            Stall::None => {}
            Stall::Stopped(_) => (rate, limit) = (0.0, Limit::Stop),
            Stall::Delayed(_) => {
                let delayed = match self.config.options.engine {
                    Engine::Rocksdb => self.controller.delayed_rate,
                    Engine::CairnKv => self.cairn_delayed_rate(unlimited),
                };
                if delayed < rate {
                    (rate, limit) = (delayed, Limit::Delay);
                }
            }
        }
        (rate, limit, unlimited)
    }

    /// A delayed writer of Cairn sleeps for each byte in addition to writing it. It sleeps once it
    /// owes enough, and does not credit the time by which a sleep was too long. RocksDB's writers
    /// go by the time that has passed.
    fn cairn_delayed_rate(&self, unlimited: f64) -> f64 {
        let rate = self.controller.delayed_rate;
        debug_assert!(rate > 0.0, "found delayed writers at a rate of {rate}");
        let owed_secs = CAIRN_SLEEP_SECS.max(self.config.write_bytes() / rate);
        let too_long = 1.0 + self.config.hardware.cpu.sleep_extra_us * 1e-6 / owed_secs;
        1.0 / (too_long / rate + 1.0 / unlimited)
    }

    /// Returns the shortest sleep of a delayed writer. Shorter delays are collected into one sleep,
    /// so that other writers can go on in the meantime.
    pub(super) fn shortest_sleep_secs(&self) -> f64 {
        match self.config.options.engine {
            Engine::Rocksdb => ROCKSDB_SLEEP_SECS,
            Engine::CairnKv => CAIRN_SLEEP_SECS + self.config.hardware.cpu.sleep_extra_us * 1e-6,
        }
    }

    /// Returns the flow of one second of writing at a rate.
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

    /// Returns the flow of one second of reading, at the current cost of lookups.
    fn reader_flow(&self) -> Option<Flow> {
        let work = self.reads.as_ref()?.work_per_sec(&self.config)?;
        Some(self.capacity.flow_per_second(&work))
    }
}

/// The limit that holds writers back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Writers,
    Delay,
    Stop,
}
