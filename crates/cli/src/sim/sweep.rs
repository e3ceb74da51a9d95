//! `cairn sim sweep`: runs many configurations; output as CSV, Parquet or JSON.

use std::path::Path;
use std::sync::Arc;

use cairn_sim::Results;
use cairn_sim::results::Outcome as RunOutcome;
use cairn_vfs::Fs;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Map, Value};

use super::run::tell;
use super::setup::{Setup, setup};
use super::vary::{Axis, Point, points, run_until_ctrl_c};
use crate::args::sim::SweepArgs;
use crate::bench::write_file;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, is_stdout};

/// The name of a figure, and the function that extracts it from a result.
pub type Figure = (&'static str, fn(&Results) -> f64);

/// The figures of a result, in column order.
pub const FIGURES: [Figure; 16] = [
    ("write_amp", |it| it.write_amplification),
    ("write_amp_user", |it| it.write_amplification_user),
    ("space_amp", |it| it.space_amplification),
    ("user_mb_per_sec", |it| it.user_mb_per_sec),
    ("stopped", |it| it.stopped),
    ("delayed", |it| it.delayed),
    ("stall_secs", |it| it.stall_secs.values().sum()),
    ("debt_bytes", |it| it.debt_bytes as f64),
    ("put_p99_us", |it| it.put.p99_us),
    ("get_p99_us", |it| it.get.p99_us),
    ("cache_hit", |it| it.reads.as_ref().map_or(0.0, |reads| reads.cache_hit)),
    ("cpu", |it| it.cpu),
    ("disk_read", |it| it.disk_read),
    ("disk_write", |it| it.disk_write),
    ("memory_bytes", |it| it.memory_bytes as f64),
    ("tree_bytes", |it| it.tree_bytes as f64),
];

/// A table of column names and rows of strings or numbers.
struct Sheet {
    names: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Sheet {
    /// Creates the table of all results. A flaw of their trace, if any, goes into a last column.
    fn new(axes: &[Axis], points: &[Point], results: &[Results], flaw: Option<&str>) -> Sheet {
        let mut names: Vec<String> = axes.iter().map(|axis| axis.path.clone()).collect();
        names.extend(["outcome", "bound"].map(str::to_owned));
        names.extend(FIGURES.map(|(name, _)| name.to_owned()));
        names.extend(flaw.map(|_| "trace_flaw".to_owned()));
        let row = |(point, results): (&Point, &Results)| {
            let mut row = point.values.clone();
            row.push(outcome(results.outcome).into());
            row.push(if results.is_cpu_bound { "cpu" } else { "io" }.into());
            row.extend(FIGURES.map(|(_, figure)| figure(results).into()));
            row.extend(flaw.map(Value::from));
            row
        };
        Sheet { names, rows: points.iter().zip(results).map(row).collect() }
    }

    fn csv(&self) -> Result<Vec<u8>> {
        let fail = |error: csv::Error| Error::usage(error.to_string());
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.names).map_err(fail)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(plain)).map_err(fail)?;
        }
        writer.into_inner().map_err(|error| Error::usage(error.to_string()))
    }

    /// Encodes the table as Parquet. Columns are doubles if all values are numbers, else strings.
    fn parquet(&self) -> Result<Vec<u8>> {
        let fail = |error: parquet::errors::ParquetError| Error::usage(format!("Parquet: {error}"));
        let is_number = |at: usize| self.rows.iter().all(|row| row.get(at).is_some_and(Value::is_number));
        let mut schema = "message sweep {\n".to_owned();
        for (at, name) in self.names.iter().enumerate() {
            // Dots separate levels of a schema.
            let name = name.replace(['.', ' '], "_");
            schema += &match is_number(at) {
                true => format!("  required double {name};\n"),
                false => format!("  required binary {name} (UTF8);\n"),
            };
        }
        schema += "}";
        let schema = Arc::new(parse_message_type(&schema).map_err(fail)?);
        let codec = Compression::ZSTD(ZstdLevel::default());
        let properties = Arc::new(WriterProperties::builder().set_compression(codec).build());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).map_err(fail)?;
        let mut group = writer.next_row_group().map_err(fail)?;
        let mut at = 0;
        while let Some(mut column) = group.next_column().map_err(fail)? {
            let values = self.rows.iter().filter_map(|row| row.get(at));
            if is_number(at) {
                let values: Vec<f64> = values.filter_map(Value::as_f64).collect();
                column.typed::<DoubleType>().write_batch(&values, None, None).map_err(fail)?;
            } else {
                let values: Vec<ByteArray> =
                    values.map(|value| ByteArray::from(plain(value).into_bytes())).collect();
                column.typed::<ByteArrayType>().write_batch(&values, None, None).map_err(fail)?;
            }
            column.close().map_err(fail)?;
            at += 1;
        }
        group.close().map_err(fail)?;
        writer.into_inner().map_err(fail)
    }

    fn json(&self) -> impl Iterator<Item = Value> + '_ {
        self.rows.iter().map(|row| {
            let fields: Map<String, Value> = self.names.iter().cloned().zip(row.iter().cloned()).collect();
            Value::Object(fields)
        })
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the outcome in one word.
pub fn outcome(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Running => "running",
        RunOutcome::Done => "done",
        RunOutcome::OutOfMemory => "out_of_memory",
        RunOutcome::Stuck => "stuck",
        RunOutcome::TooManyEvents => "too_many_events",
    }
}

fn is_parquet(path: &Path) -> Result<bool> {
    match path.extension().and_then(|it| it.to_str()) {
        Some("parquet") => Ok(true),
        Some("csv") => Ok(false),
        _ if is_stdout(path) => Ok(false),
        _ => Err(Error::usage(format!(
            "--out {}: expected a name with .csv or .parquet, or -",
            path.display()
        ))),
    }
}

/// Runs all configurations and writes the table.
pub fn run(fs: &Arc<dyn Fs>, args: &SweepArgs) -> Result<Outcome> {
    // Check this before the runs, not after them.
    let parquet = args.out.as_deref().map(is_parquet).transpose()?;
    let mut out = Output::beside("--out", args.out.as_deref(), args.json)?;
    let Setup { config, notes, flaw } = setup(fs, &args.from)?;
    tell(&notes);
    let (axes, points) = points(&config, &args.vary)?;
    let (points, results, ended) = run_until_ctrl_c(points, args.vary.threads)?;
    let sheet = Sheet::new(&axes, &points, &results, flaw.as_deref());
    if args.json {
        for line in sheet.json() {
            out.json(&line)?;
        }
    }
    match (&args.out, parquet) {
        (Some(path), Some(true)) => write_file(fs, path, &sheet.parquet()?)?,
        (Some(path), _) => write_file(fs, path, &sheet.csv()?)?,
        (None, _) if !args.json => out.bytes(&sheet.csv()?)?,
        (None, _) => {}
    }
    out.finish()?;
    ended.map_or(Ok(Outcome::Done), Err)
}
