//! Checks whether a run's filter selects anything, before anything is created.

use super::options::Options;
use super::plan::plan;
use crate::core::process::Stop;
use crate::core::recorder::case_name;
use crate::core::results::SPARKEY_JAVA;
use crate::stores::catalog::Catalog;
use crate::stores::java::Construction;
use crate::suites::hash::job::DataSource;

/// Returns true unless the filter cannot be part of the name of any case and contender. Parts of a
/// name that are known only after reading the data count as a match.
pub fn chooses_anything(options: &Options, catalog: &Catalog) -> bool {
    let Some(filter) = options.effective_filter() else { return true };
    let contenders = contenders(options, catalog);
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
fn contenders(options: &Options, catalog: &Catalog) -> Vec<String> {
    let stores = catalog.constant.all();
    let mut names: Vec<String> = stores.skipped.into_iter().map(|contender| contender.name).collect();
    for store in &stores.stores {
        names.push(store.name().to_owned());
        names.extend(store.variants().into_iter().map(|variant| variant.name));
    }
    match (catalog.java)(&Stop::after(None)) {
        Ok(java) => {
            names.extend(java.offered(&options.java.readers).iter().map(|reader| reader.contender()));
            names.extend(Construction::ALL.map(|construction| construction.contender().to_owned()));
        }
        Err(_) => names.push(SPARKEY_JAVA.to_owned()),
    }
    names
}
