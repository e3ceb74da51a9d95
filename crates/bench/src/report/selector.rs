//! How a reader chooses among the variants of a figure.
//!
//! If most combinations of the dimensions were measured, each dimension has a selector. If only few
//! were, as in a quick run, such selectors would offer mostly combinations without measurements, so
//! a single selector lists the cases instead.

use super::html::escape;
use super::model::{Dim, Value};

/// Below this fraction of all combinations, one list of cases is used.
const DENSE: f64 = 0.4;

/// The selectors of one figure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selector {
    /// One selector for each dimension that varies, with its index in a key and its values in
    /// order.
    Dimensions(Vec<Varying>),
    /// One selector for all cases: the dimensions that vary, and the keys in order.
    Cases(Vec<Varying>, Vec<Vec<Value>>),
}

/// A dimension with more than one value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Varying {
    place: usize,
    dim: Dim,
    values: Vec<Value>,
}

impl Selector {
    /// Creates the selector for variants with these keys. A key holds a value for each of `dims`.
    pub(super) fn new(dims: &[Dim], keys: &[&[Value]]) -> Self {
        let values_of = |place: usize| {
            let mut values: Vec<Value> = keys.iter().filter_map(|key| key.get(place)).cloned().collect();
            values.sort();
            values.dedup();
            values
        };
        let all = dims.iter().enumerate().map(|(place, dim)| Varying {
            place,
            dim: *dim,
            values: values_of(place),
        });
        let varying: Vec<Varying> = all.filter(|varying| varying.values.len() > 1).collect();
        let combinations: f64 = varying.iter().map(|varying| varying.values.len() as f64).product();
        if keys.is_empty() || keys.len() as f64 >= DENSE * combinations {
            return Selector::Dimensions(varying);
        }
        let mut cases: Vec<Vec<Value>> = keys.iter().map(|key| key.to_vec()).collect();
        cases.sort();
        cases.dedup();
        Selector::Cases(varying, cases)
    }

    /// Renders the form with `first` chosen; empty if there is no choice.
    pub(super) fn form(&self, first: &[Value]) -> String {
        let selects = match self {
            Selector::Dimensions(varying) => {
                let select = |Varying { place, dim, values }: &Varying| {
                    let option = |value: &Value| (dim.option(value), first.get(*place) == Some(value));
                    select(dim.label(), values.iter().map(option))
                };
                varying.iter().map(select).collect::<String>()
            }
            Selector::Cases(varying, cases) => {
                let option = |case: &Vec<Value>| (described(varying, case), case == first);
                select("Case", cases.iter().map(option))
            }
        };
        if selects.is_empty() {
            return selects;
        }
        format!(
            "<form class=\"pick\" autocomplete=\"off\">{selects}<p class=\"said\" role=\"status\"></p></form>"
        )
    }

    /// Returns a key as the indexes of its options in the selectors, such as `0.2.1`. The script
    /// compares this text.
    pub(super) fn choice(&self, key: &[Value]) -> String {
        match self {
            Selector::Dimensions(varying) => {
                let place_of = |Varying { place, values, .. }: &Varying| {
                    let found =
                        key.get(*place).and_then(|value| values.iter().position(|other| other == value));
                    found.unwrap_or(0).to_string()
                };
                varying.iter().map(place_of).collect::<Vec<_>>().join(".")
            }
            Selector::Cases(_, cases) => cases.iter().position(|case| case == key).unwrap_or(0).to_string(),
        }
    }
}

fn select(label: &str, options: impl Iterator<Item = (String, bool)>) -> String {
    let option = |(index, (text, chosen)): (usize, (String, bool))| {
        let selected = if chosen { " selected" } else { "" };
        format!("<option value=\"{index}\"{selected}>{}</option>", escape(&text))
    };
    format!("<label>{label}<select>{}</select></label>", options.enumerate().map(option).collect::<String>())
}

/// Describes a case by the dimensions that vary.
fn described(varying: &[Varying], case: &[Value]) -> String {
    let phrase = |Varying { place, dim, .. }: &Varying| case.get(*place).map(|value| dim.phrase(value));
    let phrases: Vec<String> =
        varying.iter().filter_map(phrase).filter(|phrase| !phrase.is_empty()).collect();
    phrases.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIMS: [Dim; 3] = [Dim::Entries, Dim::Compression, Dim::Threads];

    fn key(entries: u64, compression: &str, threads: u64) -> Vec<Value> {
        vec![Value::Number(entries), Value::Text(compression.to_owned()), Value::Number(threads)]
    }

    fn selector(keys: &[Vec<Value>]) -> Selector {
        Selector::new(&DIMS, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Goal: a full matrix has one selector per dimension, without those that do not vary. Method:
    /// two by two.
    #[test]
    fn dense_choices_have_a_selector_each() {
        let keys = [key(10, "none", 1), key(10, "none", 2), key(200, "none", 1), key(200, "none", 2)];
        let selector = selector(&keys);
        let form = selector.form(&keys[1]);
        assert_eq!(form.matches("<select>").count(), 2);
        assert!(form.contains("Entries") && form.contains("Threads") && !form.contains("Compression"));
        assert!(form.contains("<option value=\"1\" selected>2<"), "{form}");
        let choices: Vec<String> = keys.iter().map(|key| selector.choice(key)).collect();
        assert_eq!(choices, ["0.0", "0.1", "1.0", "1.1"]);
    }

    /// Goal: scattered cases are chosen from one list that distinguishes them. Method: three of
    /// eighteen combinations.
    #[test]
    fn scattered_cases_have_one_selector() {
        let keys = [key(10, "none", 1), key(200, "zstd", 8), key(3000, "snappy", 1)];
        let selector = selector(&keys);
        let form = selector.form(&keys[2]);
        assert_eq!((form.matches("<select>").count(), form.matches("<option").count()), (1, 3));
        assert!(form.contains("selected>3 k entries · snappy · 1 thread<"), "{form}");
        assert_eq!(selector.choice(&keys[1]), "1");
    }

    /// Goal: without a choice there is no form. Method: one key, and none.
    #[test]
    fn a_single_case_has_no_selector() {
        assert_eq!(selector(&[key(1, "none", 1)]).form(&key(1, "none", 1)), "");
        assert_eq!(selector(&[]).form(&[]), "");
    }
}
