//! The table of SQL functions, operators and casts. Each stands in one row, with its types, its
//! implementation, its documentation and examples. Everything else that knows functions is made
//! from these rows: the resolution of names, the calls of both paths, the system catalogs, the page
//! of functions, tests, and the comparison with PostgreSQL.

mod aggregates;
mod arrays;
mod bytes;
pub(crate) mod casts;
mod conditional;
mod datetime;
mod example;
mod formatting;
mod internal;
mod kernels;
mod kind;
mod math;
mod numeric;
pub(crate) mod operators;
mod pattern_matching;
mod quoting;
mod resolve;
mod sequences;
mod session;
mod text;
mod windows;

#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

use arrow::array::ArrayRef;
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::OnceLock;

use resolve::Candidate as _;

use super::cast::as_double;
use super::value::{Context, Val};
use crate::datum::{Datum, DatumRef};
use crate::error::{Error, Result};
use crate::sqlstate::{INTERNAL_ERROR, PROGRAM_LIMIT_EXCEEDED};

pub(crate) use bytes::encoded;
pub(crate) use conditional::Form;
pub(crate) use datetime::{CURRENT_DATE, EXTRACT};
pub(crate) use example::Example;
pub(crate) use internal::{TIMESTAMPTZ_TEXT, regular_match};
pub(crate) use kernels::Input;
pub(crate) use kind::Kind;

/// The longest text that a function may produce, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// A row of the table: a function for arguments of certain types.
pub(crate) struct Function {
    pub name: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    pub arguments: &'static [Kind],
    /// The names of the arguments, if calls may use them.
    pub argument_names: &'static [&'static str],
    /// The number of arguments at the end that may be left out.
    pub optional: usize,
    /// Whether the last argument may be repeated.
    pub is_variadic: bool,
    pub result: Kind,
    /// Returns the type of the result from the types of the arguments, if it depends on them.
    refine: Option<fn(&[ColumnType]) -> ColumnType>,
    pub volatility: Volatility,
    /// Whether the result is NULL if an argument is.
    pub is_strict: bool,
    pub body: Body,
    /// Computes whole columns on the general path.
    pub kernel: Option<kernels::Kernel>,
    pub general: General,
    pub listing: Listing,
    /// Its documentation, in one line.
    pub doc: &'static str,
    #[cfg_attr(not(test), allow(dead_code, reason = "the page of functions and tests read it"))]
    pub examples: &'static [Example],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Volatility {
    /// The result depends on the arguments only.
    Immutable,
    /// It is constant within a statement.
    Stable,
    /// Each call may return another value.
    Volatile,
}

/// The implementation of a function.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// Computes the value. For a strict function, no argument is NULL.
    Values(fn(&Call<'_>) -> Result<Datum>),
    /// Computes a floating-point number from one.
    Double(fn(f64) -> Result<f64>),
    /// Part of the syntax: compiled to a node of its own.
    Form(Form),
    /// On the general path only.
    General,
    Aggregate,
    Window,
}

/// The implementation on the general path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum General {
    /// The row's own.
    Own,
    /// DataFusion's, or one of the general path that replaces it.
    Native,
}

/// Where a function is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// In `pg_proc` and on the page of functions.
    Catalog,
    /// On the page only: PostgreSQL's grammar has it, and not its catalog.
    Grammar,
    /// Nowhere: only rewritten queries call it.
    Hidden,
}

/// A chapter of the page of functions.
pub(crate) struct Family {
    #[cfg_attr(not(test), allow(dead_code, reason = "the page of functions and tests read it"))]
    pub title: &'static str,
    pub rows: &'static [Function],
}

/// All functions.
pub(crate) static FAMILIES: &[Family] = &[
    Family { title: "Texts", rows: text::ROWS },
    Family { title: "Quoting and formatting texts", rows: quoting::ROWS },
    Family { title: "Pattern matching", rows: pattern_matching::ROWS },
    Family { title: "Bytes", rows: bytes::ROWS },
    Family { title: "Numbers", rows: numeric::ROWS },
    Family { title: "Roots, logarithms and angles", rows: math::ROWS },
    Family { title: "Dates, times and intervals", rows: datetime::ROWS },
    Family { title: "Parsing and formatting by patterns", rows: formatting::ROWS },
    Family { title: "Arrays", rows: arrays::ROWS },
    Family { title: "Conditional expressions", rows: conditional::ROWS },
    Family { title: "Sequences", rows: sequences::ROWS },
    Family { title: "Session", rows: session::ROWS },
    Family { title: "Aggregates", rows: aggregates::ROWS },
    Family { title: "Window functions", rows: windows::ROWS },
    Family { title: "Internal functions", rows: internal::ROWS },
];

/// Returns all rows.
pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    FAMILIES.iter().flat_map(|family| family.rows)
}

