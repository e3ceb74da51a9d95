//! Compiled expressions over one row, for the direct path, checks and defaults.
//!
//! Three-valued logic, types and errors are PostgreSQL's. An expression that the compiler does not
//! support is not an error: the statement takes the general path ([`Failure::Unknown`]).

mod age;
mod analytic;
mod arithmetic;
mod builtin;
mod call;
mod cast;
mod compile;
mod eval;
mod letters;
mod like;
mod literal;
mod logic;
mod made;
mod node;
mod operators;
mod outside;
mod pattern;
mod regular;
mod scope;
mod texts;
mod time;

pub(crate) use analytic::Analytic;
pub(crate) use arithmetic::{doubles, one_nan, reals, too_large};
pub(crate) use builtin::Function;
pub(crate) use cast::{assign, cast, is_assignable};
pub(crate) use compile::{Compiler, Failure, NoContext, Typed, interval_literal, positional};
pub(crate) use eval::{Cells, Context, Env, Val};
pub(crate) use logic::{compare, values_of};
pub(crate) use node::{Comparison, Node, Operator};
pub(crate) use operators::undefined_operator;
pub(crate) use outside::{Deed, scale_of_pattern};
pub(crate) use regular::{Options, Regular, first_match, similar, split};
pub(crate) use scope::Scope;
pub(crate) use time::{extract, truncate};

pub(crate) use literal::{MOST_PARAMETERS, double, parameter};

#[cfg(test)]
mod tests;
