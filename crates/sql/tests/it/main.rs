//! Tests of whole databases, in a single binary because it is large.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "examples are programs of users")]

use std::path::Path;

#[path = "../../../../testing/examples.rs"]
#[macro_use]
mod testing;

mod aggregates;
mod alterations;
mod answers;
mod catalog;
mod conditions;
mod copy;
mod cursors;
mod definitions;
mod dependents;
mod direct;
mod functions;
mod general;
mod groupings;
mod groups;
mod identity;
mod joins;
mod large;
mod late_columns;
mod layers;
mod limits;
mod lists;
mod locking;
mod lookups;
mod materialized_ctes;
mod notations;
mod orders;
mod out_of_range;
mod parameters;
mod ranks;
mod records;
mod recursion;
mod references;
mod restarts;
mod session;
mod subqueries;
mod support;
mod unnesting;
mod upstream;
mod values;
mod whole_rows;
mod with;

examples! { sql_first_steps = "../../../../examples/sql_first_steps.rs" }
