//! The lab: one workload description, one runner, one report for every storage engine.
#![deny(unsafe_code)]

pub mod results;
