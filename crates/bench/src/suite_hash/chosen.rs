//! Checks whether a run's filter selects anything, before anything is created.

use super::options::Options;
use super::plan::plan;
use super::recorder::case_name;
use crate::catalog;
use crate::peers::sparkey_java::{self, Construction, SparkeyJava};
use crate::process::Stop;
use crate::runner::job::DataSource;

/// Returns true unless the filter cannot be part of the name of any case and contender. Parts of a
/// name that are known only after reading the data count as a match.
pub fn chooses_anything(options: &Options) -> bool {
    let Some(filter) = options.effective_filter() else { return true };
    let contenders = contenders(options);
    plan(options).iter().any(|group| {
        let is_counted_later = matches!(group.source, DataSource::File { .. });
        if is_counted_later && ["entries=", "value="].iter().any(|count| filter.contains(count)) {
            return true;
        }
        group.foreseen().iter().any(|case| {
            contenders.iter().any(|contender| case_name(super::NAME, case, contender).contains(filter))
        })
    })
}

/// Returns the names of all possible contenders. They include those that cannot run; the run
/// reports why.
fn contenders(options: &Options) -> Vec<String> {
    let catalog = catalog::all();
    let mut names: Vec<String> = catalog.skipped.into_iter().map(|contender| contender.name).collect();
    for store in &catalog.stores {
        names.push(store.name().to_owned());
        names.extend(store.variants().into_iter().map(|variant| variant.name));
    }
    match SparkeyJava::find(&Stop::after(None)) {
        Ok(java) => {
            names.extend(java.offered(&options.java.readers).iter().map(|reader| reader.contender()));
            names.extend(Construction::ALL.map(|construction| construction.contender().to_owned()));
        }
        Err(_) => names.push(sparkey_java::FAMILY.to_owned()),
    }
    names
}
