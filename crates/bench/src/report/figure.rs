//! A figure: one kind of chart over one choice of the matrix, with a selector for the other choices.
//!
//! Every choice is drawn here, in Rust. The first is part of the page, so it reads without scripts; the others wait in
//! inert `<template>` elements, and the script only swaps them in. So there is one implementation of each chart.

use std::collections::BTreeMap;

use super::html::escape;
use super::model::{Dim, Value};
use crate::results::Measurement;

/// A figure of the page.
#[derive(Debug)]
pub(super) struct Figure<'a> {
    /// Id of its section, for links.
    pub(super) id: &'a str,
    /// Heading. Not escaped.
    pub(super) title: &'a str,
    /// What to look for, one or two sentences. Markup.
    pub(super) lead: String,
    /// The dimensions that tell the variants apart.
    pub(super) dims: Vec<Dim>,
    /// One for each choice that was measured.
    pub(super) variants: Vec<Variant>,
}

/// One choice, drawn.
#[derive(Debug)]
pub(super) struct Variant {
    /// A value for each dimension of the figure.
    pub(super) key: Vec<Value>,
    /// How many contenders it shows.
    pub(super) contenders: usize,
    /// The chart and its table. Markup.
    pub(super) body: String,
}

/// Measurements by what they have in common.
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

/// How well a choice serves as the first one: the plainest case that most contenders share, near a million entries.
pub(super) fn plainness(dims: &[Dim], key: &[Value], contenders: usize) -> (usize, usize, i64) {
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
                distance += (((*entries).max(1) as f64).log10() - 6.0).abs().mul_add(100.0, 0.0) as i64;
            }
            (Dim::ValueBytes, Value::Number(bytes)) => distance += i64::from(*bytes > 64),
            _ => {}
        }
    }
    (plain, contenders, -distance)
}

impl Figure<'_> {
    /// The figure as a section; empty without variants.
    pub(super) fn render(&self) -> String {
        let Some(first) = self.first() else { return String::new() };
        let varying: Vec<(usize, Dim, Vec<Value>)> = self.varying();
        let (id, title) = (escape(self.id), escape(self.title));
        let mut out = format!("<section class=\"figure\" id=\"{id}\"><h2>{title}</h2>");
        if !self.lead.is_empty() {
            out += &format!("<p class=\"lead\">{}</p>", self.lead);
        }
        if !varying.is_empty() {
            out += &selectors(&varying, first);
        }
        out += &format!("<div class=\"view\" aria-live=\"polite\">{}</div>", self.view(first));
        if self.variants.len() > 1 {
            for variant in &self.variants {
                let key = choice(&varying, &variant.key);
                out += &format!("<template data-key=\"{key}\">{}</template>", self.view(variant));
            }
        }
        out + "</section>"
    }

    /// The variant shown first.
    pub(super) fn first(&self) -> Option<&Variant> {
        // max_by_key keeps the last of equals; the first reads better.
        self.variants.iter().rev().max_by_key(|v| plainness(&self.dims, &v.key, v.contenders))
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

    /// The dimensions with a choice, where they stand in a key, and their values in order.
    fn varying(&self) -> Vec<(usize, Dim, Vec<Value>)> {
        let values_of = |place: usize| {
            let mut values: Vec<Value> =
                self.variants.iter().filter_map(|v| v.key.get(place)).cloned().collect();
            values.sort();
            values.dedup();
            values
        };
        let all = self.dims.iter().enumerate().map(|(place, dim)| (place, *dim, values_of(place)));
        all.filter(|(_, _, values)| values.len() > 1).collect()
    }
}

fn selectors(varying: &[(usize, Dim, Vec<Value>)], first: &Variant) -> String {
    let mut out = String::from("<form class=\"pick\" autocomplete=\"off\">");
    for (place, dim, values) in varying {
        out += &format!("<label>{}<select>", dim.label());
        for (index, value) in values.iter().enumerate() {
            let selected = if first.key.get(*place) == Some(value) { " selected" } else { "" };
            out += &format!("<option value=\"{index}\"{selected}>{}</option>", escape(&dim.option(value)));
        }
        out += "</select></label>";
    }
    out + "<p class=\"said\" role=\"status\"></p></form>"
}

/// A key as the places of its values among the options, such as `0.2.1`.
fn choice(varying: &[(usize, Dim, Vec<Value>)], key: &[Value]) -> String {
    let index_of = |place: usize, values: &[Value]| {
        let found = key.get(place).and_then(|value| values.iter().position(|v| v == value));
        found.unwrap_or(0).to_string()
    };
    varying.iter().map(|(place, _, values)| index_of(*place, values)).collect::<Vec<_>>().join(".")
}
