//! A figure: one kind of chart for one choice in the matrix, with a selector for the other choices.
//!
//! All choices are drawn here, in Rust, so each chart has one implementation. The first choice is
//! part of the page, which therefore reads without scripts. All choices are also stored as the text
//! of `<script type="text/html">` elements, and the page's script only swaps them in. `<template>`
//! elements would work too, but the browser would create all their content before it shows the
//! page.

use std::collections::BTreeMap;

use super::html::escape;
use super::model::{Dim, Model, Value};
use super::selector::Selector;
use crate::core::results::Measurement;
use crate::core::stats;

/// A figure of the page.
#[derive(Debug)]
pub(super) struct Figure<'a> {
    /// Id of the section, for links.
    pub(super) id: &'a str,
    /// Heading. Not escaped.
    pub(super) title: &'a str,
    /// What to look for, in one or two sentences. Markup.
    pub(super) lead: String,
    /// The dimensions that distinguish the variants.
    pub(super) dims: Vec<Dim>,
    /// One variant for each choice that was measured.
    pub(super) variants: Vec<Variant>,
}

/// One choice, drawn.
#[derive(Debug)]
pub(super) struct Variant {
    /// A value for each dimension of the figure.
    pub(super) key: Vec<Value>,
    /// The chart and its table. Markup.
    body: String,
    /// How well the variant serves as the one shown first, see [`Variant::new`].
    rank: Rank,
}

/// Whether there are enough samples to compare, number of plain dimensions, coverage of the store,
/// number of contenders, and closeness to a million entries. More is better.
type Rank = (bool, usize, usize, usize, i64);

impl Variant {
    /// Creates a variant of a figure over `dims`, drawn from `slice`.
    ///
    /// The variant shown first is one with enough samples to say who is ahead, if there is any.
    /// Among those, these criteria decide, in this order: the plainer case, more measurements of
    /// its store, more contenders, and an entry count closer to a million.
    pub(super) fn new(
        model: &Model<'_>,
        dims: &[Dim],
        key: Vec<Value>,
        slice: &[&Measurement],
        body: String,
    ) -> Self {
        let mut names: Vec<&str> = slice.iter().map(|m| m.contender.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let (plain, closeness) = plainness(dims, &key);
        let coverage = slice.first().map_or(0, |m| model.coverage(&m.case));
        let enough = |m: &&&Measurement| m.is_exact() || m.samples.len() >= stats::SAMPLES_MIN;
        let mut comparable: Vec<&str> = slice.iter().filter(enough).map(|m| m.contender.as_str()).collect();
        comparable.sort_unstable();
        comparable.dedup();
        let is_decided = comparable.len() >= names.len().min(2);
        Variant { rank: (is_decided, plain, coverage, names.len(), closeness), key, body }
    }
}

/// Measurements grouped by the values that they share.
pub(super) type Slices<'m> = BTreeMap<Vec<Value>, Vec<&'m Measurement>>;

/// Groups measurements by their values in `dims`.
pub(super) fn slices<'m>(measurements: impl Iterator<Item = &'m Measurement>, dims: &[Dim]) -> Slices<'m> {
    let mut out = Slices::new();
    for measurement in measurements {
        let key = dims.iter().map(|dim| dim.of(&measurement.case)).collect();
        out.entry(key).or_default().push(measurement);
    }
    out
}

/// Returns how plain a case is, and how close it is to a million entries. More is better.
pub(super) fn plainness(dims: &[Dim], key: &[Value]) -> (usize, i64) {
    let mut plain = 0;
    let mut distance = 0;
    for (dim, value) in dims.iter().zip(key) {
        match (dim, value) {
            (Dim::Threads, Value::Number(1)) => plain += 1,
            (Dim::Compression, Value::Text(text)) if text == "none" => plain += 1,
            (Dim::Keys, Value::Text(text)) if text == "present" => plain += 1,
            (Dim::Distribution, Value::Text(text)) if text == "uniform" => plain += 1,
            (Dim::Operation, Value::Text(text)) if text == "get" => plain += 1,
            (Dim::Entries, Value::Number(entries)) => {
                distance += (100.0 * ((*entries).max(1) as f64 / 1e6).log10().abs()) as i64;
            }
            (Dim::ValueBytes, Value::Number(bytes)) => distance += i64::from(*bytes > 64),
            _ => {}
        }
    }
    (plain, -distance)
}

impl Figure<'_> {
    /// Renders the figure as a section; empty without variants.
    pub(super) fn render(&self) -> String {
        let Some(first) = self.first() else { return String::new() };
        let keys: Vec<&[Value]> = self.variants.iter().map(|variant| variant.key.as_slice()).collect();
        let selector = Selector::new(&self.dims, &keys);
        let (id, title) = (escape(self.id), escape(self.title));
        let mut out = format!("<section class=\"figure\" id=\"{id}\"><h2>{title}</h2>");
        if !self.lead.is_empty() {
            out += &format!("<p class=\"lead\">{}</p>", self.lead);
        }
        out += &selector.form(&first.key);
        out += &format!("<div class=\"view\" aria-live=\"polite\">{}</div>", self.view(first));
        if self.variants.len() > 1 {
            for variant in &self.variants {
                let key = selector.choice(&variant.key);
                out +=
                    &format!("<script type=\"text/html\" data-key=\"{key}\">{}</script>", self.view(variant));
            }
        }
        out + "</section>"
    }

    /// Drops all variants except the one that is shown first.
    pub(super) fn keep_first(&mut self) {
        let Some(key) = self.first().map(|first| first.key.clone()) else { return };
        self.variants.retain(|variant| variant.key == key);
    }

    /// Returns the variant that is shown first.
    pub(super) fn first(&self) -> Option<&Variant> {
        // `max_by_key` returns the last of equal elements, and the first of them is wanted: hence
        // `rev`.
        self.variants.iter().rev().max_by_key(|variant| variant.rank)
    }

    fn view(&self, variant: &Variant) -> String {
        let phrases = self.dims.iter().zip(&variant.key).map(|(dim, value)| dim.phrase(value));
        let shown: Vec<String> = phrases.filter(|p| !p.is_empty()).map(|p| escape(&p)).collect();
        let shown = if shown.is_empty() {
            String::new()
        } else {
            format!("<p class=\"shown\">{}</p>", shown.join(" · "))
        };
        shown + &variant.body
    }
}
