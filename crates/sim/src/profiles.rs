//! Built-in profiles of machines and workloads. They are data files: to add one, add the file and
//! its name here.

use serde::{Deserialize, Serialize};

use crate::config::WorkloadProfile;
use crate::error::Result;
use crate::hardware::Hardware;
use crate::options::Compression;

/// A machine, and the codec for which its figures were measured, if any.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardwareProfile {
    /// The codec, which is set together with the machine.
    #[serde(default)]
    pub compression: Option<Compression>,
    /// The machine.
    pub hardware: Hardware,
}

impl HardwareProfile {
    /// Parses a profile. Errors: [`crate::Error::Parse`] with line and setting; a figure out of
    /// range.
    pub fn from_json(text: &str, file: &str) -> Result<HardwareProfile> {
        let profile: HardwareProfile = crate::json::parse(text, file)?;
        profile.hardware.check()?;
        Ok(profile)
    }
}

macro_rules! files {
    ($list:ident, $folder:literal: $($name:literal)*) => {
        const $list: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../data/", $folder, "/", $name, ".json")))),*];
    };
}

files!(HARDWARE, "hardware": "nvme" "sata-ssd" "ebs-gp3" "hdd" "ec2-m5.xlarge" "ec2-c6gd.2xlarge" "ec2-i3en.xlarge"
    "mac-m1-none" "mac-m1-snappy" "mac-m1-zstd");
files!(WORKLOADS, "workloads": "uniform" "zipfian" "hot-set" "sequential-load" "time-series" "latest" "read-mostly"
    "diurnal" "bursts" "spikes" "deletes" "small-values");

/// Returns the names of the machines.
pub fn hardware_names() -> Vec<&'static str> {
    HARDWARE.iter().map(|(name, _)| *name).collect()
}

/// Returns a machine by name, or `None` for an unknown one.
pub fn hardware(name: &str) -> Option<Result<HardwareProfile>> {
    let (name, text) = HARDWARE.iter().find(|(known, _)| *known == name)?;
    Some(HardwareProfile::from_json(text, name))
}

/// Returns the names of the workloads.
pub fn workload_names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|(name, _)| *name).collect()
}

/// Returns a workload by name, or `None` for an unknown one.
pub fn workload(name: &str) -> Option<Result<WorkloadProfile>> {
    let (name, text) = WORKLOADS.iter().find(|(known, _)| *known == name)?;
    Some(WorkloadProfile::from_json(text, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// Goal: every profile can be read, names the source of its figures, and makes a valid
    /// configuration.
    #[test]
    fn profiles_are_sound() {
        for name in hardware_names() {
            let profile = hardware(name).unwrap().unwrap();
            assert!(!profile.hardware.source.is_empty() && !profile.hardware.name.is_empty(), "{name}");
            let config = Config { hardware: profile.hardware, ..Config::default() };
            config.check().unwrap();
        }
        for name in workload_names() {
            let profile = workload(name).unwrap().unwrap();
            Config { workload: profile.workload, ..Config::default() }.check().unwrap();
        }
        assert!(hardware("abacus").is_none() && workload("abacus").is_none());
    }
}
