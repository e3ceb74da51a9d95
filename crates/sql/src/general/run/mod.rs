//! The run of a query: its memory, its rows on their way to the client, and materialized rows.

pub(crate) mod batches;
pub(crate) mod materialize;
pub(crate) mod materialized;
pub(crate) mod memory;
