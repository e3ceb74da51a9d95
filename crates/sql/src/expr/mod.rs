//! Compiled expressions over one row, for the direct path, checks and defaults.
//!
//! Three-valued logic, types and errors are PostgreSQL's. An expression that the compiler does not
//! support is not an error: the statement takes the general path ([`Failure::Unknown`]).

mod age;
mod analytic;
mod arithmetic;
mod cast;
mod compile;
mod construct;
mod degrees;
mod eval;
mod external;
pub(crate) mod functions;
mod hyperbolic;
mod letter_case;
mod like;
mod literal;
mod logic;
mod node;
mod operator;
mod operator_types;
mod pattern;
mod quote;
mod regular;
mod scope;
mod time;
mod value;

pub(crate) use arithmetic::{doubles, one_nan, reals, too_large};
pub(crate) use cast::{assign, cast, is_assignable};
pub(crate) use compile::{Compiler, Failure, NoContext, Typed, interval_literal, positional};
pub(crate) use eval::{Cells, Env};
pub(crate) use external::{Operation, scale_of_pattern};
pub(crate) use functions::{Function, Input, Kind, encoded, names_for_general_path};
pub(crate) use logic::{compare, values_of};
pub(crate) use node::Node;
pub(crate) use operator::{Comparison, Operator};
pub(crate) use operator_types::{no_operator, undefined_operator};
pub(crate) use regular::{first_match, similar, split};
pub(crate) use scope::Scope;
pub(crate) use time::extract;
pub(crate) use value::{Context, Val};

pub(crate) use literal::{MAX_PARAMETERS, double, parameter};

#[cfg(test)]
mod tests;
