//! PostgreSQL's regular expressions ("advanced" ones), on an engine that takes linear time.
//!
//! ```text
//! pattern, flags --options--> Options --translate--> engine's notation --compile, kept--> Regular
//! ```
//!
//! The engine lacks back-references and lookaround, which are rejected with 0A000. Each part of a
//! pattern is greedy or not on its own, whereas PostgreSQL decides for a whole branch. This does
//! not affect whether there is a match.

mod options;
mod search;
mod similar;
mod translate;

use std::cell::RefCell;

use cairn_vfs::sync::Arc;
use regex::{Captures, Regex, RegexBuilder};

pub(crate) use options::Options;
pub(super) use search::{count, instr, like, part, replace, substr};
pub(crate) use search::{first_match, split};
pub(crate) use similar::similar;
pub(super) use similar::similar_part;
use translate::translate;

use crate::error::{Error, Result};
use crate::sqlstate::INVALID_REGULAR_EXPRESSION;

/// The size limit of a compiled expression, in bytes.
const LARGEST_BYTES: usize = 4 << 20;

/// The number of compiled expressions cached per thread.
const KEPT: usize = 32;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Regular {
    regex: Regex,
    /// The number of capture groups.
    groups: usize,
}

type Key = (String, Options);

thread_local! {
    /// The newest is last, because a pattern mostly equals that of the previous row.
    static KNOWN: RefCell<Vec<(Key, Arc<Regular>)>> = const { RefCell::new(Vec::new()) };
}

impl Regular {
    /// Compiles a pattern, or returns it from the cache.
    ///
    /// Errors: 2201B for an invalid pattern, 0A000 for features that the engine lacks.
    pub fn of(pattern: &str, options: Options) -> Result<Arc<Regular>> {
        let is_it = |((text, of), _): &(Key, Arc<Regular>)| text == pattern && *of == options;
        let known =
            KNOWN.with_borrow(|known| known.iter().rev().find(|one| is_it(one)).map(|(_, r)| Arc::clone(r)));
        if let Some(known) = known {
            return Ok(known);
        }
        let made = Arc::new(Regular::compile(pattern, options)?);
        KNOWN.with_borrow_mut(|known| {
            if known.len() >= KEPT {
                known.remove(0);
            }
            known.push(((pattern.to_owned(), options), Arc::clone(&made)));
        });
        Ok(made)
    }

    fn compile(pattern: &str, options: Options) -> Result<Regular> {
        Regular::of_translated(&translate(pattern, options)?)
    }

    /// Compiles a pattern in the engine's notation.
    fn of_translated(translated: &str) -> Result<Regular> {
        let regex = RegexBuilder::new(translated).size_limit(LARGEST_BYTES).build().map_err(|error| {
            invalid(match error {
                regex::Error::CompiledTooBig(_) => "regular expression is too complex",
                _ => "invalid escape, bracket or repetition",
            })
        })?;
        Ok(Regular { groups: regex.captures_len() - 1, regex })
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    fn captures_at<'t>(&self, text: &'t str, start: usize) -> Option<Captures<'t>> {
        if start > text.len() { None } else { self.regex.captures_at(text, start) }
    }
}

/// Returns the error for an invalid pattern, in PostgreSQL's words.
fn invalid(what: &str) -> Error {
    Error::new(INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {what}"))
}
