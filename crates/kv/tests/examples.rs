//! Runs the key-value store's examples, so that the first programs a newcomer tries work.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::path::Path;

#[path = "../../../testing/examples.rs"]
#[macro_use]
mod testing;

examples! {
    first_steps = "../../../examples/first_steps.rs",
    atomic_batches = "../../../examples/atomic_batches.rs",
    scans_and_snapshots = "../../../examples/scans_and_snapshots.rs",
    counters = "../../../examples/counters.rs",
    bank_transfers = "../../../examples/bank_transfers.rs",
    sessions = "../../../examples/sessions.rs",
    time_series = "../../../examples/time_series.rs",
    large_values = "../../../examples/large_values.rs",
    bulk_load = "../../../examples/bulk_load.rs",
    durability = "../../../examples/durability.rs",
    events_and_stats = "../../../examples/events_and_stats.rs",
    backups = "../../../examples/backups.rs",
    read_beside_writer = "../../../examples/read_beside_writer.rs",
}
