//! The cost of a measurement without a pool: the loop over the requests, a load in place of the
//! page, and the sum.

use super::pages::stamp;
use super::store::{Access, PageStore, Pages, Session, Setup, each};
use crate::engine::Settings;
use crate::error::Result;

/// Number of pages with known stamps, a power of two.
const KNOWN: usize = 16;

/// Answers requests for the first 16 pages from an array.
#[derive(Debug)]
pub struct Nothing([u64; KNOWN]);

impl Nothing {
    /// Fills the array.
    pub fn new() -> Self {
        Nothing(std::array::from_fn(|page| stamp(page as u32)))
    }
}

impl PageStore for Nothing {
    fn name(&self) -> &str {
        "nothing"
    }

    fn family(&self) -> &str {
        self.name()
    }

    fn version(&self) -> String {
        String::new()
    }

    fn settings(&self, _: &Setup<'_>) -> Settings {
        Settings::new()
    }

    fn can(&self, access: Access, _: u32) -> bool {
        access == Access::Shared
    }

    fn open(&self, _: &Setup<'_>) -> Result<Box<dyn Pages>> {
        Ok(Box::new(Nothing(self.0)))
    }
}

impl Pages for Nothing {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Loop(&self.0)))
    }

    fn misses(&self) -> Option<u64> {
        None
    }
}

struct Loop<'a>(&'a [u64; KNOWN]);

impl Session for Loop<'_> {
    fn run(&mut self, _: Access, order: &[u32]) -> Result<u64> {
        // Hidden from the compiler, which would otherwise vectorize the sum.
        each(order, |page| Ok(std::hint::black_box(self.0[page as usize % KNOWN])))
    }
}
