//! Iteration: merging sources, and resolving the entries that a reader sees.

pub(crate) mod merge;
pub(crate) mod resolve;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod visible;
