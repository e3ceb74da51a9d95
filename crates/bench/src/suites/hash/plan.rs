//! The cases of a run, in the order in which they are measured. The most important ones come first,
//! so that a run that is stopped early has them.

use std::collections::HashSet;

use super::options::{Matrix, Options};
use crate::core::results::Case;
use crate::core::workload::{Dataset, Lookup, ValueShape, Workload};
use crate::stores::Compression;
use crate::suites::hash::job::{Cell, DataSource, Operation};

/// One data set with one compression. The stores are built once, or several times if building is
/// measured, and all cells are measured on them.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The records.
    pub source: DataSource,
    /// The value length to show in results; `None` takes the mean of the data.
    pub value_bytes: Option<u32>,
    /// How values are compressed.
    pub compression: Compression,
    /// The lookups.
    pub cells: Vec<Cell>,
    /// Number of builds of each store. From 2 on, build times are published.
    pub build_rounds: u32,
    /// Whether openings, and lookups with nothing cached, are measured.
    pub openings: bool,
}

impl Group {
    /// Returns a short description such as `synthetic, 1000000 entries, 6 B values, none`.
    pub fn name(&self) -> String {
        let compression = self.compression;
        match &self.source {
            DataSource::Synthetic { entries, values, .. } => {
                format!("synthetic, {entries} entries, {} B values, {compression}", values.typical_bytes())
            }
            DataSource::File { name, .. } => format!("{name}, {compression}"),
        }
    }

    /// Returns the case of an operation on this group.
    pub fn case(&self, operation: &str, data: &Dataset) -> Case {
        let value_bytes = self.value_bytes.unwrap_or_else(|| data.mean_value_bytes());
        self.case_over(operation, data.name(), data.len() as u64, value_bytes)
    }

    fn case_over(&self, operation: &str, dataset: &str, entries: u64, value_bytes: u32) -> Case {
        Case {
            operation: operation.to_owned(),
            dataset: dataset.to_owned(),
            entries,
            value_bytes,
            compression: self.compression.to_string(),
            keys: String::new(),
            distribution: String::new(),
            threads: 0,
        }
    }

    /// Returns the cases of this group as far as they are known before its data is generated or
    /// read. The number of entries in a file is not known then.
    pub(super) fn foreseen(&self) -> Vec<Case> {
        let (dataset, entries) = match &self.source {
            DataSource::Synthetic { entries, .. } => (Dataset::SYNTHETIC, *entries),
            DataSource::File { name, .. } => (name.as_str(), 0),
        };
        let case = |operation: &str| {
            self.case_over(operation, dataset, entries, self.value_bytes.unwrap_or_default())
        };
        let openings: &[&str] = if self.openings { &["open", "cold open"] } else { &[] };
        let mut cases: Vec<Case> = ["build", "size"].iter().chain(openings).map(|name| case(name)).collect();
        cases.extend(self.cells.iter().map(|&cell| of_cell(cell, case(cell_operation(cell)))));
        if self.openings {
            cases.push(of_cell(cold_get(), case("cold get")));
        }
        cases
    }

    /// Returns the case of a cell.
    pub fn cell_case(&self, cell: Cell, data: &Dataset) -> Case {
        of_cell(cell, self.case(cell_operation(cell), data))
    }
}

fn cell_operation(cell: Cell) -> &'static str {
    if cell.operation == Operation::GetMany { "get_many" } else { "get" }
}

fn of_cell(cell: Cell, case: Case) -> Case {
    Case {
        keys: cell.lookup.to_string(),
        distribution: cell.distribution.to_string(),
        threads: cell.threads,
        ..case
    }
}

/// Returns the cell of lookups with nothing in memory.
pub(super) fn cold_get() -> Cell {
    Cell::new(Operation::GetTimed, &Workload::default())
}

/// Returns all groups of a run.
pub fn plan(options: &Options) -> Vec<Group> {
    let mut groups = match &options.matrix {
        Some(matrix) => matrix_plan(options, matrix),
        None => quick_plan(options),
    };
    if !options.groups.is_empty() {
        groups.retain(|group| options.groups.contains(&group.name()));
    }
    for cell in groups.iter_mut().flat_map(|group| &mut group.cells) {
        cell.distribution = options.distribution;
    }
    groups
}

