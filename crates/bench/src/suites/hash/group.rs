//! One data set with one compression, from building to cleaning up.

use std::collections::BTreeSet;

use cairn_vfs::SeededRng;

use super::build::Builder;
use super::contenders::Contenders;
use super::options::Options;
use super::plan::Group;
use crate::core::error::{Error, Result};
use crate::core::probe::probe;
use crate::core::recorder::{Metric, case_name};
use crate::core::results::{Case, Probe};
use crate::core::scratch::Scratch;
use crate::core::workload::{Workload, shuffle};
use crate::stores::ConstantStore;
use crate::stores::java::{Construction, JavaLibrary};
use crate::suites::driver::Lab;
use crate::suites::hash::bench::Bench;
use crate::suites::hash::job::{Cell, Operation, Subject};

/// A group during its measurement.
pub(super) struct GroupRun<'a, 'lab, 'java> {
    pub(super) options: &'a Options,
    pub(super) group: &'a Group,
    pub(super) contenders: &'a mut Contenders<'java>,
    pub(super) lab: &'a mut Lab<'lab>,
    pub(super) bench: Bench,
    pub(super) scratch: Scratch,
    /// Names of the contenders that have given correct answers, and of Java's builders whose files
    /// have been checked.
    pub(super) verified: BTreeSet<String>,
    rng: SeededRng,
    steps: (usize, usize),
    baseline: Option<Probe>,
}

impl<'a, 'lab, 'java> GroupRun<'a, 'lab, 'java> {
    pub(super) fn new(
        options: &'a Options,
        group: &'a Group,
        contenders: &'a mut Contenders<'java>,
        lab: &'a mut Lab<'lab>,
    ) -> Result<Self> {
        lab.progress.step(0, 0, "preparing the records");
        Ok(GroupRun {
            options,
            group,
            contenders,
            lab,
            bench: Bench::new(&group.source, options.seed, options.effort)?,
            scratch: Scratch::in_dir(&options.work_dir, super::NAME)?,
            verified: BTreeSet::new(),
            rng: SeededRng::new(options.seed).fork(&group.name()),
            steps: (0, 0),
            baseline: None,
        })
    }

    /// Measures everything that the filter selects.
    pub(super) fn measure(&mut self) -> Result<()> {
        let builders = self.builders();
        if builders.is_empty() {
            return Ok(());
        }
        self.steps = (0, self.expected_steps(builders.len()));
        let built = self.build(builders)?;
        let subjects = self.subjects(&built);
        if self.group.openings {
            self.openings(&subjects, false)?;
        }
        let by_java = |construction| built.contains(&Builder::Java(construction));
        let java_readers = if by_java(Construction::InMemory) { self.java_readers()? } else { Vec::new() };
        let lookups = self.lookups(&subjects, &java_readers, by_java(Construction::Sorting));
        let outcome = lookups.and_then(|()| self.verify_rest(&subjects));
        // The contenders checked so far count even if the run is stopped here.
        self.mark_verified(&subjects);
        outcome?;
        if self.group.openings {
            let outcome = self.openings(&subjects, true);
            self.mark_verified(&subjects);
            outcome?;
        }
        let ns = self.bench.baseline_ns()?;
        self.baseline = Some(probe(format!("load generation, {}", self.group.name()), ns, "ns"));
        Ok(())
    }

    /// Takes the cost of keys, loop and check in this group, once it has been measured.
    pub(super) fn baseline(&mut self) -> Option<Probe> {
        self.baseline.take()
    }

