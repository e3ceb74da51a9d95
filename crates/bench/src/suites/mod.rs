//! The suites, which measure one kind of store each, and the driver that runs them.

pub mod all;
pub mod counts;
pub(crate) mod driver;
pub mod hash;
pub mod index;
pub mod kv;
pub mod pool;
pub mod sim;
pub mod sql;
