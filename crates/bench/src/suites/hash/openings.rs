//! Opens the stores of a group, with their files in memory and without.

use super::group::GroupRun;
use super::plan::cold_get;
use crate::core::error::{Error, Result};
use crate::core::recorder;
use crate::core::results::Case;
use crate::suites::hash::job::Subject;

impl GroupRun<'_, '_, '_> {
    /// Opens each store anew in every round and looks up one key. With `cold`, its files are first
    /// dropped from memory, and a thousand keys are looked up afterwards.
    pub(super) fn openings(&mut self, subjects: &[Subject], cold: bool) -> Result<()> {
        let open = self.case(if cold { "cold open" } else { "open" });
        let get = self.cold_get_case();
        let mut turns: Vec<&Subject> = Vec::new();
        for subject in subjects {
            let name = &subject.contender;
            if self.wanted(name, &open) || (cold && self.wanted(name, &get)) {
                turns.push(subject);
            }
        }
        for round in 0..self.options.rounds {
            self.step(&format!("{}, round {}", open.operation, round + 1))?;
            self.shuffle(&mut turns);
            let mut failed = Vec::new();
            for &subject in &turns {
                if let Err(error) = self.open_once(subject, cold, &open, &get) {
                    if cold {
                        self.lab.recorder.discard(&subject.contender, &get, error.to_string());
                    }
                    self.survive(&subject.contender, &open, error)?;
                    failed.push(subject.contender.clone());
                }
            }
            turns.retain(|subject| !failed.contains(&subject.contender));
        }
        Ok(())
    }

    /// Returns whether any opening of a contender is measured.
    pub(super) fn wants_openings(&self, contender: &str) -> bool {
        let cases = [self.case("open"), self.case("cold open"), self.cold_get_case()];
        cases.iter().any(|case| self.wanted(contender, case))
    }

    fn cold_get_case(&self) -> Case {
        Case { operation: "cold get".to_owned(), ..self.group.cell_case(cold_get(), self.bench.data()) }
    }

    fn open_once(&mut self, subject: &Subject, cold: bool, open: &Case, get: &Case) -> Result<()> {
        // `self.store` would also borrow the bench.
        let found = self.contenders.stores.iter().find(|store| store.name() == subject.store);
        let store = found.ok_or_else(|| Error::invalid(format!("no store is called {:?}", subject.store)))?;
        let opening = self.bench.open_once(&**store, subject, cold)?;
        let loads_at_open =
            store.variants().get(subject.variant).is_some_and(|variant| variant.loads_at_open);
        self.record(&subject.contender, open, recorder::TIME, opening.first_answer_seconds);
        if cold && !loads_at_open && self.wanted(&subject.contender, get) {
            self.lab.recorder.add_latencies(
                &subject.contender,
                get,
                recorder::MEAN_LATENCY,
                (opening.mean_ns, &opening.latencies),
            );
        }
        Ok(())
    }
}