    pub(super) fn java(&self) -> Option<&'java dyn JavaLibrary> {
        self.contenders.java
    }

    /// Begins a step, or ends the run if it is to stop.
    pub(super) fn step(&mut self, what: &str) -> Result<()> {
        self.lab.stop.check()?;
        self.steps.0 += 1;
        self.steps.1 = self.steps.1.max(self.steps.0);
        self.lab.progress.step(self.steps.0, self.steps.1, what);
        Ok(())
    }

    /// Returns true if the filter selects a contender's case.
    pub(super) fn wanted(&self, contender: &str, case: &Case) -> bool {
        let filter = self.options.effective_filter();
        filter.is_none_or(|filter| case_name(super::NAME, case, contender).contains(filter))
    }

    pub(super) fn case(&self, operation: &str) -> Case {
        self.group.case(operation, self.bench.data())
    }

    pub(super) fn record(&mut self, contender: &str, case: &Case, metric: Metric, value: f64) {
        if self.wanted(contender, case) {
            self.lab.recorder.add(contender, case, metric, value);
        }
    }

    /// Records a contender's failure and continues, unless the run is to end. A wrong answer
    /// disqualifies all measurements of the store in this group, because the lab cannot tell
    /// whether the writer or the reader is at fault.
    pub(super) fn survive(&mut self, contender: &str, case: &Case, error: Error) -> Result<()> {
        if matches!(error, Error::Interrupted) {
            return Err(error);
        }
        self.lab.progress.note(&format!("{contender}, {}: {error}", case.operation));
        if error.is_wrong_result() {
            for name in self.relatives(contender) {
                self.verified.remove(&name);
                self.lab.recorder.disqualify(&name, &self.case(""), error.to_string());
            }
        } else {
            self.lab.recorder.discard(contender, case, error.to_string());
        }
        Ok(())
    }

    /// Returns the builder and all variants of the store to which a contender belongs. Sparkey's
    /// Java readers are separate classes over files that several of them check, so each of them
    /// stands alone.
    fn relatives(&self, contender: &str) -> Vec<String> {
        for store in &self.contenders.stores {
            let variants = store.variants().into_iter().map(|variant| variant.name);
            let names: Vec<String> = std::iter::once(store.name().to_owned()).chain(variants).collect();
            if names.iter().any(|name| name == contender) {
                return names;
            }
        }
        vec![contender.to_owned()]
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        shuffle(items, &mut self.rng);
    }

    pub(super) fn store(&self, name: &str) -> Result<&dyn ConstantStore> {
        let found = self.contenders.stores.iter().find(|store| store.name() == name);
        found.map(|store| &**store).ok_or_else(|| Error::invalid(format!("no store is called {name:?}")))
    }

    /// Marks the openings of every contender that gave correct answers as verified, and the builds
    /// and sizes of their stores.
    fn mark_verified(&mut self, subjects: &[Subject]) {
        let readers = subjects.iter().filter(|subject| self.verified.contains(&subject.contender));
        let builders = readers.map(|subject| subject.store.as_str());
        for name in self.verified.iter().map(String::as_str).chain(builders) {
            self.lab.recorder.verify(name, &self.group.case("", self.bench.data()));
        }
    }

    fn expected_steps(&self, builders: usize) -> usize {
        let rounds = self.options.rounds as usize;
        let variants: usize = self.contenders.stores.iter().map(|store| store.variants().len()).sum();
        let openings = if self.group.openings { 2 * rounds } else { 0 };
        let lookups =
            if self.options.fresh_reads { variants * rounds } else { self.group.cells.len() * rounds };
        builders * self.group.build_rounds as usize + openings + lookups
    }

    fn subjects(&self, built: &[Builder]) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for builder in built {
            let Builder::Store(index) = builder else { continue };
            let store = &self.contenders.stores[*index];
            for (variant, description) in store.variants().into_iter().enumerate() {
                if !description.suits(self.group.compression) {
                    continue;
                }
                let dir = self.scratch.path().join(store.name());
                subjects.push(Subject {
                    store: store.name().to_owned(),
                    variant,
                    contender: description.name,
                    dir,
                });
            }
        }
        subjects
    }

    /// Checks the contenders that no lookup has checked, because the filter selected only builds or
    /// openings: every contender whose openings are measured, and one of each store that is built.
    fn verify_rest(&mut self, subjects: &[Subject]) -> Result<()> {
        let first = Cell::new(Operation::Get, &Workload::default());
        let mut checked: BTreeSet<&str> = subjects
            .iter()
            .filter(|subject| self.verified.contains(&subject.contender))
            .map(|subject| subject.store.as_str())
            .collect();
        for subject in subjects {
            let opened = self.group.openings && self.wants_openings(&subject.contender);
            if self.verified.contains(&subject.contender)
                || (checked.contains(subject.store.as_str()) && !opened)
                || self.lab.recorder.is_disqualified(&subject.contender, &self.case(""))
            {
                continue;
            }
            self.lab.stop.check()?;
            let opened = self.store(&subject.store)?.open(&subject.dir, subject.variant);
            match opened.and_then(|reader| self.bench.warm_up(&subject.contender, &*reader, first)) {
                Ok(()) => {
                    self.verified.insert(subject.contender.clone());
                    checked.insert(&subject.store);
                }
                Err(error) => {
                    let case = self.case("");
                    self.survive(&subject.contender, &case, error)?;
                }
            }
        }
        Ok(())
    }
}
