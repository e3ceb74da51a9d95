//! Profiles of hardware and workloads: data files that are built in or come from the user.

use std::path::Path;
use std::sync::Arc;

use cairn_sim::config::WorkloadProfile;
use cairn_sim::options::Compression;
use cairn_sim::{Config, Hardware, profiles as built_in};
use cairn_vfs::Fs;
use serde_json::json;

use crate::bench::read_text;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output};

/// A hardware profile, with the codec that it applies to, if any.
pub type HardwareProfile = built_in::HardwareProfile;

/// Loads a hardware profile by name or from a file; `option` is named in errors. Errors: there is
/// neither a profile nor a file; the file is invalid.
pub fn hardware(fs: &Arc<dyn Fs>, option: &str, name: &str) -> Result<HardwareProfile> {
    if let Some(profile) = built_in::hardware(name) {
        return Ok(profile?);
    }
    let path = Path::new(name);
    if !fs.exists(path)? {
        let known = built_in::hardware_names().join(", ");
        return Err(Error::usage(format!("{option} {name}: no such profile or file; known: {known}")));
    }
    Ok(HardwareProfile::from_json(&read_text(fs, path)?, name)?)
}

/// Loads a workload profile by name or from a file. Errors: there is neither a profile nor a file;
/// the file is invalid.
pub fn workload(fs: &Arc<dyn Fs>, name: &str) -> Result<WorkloadProfile> {
    if let Some(profile) = built_in::workload(name) {
        return Ok(profile?);
    }
    let path = Path::new(name);
    if !fs.exists(path)? {
        let known = built_in::workload_names().join(", ");
        return Err(Error::usage(format!("--workload {name}: no such profile or file; known: {known}")));
    }
    Ok(WorkloadProfile::from_json(&read_text(fs, path)?, name)?)
}

/// Sets the hardware of a configuration. Also sets the compression, if the profile has a codec.
pub fn apply_hardware(config: &mut Config, profile: &HardwareProfile) {
    config.hardware = Hardware::clone(&profile.hardware);
    if let Some(codec) = profile.compression {
        config.options.compression = codec;
        config.options.compression_per_level.clear();
        config.options.bottommost_compression = None;
    }
}

/// Runs `cairn sim profiles`.
pub fn list(as_json: bool) -> Result<Outcome> {
    let mut out = Output::new();
    let hardware: Vec<_> = built_in::hardware_names()
        .into_iter()
        .filter_map(|name| Some((name, built_in::hardware(name)?)))
        .map(|(name, profile)| Ok((name, profile?)))
        .collect::<Result<_>>()?;
    let workloads: Vec<_> = built_in::workload_names()
        .into_iter()
        .filter_map(|name| Some((name, built_in::workload(name)?)))
        .map(|(name, profile)| Ok((name, profile?)))
        .collect::<Result<_>>()?;
    if as_json {
        let hardware: Vec<_> = hardware
            .iter()
            .map(|(name, it)| json!({ "id": name, "name": it.hardware.name, "profile": it }))
            .collect();
        let workloads: Vec<_> =
            workloads.iter().map(|(name, it)| json!({ "id": name, "profile": it })).collect();
        out.json(&json!({ "hardware": hardware, "workloads": workloads }))?;
        out.finish()?;
        return Ok(Outcome::Done);
    }
    out.line("Hardware (--hardware):")?;
    for (name, profile) in hardware {
        let codec = profile.compression.map_or("", Compression::name);
        let disk = &profile.hardware.disk;
        out.line(format!(
            "  {name:18} {}, {} cores, reads {} MB/s, writes {} MB/s, {} µs {codec}",
            profile.hardware.name,
            profile.hardware.cores,
            disk.read_mb_per_sec,
            disk.write_mb_per_sec,
            disk.read_latency_us
        ))?;
        out.line(format!("  {:18} {}", "", profile.hardware.source))?;
    }
    out.line("\nWorkloads (--workload):")?;
    for (name, profile) in workloads {
        out.line(format!("  {name:18} {}: {}", profile.name, profile.description))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}
