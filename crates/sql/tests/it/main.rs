//! What needs a whole database: one binary, as it is a large one.

mod copy;
mod direct;
mod general;
mod records;
mod support;
