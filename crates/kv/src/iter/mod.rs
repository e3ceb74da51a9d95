//! Walking: merges of sources, and what of them a reader may see.

pub(crate) mod merge;
pub(crate) mod resolve;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod visible;
