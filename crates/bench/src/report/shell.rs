//! The frame around the sections of a page, which is one file that loads nothing.

use super::html::{embed_json, escape};
use super::page::{POLICY, SCRIPT, STYLE};
use super::svg::SYMBOLS;

/// A page other than the report of a run.
pub(super) struct Shell<'a> {
    /// Title of the page. Not escaped.
    pub(super) title: &'a str,
    /// The header. Markup.
    pub(super) header: &'a str,
    /// Links to the sections. Markup.
    pub(super) links: &'a str,
    /// The sections. Markup.
    pub(super) main: &'a str,
    /// The sentence at the end of the page. Not escaped.
    pub(super) foot: &'a str,
    /// The data of the page, as JSON.
    pub(super) json: &'a str,
}

impl Shell<'_> {
    /// Renders the whole document.
    pub(super) fn render(&self) -> String {
        let Shell { title, header, links, main, foot, json } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
             <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"generator\" content=\"cairn\">\
             <link rel=\"icon\" href=\"data:,\"><title>{title}</title><style>{STYLE}</style></head><body>{SYMBOLS}\
             <a class=\"skip\" href=\"#main\">Skip to the figures</a>{header}\
             <nav aria-label=\"Sections\"><div class=\"links\">{links}</div>\
             <button type=\"button\" id=\"theme\" aria-label=\"Switch between light and dark\">◐</button></nav>\
             <main id=\"main\">{main}</main><footer><p>{foot} The page loads nothing from other places.</p></footer>\
             <div id=\"tip\" role=\"tooltip\" hidden></div>\
             <script type=\"application/json\" id=\"run\">{json}</script><script>{SCRIPT}</script></body></html>\n",
            title = escape(title),
            foot = escape(foot),
            json = embed_json(json),
        )
    }
}
