//! Exports a run as the list that continuous-benchmark dashboards accept: name, unit, value.
//!
//! Names are those of [`case_name`] with the metric, and stay the same from run to run. A run for a
//! dashboard ignores its filter
//! ([`Options::for_dashboard`](crate::suites::hash::Options::for_dashboard)), because a filtered
//! run would leave gaps in the history.

use serde::{Deserialize, Serialize};

use crate::core::recorder::case_name;
use crate::core::results::Run;

/// One figure of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Suite, case, contender and metric.
    pub name: String,
    /// Unit of the value.
    pub unit: String,
    /// The median.
    pub value: f64,
}

/// Returns all finite medians of a run, in its order.
pub fn entries(run: &Run) -> Vec<Entry> {
    let finite = run.measurements.iter().filter(|measurement| measurement.median.is_finite());
    finite
        .map(|measurement| Entry {
            name: format!(
                "{}: {}",
                case_name(&run.suite, &measurement.case, &measurement.contender),
                measurement.metric
            ),
            unit: measurement.unit.clone(),
            value: measurement.median,
        })
        .collect()
}

/// Renders [`entries`] as JSON.
pub fn to_json(run: &Run) -> String {
    serde_json::to_string_pretty(&entries(run)).unwrap_or_else(|_| "[]".to_owned()) + "\n"
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::core::testing::sample_run;

    /// Goal: the list has exactly the three members that dashboards know, and every name once.
    #[test]
    fn list_form() {
        let run = sample_run();
        let list: serde_json::Value = serde_json::from_str(&to_json(&run)).unwrap();
        let list = list.as_array().unwrap();
        assert_eq!(list.len(), run.measurements.len());
        for entry in list {
            let members: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(members, ["name", "unit", "value"]);
        }
        let names: HashSet<&str> = list.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
        assert_eq!(names.len(), list.len());
        assert!(names.iter().any(|name| name.ends_with("/threads=1/cairn mmap: throughput")), "{names:?}");
    }

    /// Goal: a figure that is infinite is left out, because JSON cannot represent it.
    #[test]
    fn infinite_figures_are_left_out() {
        let mut run = sample_run();
        run.measurements[0].median = f64::INFINITY;
        assert_eq!(entries(&run).len(), run.measurements.len() - 1);
    }
}
