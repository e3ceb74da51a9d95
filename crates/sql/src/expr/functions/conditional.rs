//! Conditional expressions and other functions that are part of the syntax.

use std::cmp::Ordering;

use super::Kind::{Any, AnyElement, Text};
use super::{Body, Call, Function, function};
use crate::datum::{Datum, DatumRef};
use crate::expr::Val;
use crate::expr::logic;
use crate::expr::operator::Operator;

/// A function that the compiler turns into a node of its own, or into other calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `age` with one argument.
    AgeToday,
    Coalesce,
    /// The arguments get a common type, and the function of the row at hand is called.
    Extreme(&'static Function),
    NullIf,
    /// An operator, with its symbol.
    Operator(Operator, &'static str),
    TypeOf,
}

static GREATEST: Function = extreme("greatest", |c| largest(c, Ordering::Greater));
static LEAST: Function = extreme("least", |c| largest(c, Ordering::Less));

pub(super) static ROWS: &[Function] = &[
    form("coalesce", &[AnyElement], AnyElement, Form::Coalesce)
        .variadic()
        .called_on_null()
        .grammar()
        .native()
        .doc(
            "First value that is not NULL. Later ones are not computed.",
            &[("coalesce(NULL, 2, 1 / 0)", "2")],
        ),
    form("greatest", &[AnyElement], AnyElement, Form::Extreme(&GREATEST))
        .variadic()
        .called_on_null()
        .grammar()
        .native()
        .doc("Largest value. NULLs are ignored.", &[("greatest(1, NULL, 3.5)", "3.5")]),
    form("least", &[AnyElement], AnyElement, Form::Extreme(&LEAST))
        .variadic()
        .called_on_null()
        .grammar()
        .native()
        .doc("Smallest value. NULLs are ignored.", &[("least('b', 'a')", "a")]),
    form("nullif", &[AnyElement, AnyElement], AnyElement, Form::NullIf)
        .called_on_null()
        .grammar()
        .native()
        .doc("NULL if both are equal, else the first.", &[("nullif(1, 1)", "NULL"), ("nullif(2, 1)", "2")]),
    form("pg_typeof", &[Any], Text, Form::TypeOf)
        .called_on_null()
        .doc("Name of the type.", &[("pg_typeof(33)", "integer"), ("pg_typeof('a'::text)", "text")]),
];

const fn form(
    name: &'static str,
    arguments: &'static [super::Kind],
    result: super::Kind,
    form: Form,
) -> Function {
    Function::new(name, arguments, result, Body::Form(form))
}

const fn extreme(name: &'static str, body: fn(&Call<'_>) -> crate::Result<Datum>) -> Function {
    function(name, &[AnyElement], AnyElement, body).variadic().called_on_null()
}

fn largest(c: &Call<'_>, wanted: Ordering) -> crate::Result<Datum> {
    let mut best = DatumRef::Null;
    for value in c.values.iter().map(Val::get).filter(|value| !value.is_null()) {
        if best.is_null() || logic::compare(value, best) == Some(wanted) {
            best = value;
        }
    }
    Ok(best.to_owned())
}