fn cell(operation: Operation, lookup: Lookup, threads: u32) -> Cell {
    Cell::new(operation, &Workload { lookup, threads, ..Workload::default() })
}

fn file_source(options: &Options) -> Option<DataSource> {
    options.data.as_ref().map(|data| DataSource::File {
        path: data.path.clone(),
        name: data.name.clone(),
        separator: data.separator,
        column: data.column.clone(),
    })
}

fn synthetic(entries: u64, value_bytes: u32) -> DataSource {
    let values = ValueShape::Numbered { padding: value_bytes.saturating_sub(6) };
    DataSource::synthetic(&Workload { entries, values, ..Workload::default() })
}

fn quick_plan(options: &Options) -> Vec<Group> {
    use Compression::{None as Plain, Snappy, Zstd};
    use Lookup::{Absent, Present};
    use Operation::{Get, GetMany, GetTimed};
    let main = vec![
        cell(Get, Present, 1),
        cell(GetMany, Present, 1),
        cell(Get, Absent, 1),
        cell(Get, Present, 2),
        cell(GetTimed, Present, 1),
    ];
    let short = vec![cell(Get, Present, 1), cell(GetMany, Present, 1)];
    let one = vec![cell(Get, Present, 1)];
    let group = |source: &DataSource, compression, cells: &Vec<Cell>, thorough: bool| Group {
        source: source.clone(),
        value_bytes: value_label(source),
        compression,
        cells: cells.clone(),
        build_rounds: if thorough { options.rounds } else { 1 },
        openings: thorough,
    };
    let entries = options.quick_entries;
    let (short_values, long_values) = (synthetic(entries, 6), synthetic(entries, 56));
    match file_source(options) {
        Some(file) => vec![
            group(&file, Plain, &main, true),
            group(&short_values, Plain, &main, false),
            group(&long_values, Plain, &short, false),
            group(&file, Snappy, &one, false),
            group(&file, Zstd, &one, false),
        ],
        None => vec![
            group(&short_values, Plain, &main, true),
            group(&long_values, Plain, &short, false),
            group(&long_values, Snappy, &one, false),
            group(&long_values, Zstd, &one, false),
            group(&synthetic((entries / 10).max(1), 6), Plain, &short, false),
        ],
    }
}

fn matrix_plan(options: &Options, matrix: &Matrix) -> Vec<Group> {
    let mut sources: Vec<DataSource> = file_source(options).into_iter().collect();
    for &entries in &matrix.entries {
        sources.extend(matrix.value_bytes.iter().map(|&bytes| synthetic(entries, bytes)));
    }
    let cells = matrix_cells(matrix);
    let mut groups = Vec::new();
    for source in &sources {
        for &compression in &matrix.compressions {
            groups.push(Group {
                source: source.clone(),
                value_bytes: value_label(source),
                compression,
                cells: cells.clone(),
                build_rounds: options.rounds,
                openings: true,
            });
        }
    }
    groups
}

/// Returns single lookups of present keys for every number of threads, but absent keys and batches
/// only for up to two threads. More threads test contention, on which neither has an influence. If
/// all thread counts of the matrix are larger, they get the first one.
fn matrix_cells(matrix: &Matrix) -> Vec<Cell> {
    let few = |threads: u32| threads <= 2 || matrix.threads.first() == Some(&threads);
    let mut cells = Vec::new();
    for &threads in &matrix.threads {
        for &lookup in &matrix.lookups {
            if lookup == Lookup::Present || few(threads) {
                cells.push(cell(Operation::Get, lookup, threads));
            }
            if few(threads) {
                cells.push(cell(Operation::GetMany, lookup, threads));
            }
        }
    }
    if let Some(&lookup) = matrix.lookups.first() {
        cells.push(cell(Operation::GetTimed, lookup, 1));
    }
    let mut seen = HashSet::new();
    cells.retain(|cell| seen.insert((cell.operation, cell.lookup, cell.threads)));
    cells
}

fn value_label(source: &DataSource) -> Option<u32> {
    match source {
        DataSource::Synthetic { values, .. } => Some(values.typical_bytes()),
        DataSource::File { .. } => None,
    }
}
