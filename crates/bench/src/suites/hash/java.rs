//! Sparkey's Java readers within a group.

use std::path::PathBuf;

use super::group::GroupRun;
use crate::core::digest::Outline;
use crate::core::error::Result;
use crate::core::results::Case;
use crate::core::scratch::remove_tree;
use crate::core::workload::{Distribution, Lookup};
use crate::core::{recorder, stats};
use crate::stores::Compression;
use crate::stores::java::{Construction, JavaReader, JavaRun};
use crate::stores::java_frames::write_keys;
use crate::suites::hash::job::{Cell, Operation};

/// The files of prepared keys, one for each kind of lookup, with the expected results.
pub(super) struct JavaKeys(Vec<(Lookup, Distribution, PathBuf, Outline)>);

impl GroupRun<'_, '_, '_> {
    /// Returns the directory in which Java builds a store.
    pub(super) fn java_dir(&self, construction: Construction) -> PathBuf {
        self.scratch.path().join(match construction {
            Construction::InMemory => "sparkey-java",
            Construction::Sorting => "sparkey-java-sorting",
        })
    }

    /// Returns the path of its index. The log is beside it.
    pub(super) fn java_index(&self, construction: Construction) -> PathBuf {
        self.java_dir(construction).join("data.spi")
    }

    /// Looks up all keys in a store that Java has built, so that its build counts regardless of the
    /// filter and of an early end of the run. If only one of the two builds were checked, the
    /// slower one might be shown as Java's.
    pub(super) fn check_java(
        &mut self,
        construction: Construction,
        readers: &[JavaReader],
        keys: &JavaKeys,
    ) -> Result<()> {
        let (Some(java), Some(reader), Some((_, _, path, expected))) =
            (self.java(), readers.first(), keys.0.first())
        else {
            return Ok(());
        };
        let index = self.java_index(construction);
        let run = JavaRun {
            index: &index,
            keys: path,
            expected: *expected,
            threads: 1,
            warm_up: 0,
            iterations: 1,
            seconds: 0.01,
        };
        let name = construction.contender();
        match java.bench(reader, &run, self.lab.stop) {
            Ok(_) => _ = self.verified.insert(name.to_owned()),
            Err(error) => {
                let case = self.case("build");
                self.survive(name, &case, error)?;
            }
        }
        if construction == Construction::Sorting { remove_tree(&self.java_dir(construction)) } else { Ok(()) }
    }

    /// Returns the readers that can open this group's file, in every JDK.
    pub(super) fn java_readers(&mut self) -> Result<Vec<JavaReader>> {
        let Some(java) = self.java() else { return Ok(Vec::new()) };
        match java.readers(
            &self.java_index(Construction::InMemory),
            &self.options.java.readers,
            self.lab.stop,
        ) {
            Ok(readers) => {
                for reader in &readers {
                    self.contenders.add_java_reader(java, reader, self.options);
                }
                Ok(readers)
            }
            Err(error) => {
                let case = self.case("open");
                // Recorded under the builder's name, which the run lists. The names of the readers
                // are not known.
                self.survive(Construction::InMemory.contender(), &case, error)?;
                Ok(Vec::new())
            }
        }
    }

    /// Writes the keys that the cells need, if Java takes part.
    pub(super) fn java_keys(&mut self, readers: &[JavaReader]) -> Result<JavaKeys> {
        let mut keys = JavaKeys(Vec::new());
        if readers.is_empty() {
            return Ok(keys);
        }
        let keys_max = match self.group.compression {
            Compression::None => usize::MAX,
            Compression::Snappy | Compression::Zstd => self.options.java.keys_max_compressed,
        };
        for cell in self.group.cells.iter().filter(|cell| cell.operation == Operation::Get) {
            if keys.find(cell).is_none() {
                let path = self.scratch.path().join(format!("keys-{}", keys.0.len()));
                let expected = write_keys(&path, self.bench.order(cell.lookup, cell.distribution), keys_max)?;
                keys.0.push((cell.lookup, cell.distribution, path, expected));
            }
        }
        Ok(keys)
    }

    /// Returns whether a reader is measured in a cell. JMH measures single lookups only. Every way
    /// to extract values except the first is measured with one thread only.
    pub(super) fn java_takes_part(&self, reader: &JavaReader, cell: Cell, case: &Case) -> bool {
        let first = self.options.java.readers.apis.first() == Some(&reader.api);
        cell.operation == Operation::Get
            && (first || cell.threads == 1)
            && self.takes_part(&reader.contender(), false, cell, case)
    }

    /// Runs one JVM. In a run with fresh processes, the median of its iterations is one repetition;
    /// otherwise each iteration is one.
    pub(super) fn java_repetitions(
        &mut self,
        reader: &JavaReader,
        cell: Cell,
        case: &Case,
        keys: &JavaKeys,
    ) -> Result<()> {
        // JMH measures throughput. Its batches and latencies would not be comparable with ours.
        let (Operation::Get, Some(java), Some((path, expected))) =
            (cell.operation, self.java(), keys.find(&cell))
        else {
            return Ok(());
        };
        let effort = &self.options.java;
        let run = JavaRun {
            index: &self.java_index(Construction::InMemory),
            keys: path,
            expected,
            threads: cell.threads,
            warm_up: effort.warm_up,
            iterations: if self.options.fresh_reads { effort.iterations } else { self.options.rounds },
            seconds: effort.seconds,
        };
        let name = reader.contender();
        match java.bench(reader, &run, self.lab.stop) {
            Ok(rates) if self.options.fresh_reads => {
                self.verified.insert(Construction::InMemory.contender().to_owned());
                self.lab.recorder.add(&name, case, recorder::THROUGHPUT, stats::median(&rates));
            }
            Ok(rates) => {
                self.verified.insert(Construction::InMemory.contender().to_owned());
                self.lab.recorder.add_turn(&name, case, recorder::THROUGHPUT, &rates);
            }
            Err(error) => self.survive(&name, case, error)?,
        }
        Ok(())
    }
}

impl JavaKeys {
    fn find(&self, cell: &Cell) -> Option<(&PathBuf, Outline)> {
        let same = self
            .0
            .iter()
            .find(|(lookup, distribution, ..)| (*lookup, *distribution) == (cell.lookup, cell.distribution));
        same.map(|(_, _, path, expected)| (path, *expected))
    }
}
