//! Builds the stores of a group, and records the measurements of the builds.

use std::path::Path;

use cairn_vfs::{Fs, StdFs};

use super::group::GroupRun;
use super::job::Build;
use crate::core::error::{Error, Result};
use crate::core::recorder;
use crate::core::results::Case;
use crate::core::scratch::remove_tree;
use crate::stores::BuildOutcome;
use crate::stores::ConstantStore;
use crate::stores::java::Construction;
use crate::stores::java_frames::write_records;

/// A builder of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builder {
    /// A store of the catalog.
    Store(usize),
    /// Sparkey's Java library.
    Java(Construction),
}

impl GroupRun<'_, '_, '_> {
    /// Returns the stores that support the group's compression and that some wanted case needs, and
    /// Java's builders.
    pub(super) fn builders(&self) -> Vec<Builder> {
        let mut builders = Vec::new();
        for (index, store) in self.contenders.stores.iter().enumerate() {
            if store.supports(self.group.compression) && self.store_is_wanted(&**store) {
                builders.push(Builder::Store(index));
            }
        }
        if self.contenders.java.is_some() {
            let sorting = Construction::Sorting.contender();
            if self.group.build_rounds > 1 && self.wanted(sorting, &self.case("build")) {
                builders.push(Builder::Java(Construction::Sorting));
            }
            if self.java_is_wanted() {
                builders.push(Builder::Java(Construction::InMemory));
            }
        }
        builders
    }

    fn store_is_wanted(&self, store: &dyn ConstantStore) -> bool {
        let builds = ["build", "size"].map(|operation| self.case(operation));
        let opens = ["open", "cold open", "cold get"].map(|operation| self.case(operation));
        let of_variant =
            |case: &Case| store.variants().iter().any(|variant| self.wanted(&variant.name, case));
        builds.iter().any(|case| self.wanted(store.name(), case))
            || self.lookup_cases().iter().any(of_variant)
            || (self.group.openings && opens.iter().any(of_variant))
    }

    fn java_is_wanted(&self) -> bool {
        let readers = self.java().map(|java| java.offered(&self.options.java.readers)).unwrap_or_default();
        let cases = self.lookup_cases();
        let reads =
            readers.iter().any(|reader| cases.iter().any(|case| self.wanted(&reader.contender(), case)));
        let name = Construction::InMemory.contender();
        reads || ["build", "size"].iter().any(|operation| self.wanted(name, &self.case(operation)))
    }

    fn lookup_cases(&self) -> Vec<Case> {
        self.group.cells.iter().map(|&cell| self.group.cell_case(cell, self.bench.data())).collect()
    }

    /// Builds all stores, round by round in shuffled order. Returns the builders that succeeded,
    /// with stores in their order.
    pub(super) fn build(&mut self, builders: Vec<Builder>) -> Result<Vec<Builder>> {
        let records = self.scratch.path().join("records");
        if builders.iter().any(|builder| matches!(builder, Builder::Java(_))) {
            write_records(&records, self.bench.data())?;
        }
        let mut order = builders;
        for round in 0..self.group.build_rounds {
            self.shuffle(&mut order);
            let mut failed = Vec::new();
            for &builder in &order {
                let name = self.builder_name(builder);
                self.step(&format!("build {name}, round {}", round + 1))?;
                let outcome = match builder {
                    Builder::Store(index) => self.build_store(index),
                    Builder::Java(construction) => self.build_java(construction, &records),
                };
                match outcome {
                    Ok(outcome) => self.record_build(&name, outcome, round),
                    Err(error) => {
                        self.survive_build(builder, error)?;
                        failed.push(builder);
                    }
                }
            }
            order.retain(|builder| !failed.contains(builder));
        }
        order.sort_by_key(|builder| match builder {
            Builder::Store(index) => *index,
            Builder::Java(_) => usize::MAX,
        });
        Ok(order)
    }

    pub(super) fn builder_name(&self, builder: Builder) -> String {
        match builder {
            Builder::Store(index) => self.contenders.stores[index].name().to_owned(),
            Builder::Java(construction) => construction.contender().to_owned(),
        }
    }

    /// Records a failed build, and for the store's readers the reason that they cannot run. Removes
    /// the files to free their space.
    fn survive_build(&mut self, builder: Builder, error: Error) -> Result<()> {
        let (name, case) = (self.builder_name(builder), self.case("build"));
        let reason = format!("{} could not be built: {error}", self.group.name());
        self.survive(&name, &case, error)?;
        let Builder::Store(index) = builder else { return Ok(()) };
        for variant in self.contenders.stores[index].variants() {
            if variant.name != name {
                self.lab.recorder.problem(&variant.name, reason.clone());
            }
        }
        remove_tree(&self.scratch.path().join(name))
    }

    fn build_store(&self, index: usize) -> Result<BuildOutcome> {
        let store = &self.contenders.stores[index];
        remove_tree(&self.scratch.path().join(store.name()))?;
        let dir = self.scratch.dir(store.name())?;
        let compression = self.group.compression;
        let Some(worker) = &self.options.worker else {
            let outcome = self.bench.build(&**store, &dir, compression)?;
            // The heap of a process that has built before hides the peak.
            return Ok(BuildOutcome { peak_memory_bytes: None, ..outcome });
        };
        let (data, store) = (self.group.source.clone(), store.name().to_owned());
        worker.run(&Build { data, store, compression, dir }, self.lab.stop)
    }

    fn build_java(&self, construction: Construction, records: &Path) -> Result<BuildOutcome> {
        let java = self.java().ok_or_else(|| Error::invalid("Java is not installed"))?;
        let dir = self.java_dir(construction);
        remove_tree(&dir)?;
        StdFs::new().create_dir_all(&dir)?;
        java.build(
            records,
            &self.java_index(construction),
            self.group.compression,
            construction,
            self.lab.stop,
        )
    }

    fn record_build(&mut self, name: &str, outcome: BuildOutcome, round: u32) {
        let entries = self.bench.data().len() as f64;
        let (build, size) = (self.case("build"), self.case("size"));
        // A single build is not a measurement of time.
        if self.group.build_rounds > 1 {
            self.record(name, &build, recorder::TIME, outcome.seconds);
            if let Some(bytes) = outcome.peak_memory_bytes {
                self.record(name, &build, recorder::PEAK_MEMORY, bytes as f64);
            }
        }
        // Sizes are counted, not timed, so one round suffices. Both constructions of Java write the
        // same files.
        if round == 0 && name != Construction::Sorting.contender() {
            self.record(name, &size, recorder::BYTES, outcome.disk_bytes as f64 / entries);
            if let Some(bytes) = outcome.index_bytes {
                self.record(name, &size, recorder::INDEX_BYTES, bytes as f64 / entries);
            }
        }
    }
}