/// Returns the rows of a name.
fn named(name: &str) -> &'static [&'static Function] {
    static BY_NAME: OnceLock<HashMap<&str, Vec<&Function>>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let mut by_name: HashMap<&str, Vec<&Function>> = HashMap::new();
        for function in all() {
            for name in function.names() {
                by_name.entry(name).or_default().push(function);
            }
        }
        by_name
    });
    by_name.get(name).map_or(&[], Vec::as_slice)
}

/// Whether the table has a function of this name.
pub(crate) fn has(name: &str) -> bool {
    !named(name).is_empty()
}

/// Returns the names of a function's arguments; `None` if calls may not use names.
pub(crate) fn argument_names(name: &str) -> Option<&'static [&'static str]> {
    let names = named(name).iter().map(|function| function.argument_names);
    names.into_iter().find(|names| !names.is_empty())
}

/// Returns the names of the functions whose rows the general path evaluates.
pub(crate) fn names_for_general_path() -> impl Iterator<Item = &'static str> {
    let own = all().filter(|function| function.general == General::Own);
    let mut names: Vec<&str> = own.flat_map(Function::names).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter()
}

/// A function with the types that its arguments are converted to.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub function: &'static Function,
    pub arguments: Vec<ColumnType>,
}

/// Resolves a call with arguments of these types; a type is `None` if it is still open. Returns
/// `None` if this evaluator has no such function.
pub(crate) fn resolve(name: &str, given: &[Option<ColumnType>]) -> Option<Resolved> {
    let candidates = named(name).iter().copied().filter(|function| function.is_evaluated());
    let mut candidates = candidates.filter(|function| function.accepts(given.len())).peekable();
    let function = match candidates.peek() {
        // The operator decides on the types of its operands.
        Some(function) if matches!(function.body, Body::Form(Form::Operator(..))) => function,
        _ => {
            let kinds: Vec<Option<Kind>> = given.iter().map(|kind| kind.as_ref().map(Kind::of)).collect();
            resolve::best(candidates, &kinds)?
        }
    };
    let target = |(at, given): (usize, &Option<ColumnType>)| {
        let parameter = function.parameter(at).unwrap_or(Kind::Any);
        converted_type(parameter, given.as_ref())
    };
    Some(Resolved { function, arguments: given.iter().enumerate().map(target).collect() })
}

/// Returns the type that an argument is converted to.
fn converted_type(parameter: Kind, given: Option<&ColumnType>) -> ColumnType {
    match (parameter, given) {
        // Numerics keep their scale. And booleans are written as their columns are, not as a cast
        // would.
        (Kind::Numeric, Some(given)) if given.kind == Type::Decimal => given.clone(),
        (Kind::Any, Some(given)) if given.kind == Type::Boolean && !given.is_list => given.clone(),
        (Kind::AnyArray, Some(given)) => given.clone(),
        _ => parameter.column_type(),
    }
}

impl resolve::Candidate for &'static Function {
    fn parameter(self, at: usize) -> Option<Kind> {
        let last = if self.is_variadic { self.arguments.last() } else { None };
        self.arguments.get(at).or(last).copied()
    }
}

impl Function {
    const fn new(name: &'static str, arguments: &'static [Kind], result: Kind, body: Body) -> Self {
        Function {
            name,
            aliases: &[],
            arguments,
            argument_names: &[],
            optional: 0,
            is_variadic: false,
            result,
            refine: None,
            volatility: Volatility::Immutable,
            is_strict: true,
            body,
            kernel: None,
            general: General::Own,
            listing: Listing::Catalog,
            doc: "",
            examples: &[],
        }
    }

