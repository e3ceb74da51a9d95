//! The lookups of a group. Contenders take turns in every round, either in this process or each in
//! a process of its own.

use super::group::GroupRun;
use super::java::JavaKeys;
use super::job::{Cell, Operation, Read, Sample, Subject};
use crate::core::error::{Error, Result};
use crate::core::histogram::Latencies;
use crate::core::recorder;
use crate::core::results::Case;
use crate::core::workload::Lookup;
use crate::stores::ConstantReader;
use crate::stores::java::{Construction, JavaReader};

/// A contender whose store is open in this process.
struct Open<'s> {
    subject: &'s Subject,
    batched: bool,
    reader: Box<dyn ConstantReader>,
    warm: Vec<Lookup>,
}

/// A turn of a contender.
#[derive(Clone, Copy)]
enum Turn<'s> {
    Ours(usize),
    Java(&'s JavaReader),
}

impl GroupRun<'_, '_, '_> {
    /// Measures all cells. `sorted_by_java` says whether Java has also built a store by sorting,
    /// which has to be checked.
    pub(super) fn lookups(
        &mut self,
        subjects: &[Subject],
        java: &[JavaReader],
        sorted_by_java: bool,
    ) -> Result<()> {
        let keys = self.java_keys(java)?;
        self.check_java(Construction::InMemory, java, &keys)?;
        if sorted_by_java {
            self.check_java(Construction::Sorting, java, &keys)?;
        }
        if self.options.fresh_reads {
            return self.fresh_lookups(subjects, java, &keys);
        }
        let mut open = self.open_all(subjects)?;
        for cell in self.group.cells.clone() {
            self.measure_cell(cell, &mut open, java, &keys)?;
        }
        Ok(())
    }

    fn open_all<'s>(&mut self, subjects: &'s [Subject]) -> Result<Vec<Open<'s>>> {
        let mut open = Vec::new();
        for subject in subjects {
            let store = self.store(&subject.store)?;
            let batched = store.variants().get(subject.variant).is_some_and(|variant| variant.batched);
            match store.open(&subject.dir, subject.variant) {
                Ok(reader) => open.push(Open { subject, batched, reader, warm: Vec::new() }),
                Err(error) => {
                    let case = self.case("open");
                    self.survive(&subject.contender, &case, error)?;
                }
            }
        }
        Ok(open)
    }

    /// Measures one cell in this process: every contender once per round, in a new order each time.
    fn measure_cell(
        &mut self,
        cell: Cell,
        open: &mut [Open<'_>],
        java: &[JavaReader],
        keys: &JavaKeys,
    ) -> Result<()> {
        let case = self.group.cell_case(cell, self.bench.data());
        let mut taking_part = Vec::new();
        for (index, contender) in open.iter_mut().enumerate() {
            if self.takes_part(&contender.subject.contender, contender.batched, cell, &case)
                && self.warm(contender, cell, &case)?
            {
                taking_part.push(index);
            }
        }
        let java: Vec<&JavaReader> =
            java.iter().filter(|reader| self.java_takes_part(reader, cell, &case)).collect();
        for round in 0..self.options.rounds {
            self.step(&format!("{}, round {}", describe(cell), round + 1))?;
            let mut turns: Vec<Turn<'_>> = taking_part.iter().map(|&index| Turn::Ours(index)).collect();
            // A JVM performs all its repetitions at once, so each Java reader has its turn in just
            // one of the rounds.
            let rounds = self.options.rounds as usize;
            turns.extend(java.iter().skip(round as usize).step_by(rounds).map(|reader| Turn::Java(reader)));
            self.shuffle(&mut turns);
            for turn in turns {
                match turn {
                    Turn::Ours(index) => {
                        let Open { subject, reader, .. } = &open[index];
                        let sample = self.bench.measure(&subject.contender, &**reader, cell);
                        if !self.keep(&subject.contender, cell, &case, sample)? {
                            taking_part.retain(|&other| other != index);
                        }
                    }
                    Turn::Java(reader) => self.java_repetitions(reader, cell, &case, keys)?,
                }
            }
        }
        Ok(())
    }

    /// Warms a contender up, which also checks all answers for the first time. Returns false if
    /// that fails.
    fn warm(&mut self, contender: &mut Open<'_>, cell: Cell, case: &Case) -> Result<bool> {
        if contender.warm.contains(&cell.lookup) {
            return Ok(true);
        }
        let once = Cell { operation: Operation::Get, threads: 1, ..cell };
        let name = &contender.subject.contender;
        match self.bench.warm_up(name, &*contender.reader, once) {
            Ok(()) => {
                contender.warm.push(cell.lookup);
                self.verified.insert(contender.subject.contender.clone());
            }
            Err(error) => {
                self.survive(name, case, error)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Records a sample, or the reason that there is none. Returns false if the contender leaves
    /// the case.
    fn keep(&mut self, contender: &str, cell: Cell, case: &Case, sample: Result<Sample>) -> Result<bool> {
        match sample {
            Ok(sample) if cell.operation == Operation::GetTimed => {
                let mut latencies = Latencies::new(0);
                latencies.add_buckets(&sample.buckets);
                let figures = (sample.value, &latencies);
                self.lab.recorder.add_latencies(contender, case, recorder::LATENCY, figures);
                Ok(true)
            }
            Ok(sample) => {
                self.lab.recorder.add(contender, case, recorder::THROUGHPUT, sample.value);
                Ok(true)
            }
            Err(error) => self.survive(contender, case, error).map(|()| false),
        }
    }

    pub(super) fn takes_part(&self, contender: &str, batched: bool, cell: Cell, case: &Case) -> bool {
        (cell.operation != Operation::GetMany || batched)
            && self.wanted(contender, case)
            && !self.lab.recorder.is_disqualified(contender, case)
    }

    /// Measures all cells, with every repetition of every contender in a process of its own.
    fn fresh_lookups(&mut self, subjects: &[Subject], java: &[JavaReader], keys: &JavaKeys) -> Result<()> {
        let mut turns: Vec<Turn<'_>> = (0..subjects.len()).map(Turn::Ours).collect();
        turns.extend(java.iter().map(Turn::Java));
        for round in 0..self.options.rounds {
            self.shuffle(&mut turns);
            for &turn in &turns {
                let name = match turn {
                    Turn::Ours(index) => subjects[index].contender.clone(),
                    Turn::Java(reader) => reader.contender(),
                };
                self.step(&format!("lookups of {name}, round {}", round + 1))?;
                match turn {
                    Turn::Ours(index) => self.fresh_repetition(&subjects[index])?,
                    Turn::Java(reader) => {
                        for cell in self.group.cells.clone() {
                            let case = self.group.cell_case(cell, self.bench.data());
                            if self.java_takes_part(reader, cell, &case) {
                                self.java_repetitions(reader, cell, &case, keys)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn fresh_repetition(&mut self, subject: &Subject) -> Result<()> {
        let store = self.store(&subject.store)?;
        let batched = store.variants().get(subject.variant).is_some_and(|variant| variant.batched);
        let cases: Vec<(Cell, Case)> = self
            .group
            .cells
            .iter()
            .map(|&cell| (cell, self.group.cell_case(cell, self.bench.data())))
            .collect();
        let taking_part: Vec<(Cell, Case)> = cases
            .into_iter()
            .filter(|(cell, case)| self.takes_part(&subject.contender, batched, *cell, case))
            .collect();
        if taking_part.is_empty() {
            return Ok(());
        }
        let job = Read {
            data: self.group.source.clone(),
            seed: self.options.seed,
            subject: subject.clone(),
            cells: taking_part.iter().map(|(cell, _)| *cell).collect(),
            effort: self.options.effort,
        };
        let samples = self.fresh_samples(&job, taking_part.len());
        for ((cell, case), sample) in taking_part.into_iter().zip(samples?) {
            if self.keep(&subject.contender, cell, &case, sample)? {
                self.verified.insert(subject.contender.clone());
            }
        }
        Ok(())
    }

    /// Returns one result per cell. A process that fails as a whole fails every cell.
    fn fresh_samples(&self, job: &Read, cells: usize) -> Result<Vec<Result<Sample>>> {
        let worker = self.options.worker.as_ref();
        let worker =
            worker.ok_or_else(|| Error::invalid("fresh processes for lookups need a worker program"))?;
        let failure = match worker.run(job, self.lab.stop) {
            Ok(samples) if samples.len() == cells => {
                return Ok(samples.into_iter().map(|sample| sample.map_err(Error::from)).collect());
            }
            Ok(other) => format!("answered {cells} cells with {other:?}"),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => error.to_string(),
        };
        Ok((0..cells).map(|_| Err(Error::process("a worker", failure.clone()))).collect())
    }
}

/// Describes a cell briefly, for the progress display.
fn describe(cell: Cell) -> String {
    let operation = match cell.operation {
        Operation::Get => "get",
        Operation::GetMany => "get_many",
        Operation::GetTimed => "get latency",
    };
    format!("{operation}, {} keys, {} threads", cell.lookup, cell.threads)
}
