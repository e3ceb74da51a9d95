//! Workload files: questions in JSON.

use std::path::PathBuf;

use cairn_sim::json;

use super::question::{Fault, Question, Workload};
use super::traced::from_trace;
use crate::core::error::{Error, Result};
use crate::stores::catalog::Registry;
use crate::stores::kv::KvStore;

/// The former name of `constraints.p99_us`, which workload files may still use.
const P99_BEFORE: &str = "constraints.p99_micros";

/// Parses a workload file in JSON. `file` is its name for messages, `stores` are those to choose
/// from. If the file names a trace, this also reads the trace.
///
/// Errors: [`Error::Input`] with the line, the field and the expected value; those of
/// [`from_trace`].
pub fn from_json(text: &str, file: &str, stores: &Registry<dyn KvStore>) -> Result<Question> {
    let refuse = |line: Option<usize>, what: String| {
        let line = line.map(|line| line as u64);
        Error::Input { file: PathBuf::from(file), line, what }
    };
    let question: Question = json::parse(text, file).map_err(|error| match error {
        cairn_sim::Error::Parse { line, what, .. } => refuse(Some(line), what),
        other => refuse(None, other.to_string()),
    })?;
    let constraints = question.constraints.fault(&stores.all_names());
    for (section, fault) in [("workload", question.workload.fault()), ("constraints", constraints)] {
        if let Some(Fault { field, found, expected }) = fault {
            let path = format!("{section}.{field}");
            let what = format!("{path}: found {found}, expected {expected}");
            let line = json::line_of(text, &path).or_else(|| json::line_of(text, P99_BEFORE));
            return Err(refuse(line, what));
        }
    }
    question.workload.check().map_err(|error| refuse(None, error.to_string()))?;
    let Some(trace) = &question.trace else { return Ok(question) };
    let threads = json::line_of(text, "workload.threads").map(|_| question.workload.threads);
    let traced = from_trace(trace, threads)?.workload;
    let workload = Workload { durability: question.workload.durability, ..traced };
    Ok(Question { workload, ..question })
}