    const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Function { aliases, ..self }
    }

    const fn argument_names(self, argument_names: &'static [&'static str]) -> Self {
        Function { argument_names, ..self }
    }

    const fn optional(self, optional: usize) -> Self {
        Function { optional, ..self }
    }

    const fn variadic(self) -> Self {
        Function { is_variadic: true, ..self }
    }

    const fn refined(self, refine: fn(&[ColumnType]) -> ColumnType) -> Self {
        Function { refine: Some(refine), ..self }
    }

    const fn stable(self) -> Self {
        Function { volatility: Volatility::Stable, ..self }
    }

    const fn volatile(self) -> Self {
        Function { volatility: Volatility::Volatile, ..self }
    }

    /// Calls it for NULLs as well.
    const fn called_on_null(self) -> Self {
        Function { is_strict: false, ..self }
    }

    const fn vectorised(self, kernel: kernels::Kernel) -> Self {
        Function { kernel: Some(kernel), ..self }
    }

    /// Leaves it to DataFusion, or to the general path's replacement, on the general path.
    const fn native(self) -> Self {
        Function { general: General::Native, ..self }
    }

    const fn grammar(self) -> Self {
        Function { listing: Listing::Grammar, ..self }
    }

    const fn hidden(self) -> Self {
        Function { listing: Listing::Hidden, ..self }
    }

    /// Documents the function.
    const fn doc(self, doc: &'static str, examples: &'static [Example]) -> Self {
        Function { doc, examples, ..self }
    }

    /// Returns its name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether this evaluator has it.
    pub fn is_evaluated(&self) -> bool {
        matches!(self.body, Body::Values(_) | Body::Double(_) | Body::Form(_))
    }

    fn accepts(&self, arguments: usize) -> bool {
        let least = self.arguments.len() - self.optional;
        arguments >= least && (self.is_variadic || arguments <= self.arguments.len())
    }

    /// Returns the type of the result for arguments of these types.
    pub fn result_type(&self, arguments: &[ColumnType]) -> ColumnType {
        self.refine.map_or_else(|| self.result.column_type(), |refine| refine(arguments))
    }

    /// Whether the result type depends on more of the arguments than their types' names, such as
    /// the scale of a numeric.
    pub fn is_refined(&self) -> bool {
        self.refine.is_some()
    }

    pub fn is_volatile(&self) -> bool {
        self.volatility == Volatility::Volatile
    }

    /// Whether a call with constant arguments is a constant.
    pub fn is_immutable(&self) -> bool {
        self.volatility == Volatility::Immutable
    }

    /// Calls it. The arguments have the types of the row. For a strict function, none of them is
    /// NULL.
    #[inline]
    pub(super) fn call(&self, values: &[Val<'_>], context: &dyn Context) -> Result<Datum> {
        match self.body {
            Body::Values(body) => body(&Call { values, context }),
            Body::Double(body) => {
                body(as_double(values.first().map_or(DatumRef::Null, Val::get))).map(Datum::Double)
            }
            Body::Form(_) | Body::General | Body::Aggregate | Body::Window => {
                let what = format!("internal error: {} was called by its row", self.name);
                Err(Error::new(INTERNAL_ERROR, what))
            }
        }
    }

    /// Computes a column of results from columns, if it has a way to do so for such arguments.
    ///
    /// Errors: those of the function.
    pub fn column(&self, inputs: &[Input<'_>]) -> Result<Option<ArrayRef>> {
        match (self.body, self.kernel) {
            (Body::Double(body), _) => kernels::doubles(body, inputs),
            (_, Some(kernel)) => kernel(inputs),
            _ => Ok(None),
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Function").field(&self.name).field(&self.arguments).finish()
    }
}

impl Eq for Function {}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

const fn function(
    name: &'static str,
    arguments: &'static [Kind],
    result: Kind,
    body: fn(&Call<'_>) -> Result<Datum>,
) -> Function {
    Function::new(name, arguments, result, Body::Values(body))
}

/// A function of one floating-point number.
const fn of_double(name: &'static str, body: fn(f64) -> Result<f64>) -> Function {
    Function::new(name, &[Kind::Double], Kind::Double, Body::Double(body))
}

/// A function of the general path only.
const fn general(name: &'static str, arguments: &'static [Kind], result: Kind) -> Function {
    Function::new(name, arguments, result, Body::General).native()
}

/// The arguments of a call, and its session.
pub(crate) struct Call<'c> {
    values: &'c [Val<'c>],
    context: &'c dyn Context,
}

impl<'c> Call<'c> {
    /// Returns an argument; NULL if it was left out.
    #[inline]
    fn value(&self, at: usize) -> DatumRef<'c> {
        self.values.get(at).map_or(DatumRef::Null, Val::get)
    }

    #[inline]
    fn text(&self, at: usize) -> &'c str {
        match self.value(at) {
            DatumRef::Text(text) => text,
            _ => "",
        }
    }

    #[inline]
    fn int(&self, at: usize) -> i64 {
        match self.value(at) {
            DatumRef::Int(value) => i64::from(value),
            DatumRef::BigInt(value) => value,
            _ => 0,
        }
    }

    #[inline]
    fn int_or(&self, at: usize, otherwise: i64) -> i64 {
        self.optional_int(at).unwrap_or(otherwise)
    }

    /// Returns an argument; `None` if it was left out.
    #[inline]
    fn optional_int(&self, at: usize) -> Option<i64> {
        (self.values.len() > at).then(|| self.int(at))
    }

    /// Returns an argument; `None` if it was left out.
    #[inline]
    fn optional_text(&self, at: usize) -> Option<&'c str> {
        (self.values.len() > at).then(|| self.text(at))
    }

    #[inline]
    fn double(&self, at: usize) -> f64 {
        as_double(self.value(at))
    }

    /// Returns the error for arguments of types that the row does not have, which is a bug.
    fn unexpected(&self, name: &str) -> Error {
        let kinds = self.values.iter().map(|value| format!("{:?}", value.get().type_of()));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        Error::new(INTERNAL_ERROR, format!("internal error: {name} got values of the types {kinds}"))
    }
}

/// Errors: 54000 for a text that is too long.
pub(super) fn check_length(bytes: usize) -> Result<()> {
    if bytes <= MAX_TEXT_BYTES {
        return Ok(());
    }
    Err(Error::new(PROGRAM_LIMIT_EXCEEDED, "requested length too large"))
}
