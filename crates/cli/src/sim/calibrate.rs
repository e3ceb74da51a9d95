//! `cairn sim calibrate`: creates a hardware profile of this machine, or one from output of
//! db_bench and RocksDB.

use std::path::Path;
use std::sync::Arc;

use cairn_bench::catalog::installed;
use cairn_bench::core::probe::{ProbeEffort, measure};
use cairn_bench::suites::sim::{self, Data, measure_codecs};
use cairn_sim::options::Compression;
use cairn_sim::profiles::HardwareProfile;
use cairn_sim::{Config, Hardware, import};
use cairn_vfs::Fs;

use super::profiles;
use super::run::tell;
use crate::args::sim::CalibrateArgs;
use crate::args::work_dir;
use crate::bench::{read_text, write_file};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output};

/// Creates the profile.
pub fn run(fs: &Arc<dyn Fs>, args: &CalibrateArgs) -> Result<Outcome> {
    let mut hardware = match &args.base {
        Some(name) => profiles::hardware(fs, "--base", name)?.hardware,
        None => Hardware::default(),
    };
    if args.db_bench.is_none() && args.log.is_none() {
        let dir = work_dir(args.work_dir.as_deref());
        fs.create_dir_all(&dir)?;
        this_machine(&mut hardware, &dir)?;
    }
    let mut notes = Vec::new();
    if let Some(path) = &args.db_bench {
        let text = read_text(fs, path)?;
        notes.extend(import::apply_db_bench(&mut hardware, &text, &path.display().to_string())?);
    }
    if let Some(path) = &args.log {
        let text = read_text(fs, path)?;
        notes.extend(import::apply_log(&mut hardware, &text, &path.display().to_string())?);
    }
    tell(&notes);
    if let Some(name) = &args.name {
        hardware.name = name.clone();
    }
    hardware.check()?;
    let profile = HardwareProfile { compression: None, hardware };
    let json =
        serde_json::to_string_pretty(&profile).map_err(|error| Error::usage(error.to_string()))? + "\n";
    match &args.out {
        Some(path) => write_file(fs, path, json.as_bytes())?,
        None => {
            let mut out = Output::new();
            out.bytes(json.as_bytes())?;
            out.finish()?;
        }
    }
    Ok(Outcome::Done)
}

/// The size of the files that are written to measure the disk.
const SYNCED_BYTES: u64 = 16 << 20;

/// Measures the disk, cores, codecs and operation costs of this machine.
fn this_machine(hardware: &mut Hardware, dir: &Path) -> Result<()> {
    let probes = measure(dir, ProbeEffort::quick())?;
    let value = |name: &str| {
        let found = probes.iter().find(|probe| probe.name.starts_with(name)).map(|probe| probe.value);
        found.filter(|value| value.is_finite() && *value > 0.0)
    };
    let disk = &mut hardware.disk;
    disk.read_mb_per_sec = value("sequential read 1 MiB").unwrap_or(disk.read_mb_per_sec);
    disk.read_latency_us = value("random read 4 KiB p50").unwrap_or(disk.read_latency_us);
    sim::measure_syncs(disk, dir, SYNCED_BYTES)?;
    hardware.cores = sim::measure_cores()?;
    let mut config = Config::default();
    config.options.compression = Compression::Snappy;
    hardware.codecs = measure_codecs(&config, &Data::new(&config)?)?;
    let options = sim::Options { work_dir: Some(dir.to_owned()), ..sim::Options::default() };
    let (store, costs) = sim::measure_costs(&options, installed())?;
    hardware.cpu = costs;
    hardware.cpu.sleep_extra_us = sim::measure_sleep_extra_us();
    hardware.name = "this machine".to_owned();
    hardware.source = format!(
        "measured by cairn sim calibrate: disk, cores, codecs, and the cost of operations of {store}; filters, blocks in the \
         cache and steps of scans are defaults"
    );
    Ok(())
}
