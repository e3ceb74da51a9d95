//! The cost of a measurement without a pool: the loop over the requests, a load in place of the
//! page, and the sum.

use super::page_file::stamp;
use super::pages::{Access, PageStore, Pages, Session, Setup, each};
use crate::core::error::Result;
use crate::core::settings::Settings;

/// Number of pages with known stamps, a power of two.
const KNOWN: usize = 16;

/// Answers requests for the first 16 pages from an array.
#[derive(Debug)]
pub struct NullPages([u64; KNOWN]);

impl Default for NullPages {
    /// Fills the array.
    fn default() -> Self {
        NullPages(std::array::from_fn(|page| stamp(page as u32)))
    }
}

impl PageStore for NullPages {
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
        Ok(Box::new(NullPages(self.0)))
    }
}

impl Pages for NullPages {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(NullSession(&self.0)))
    }

    fn misses(&self) -> Option<u64> {
        None
    }
}

struct NullSession<'a>(&'a [u64; KNOWN]);

impl Session for NullSession<'_> {
    fn run(&mut self, _: Access, order: &[u32]) -> Result<u64> {
        // Hidden from the compiler, which would otherwise vectorize the sum.
        each(order, |page| Ok(std::hint::black_box(self.0[page as usize % KNOWN])))
    }
}
