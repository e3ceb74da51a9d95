//! From the syntax tree of a statement to a physical plan: names, views, and the plan cache.

pub(crate) mod enclosing;
pub(crate) mod names;
pub(crate) mod on_disk;
pub(crate) mod panics;
pub(crate) mod plan_cache;
pub(crate) mod query;
pub(crate) mod recursion;
pub(crate) mod views;
