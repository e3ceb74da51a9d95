//! Functions, operators and casts in the system catalogs, from the table of functions.
//!
//! Their OIDs are positions in that table, in ranges that PostgreSQL gives out while a database is
//! made, so that clients do not know them by number.

use cairn_vfs::sync::OnceLock;

use super::cell::Shape;
use super::row::{Row, row};
use super::{functions, oids};
use crate::expr::functions::{Body, Function, Listing, Volatility, casts, operators};
use crate::expr::{Kind, functions as table};

const FIRST_PROCEDURE: i64 = 11_000;
const FIRST_OPERATOR: i64 = 14_000;
const FIRST_CAST: i64 = 15_000;

/// A row of `pg_proc`.
struct Procedure {
    name: &'static str,
    arguments: Vec<Kind>,
    /// The function of the table; `None` for those of the system catalogs.
    function: Option<&'static Function>,
    volatility: Volatility,
    result: Kind,
    doc: &'static str,
}

/// Returns all functions in the order of their OIDs.
fn procedures() -> &'static [Procedure] {
    static PROCEDURES: OnceLock<Vec<Procedure>> = OnceLock::new();
    PROCEDURES.get_or_init(|| {
        let listed = table::all().filter(|function| function.listing == Listing::Catalog);
        listed.flat_map(overloads).chain(functions::all().filter_map(of_system)).collect()
    })
}

/// Returns the rows of a function: one for each name, and for each number of arguments, unless
/// calls may use their names.
fn overloads(function: &'static Function) -> impl Iterator<Item = Procedure> {
    let most = function.arguments.len();
    let least = if function.argument_names.is_empty() { most - function.optional } else { most };
    // A variadic argument is listed once, with those that may be left out.
    let least = if function.is_variadic { most } else { least };
    function.names().flat_map(move |name| {
        (least..=most).map(move |count| Procedure {
            name,
            arguments: function.arguments.iter().copied().take(count).collect(),
            function: Some(function),
            volatility: function.volatility,
            result: function.result,
            doc: function.doc,
        })
    })
}

fn of_system(function: &'static functions::SystemFunction) -> Option<Procedure> {
    let result = match function.result {
        Shape::Bool => Kind::Boolean,
        Shape::Small => Kind::SmallInt,
        Shape::Int => Kind::Integer,
        Shape::Big => Kind::BigInt,
        Shape::Real => Kind::Real,
        Shape::Double => Kind::Double,
        Shape::Time => Kind::TimestampTz,
        Shape::Text => Kind::Text,
        Shape::Texts => Kind::TextArray,
        Shape::Smalls | Shape::Bigs => Kind::AnyArray,
    };
    let volatility = if function.is_volatile() { Volatility::Volatile } else { Volatility::Stable };
    Some(Procedure {
        name: function.name,
        arguments: function.arguments?.to_vec(),
        function: None,
        volatility,
        result,
        doc: function.doc,
    })
}

/// The rows of `pg_proc`.
pub(super) fn rows() -> Vec<Row> {
    procedures().iter().zip(FIRST_PROCEDURE..).map(|(procedure, oid)| procedure.row(oid)).collect()
}

impl Procedure {
    fn row(&self, oid: i64) -> Row {
        let function = self.function;
        let kind = match function.map(|function| function.body) {
            Some(Body::Aggregate) => "a",
            Some(Body::Window) => "w",
            _ => "f",
        };
        let volatility = match self.volatility {
            Volatility::Immutable => "i",
            Volatility::Stable => "s",
            Volatility::Volatile => "v",
        };
        let names = function.map_or(&[][..], |function| function.argument_names);
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let variadic = function.filter(|function| function.is_variadic);
        let variadic = variadic.and_then(|function| function.arguments.last()).map_or(0, |kind| kind.oid());
        let arguments: Vec<i64> = self.arguments.iter().map(|kind| kind.oid()).collect();
        row! {
            "oid": oid, "proname": self.name, "pronamespace": oids::PG_CATALOG, "proowner": oids::USER, "prolang": 12_i64, "prokind": kind,
            "provolatile": volatility, "proisstrict": function.is_none_or(|function| function.is_strict), "proparallel": "s", "provariadic": variadic,
            "pronargs": arguments.len(), "pronargdefaults": names.len(), "prorettype": self.result.oid(), "proargtypes": arguments,
            "proargnames": Some(names).filter(|names| !names.is_empty()), "prosrc": self.name,
        }
    }
}

fn procedure(oid: i64) -> Option<&'static Procedure> {
    procedures().get(usize::try_from(oid - FIRST_PROCEDURE).ok()?)
}

/// Returns the type of a function's result, as psql shows it.
pub(super) fn result(oid: i64) -> Option<&'static str> {
    procedure(oid).map(|procedure| procedure.result.name())
}

/// Returns the types of a function's arguments, as psql shows them.
pub(super) fn arguments(oid: i64) -> Option<String> {
    let procedure = procedure(oid)?;
    let names = procedure.function.map_or(&[][..], |function| function.argument_names);
    let last = procedure.arguments.len().checked_sub(1);
    let argument = |(at, kind): (usize, &Kind)| {
        let is_variadic = procedure.function.is_some_and(|function| function.is_variadic) && Some(at) == last;
        let variadic = if is_variadic { "VARIADIC " } else { "" };
        let name = names.get(at).map(|name| format!("{name} ")).unwrap_or_default();
        let default = if names.is_empty() { "" } else { " DEFAULT 0" };
        format!("{variadic}{name}{}{default}", kind.name())
    };
    Some(procedure.arguments.iter().enumerate().map(argument).collect::<Vec<_>>().join(", "))
}

/// The rows of `pg_operator`.
pub(super) fn operators() -> Vec<Row> {
    let all = operators::all().zip(FIRST_OPERATOR..);
    all.map(|(operator, oid)| {
        row! {
            "oid": oid, "oprname": operator.row.symbol, "oprnamespace": oids::PG_CATALOG, "oprowner": oids::USER,
            "oprkind": if operator.left.is_some() { "b" } else { "l" }, "oprleft": operator.left.map_or(0, Kind::oid),
            "oprright": operator.right.oid(), "oprresult": operator.result.oid(),
        }
    })
    .collect()
}

/// The rows of `pg_cast`.
pub(super) fn casts() -> Vec<Row> {
    let all = casts::CASTS.iter().flat_map(|cast| cast.to.iter().map(move |to| (cast, to))).zip(FIRST_CAST..);
    all.map(|((cast, to), oid)| {
        let context = match cast.context {
            casts::Context::Explicit => "e",
            casts::Context::Assignment => "a",
            casts::Context::Implicit => "i",
        };
        row! { "oid": oid, "castsource": cast.from.oid(), "casttarget": to.oid(), "castcontext": context, "castmethod": "f" }
    })
    .collect()
}

/// Returns the documentation of a function or an operator, as psql shows it. `class` is its
/// catalog.
pub(super) fn description(oid: i64, class: &str) -> Option<&'static str> {
    match class {
        "pg_proc" => procedure(oid).map(|procedure| procedure.doc),
        "pg_operator" => {
            let at = usize::try_from(oid - FIRST_OPERATOR).ok()?;
            operators::all().nth(at).map(|operator| operator.row.doc)
        }
        _ => None,
    }
}
