//! The casts between types, from which their contexts and `pg_cast` are made. `expr/cast.rs`
//! converts the values; a test compares it with these rows.
//!
//! Not listed, as in PostgreSQL: each type is read from a text by an explicit cast, and written to
//! a text by an assignment.

use super::example::Example;
use super::kind::Kind::{
    self, BigInt, Boolean, Date, Double, Integer, Interval, Numeric, Real, SmallInt, Text, Time, Timestamp,
    TimestampTz,
};

/// Where a cast is applied, each context with those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Context {
    /// In `CAST(x AS type)` and `x::type`.
    Explicit,
    /// To a value that is assigned to a column.
    Assignment,
    /// To arguments of functions and operators.
    Implicit,
}

/// A row of the table: casts with the same rule.
#[derive(Debug)]
pub(crate) struct Cast {
    pub from: Kind,
    pub to: &'static [Kind],
    pub context: Context,
    #[cfg_attr(not(test), allow(dead_code, reason = "the page of functions and tests read it"))]
    pub doc: &'static str,
    #[cfg_attr(not(test), allow(dead_code, reason = "the page of functions and tests read it"))]
    pub examples: &'static [Example],
}

const fn cast(
    from: Kind,
    to: &'static [Kind],
    context: Context,
    doc: &'static str,
    examples: &'static [Example],
) -> Cast {
    Cast { from, to, context, doc, examples }
}

const EXACT: &str = "Keeps the value.";
const CHECKED: &str = "22003 if it is out of range.";
const ROUNDED: &str = "Rounds to the nearest; 22003 if it is out of range.";

pub(crate) static CASTS: &[Cast] = {
    use Context::{Assignment, Explicit, Implicit};
    &[
        cast(
            SmallInt,
            &[Integer, BigInt, Numeric, Real, Double],
            Implicit,
            EXACT,
            &[("1::smallint::bigint", "1")],
        ),
        cast(Integer, &[SmallInt], Assignment, CHECKED, &[("40000::smallint", "22003")]),
        cast(Integer, &[BigInt, Numeric, Real, Double], Implicit, EXACT, &[("1::real", "1")]),
        cast(BigInt, &[SmallInt, Integer], Assignment, CHECKED, &[("3000000000::integer", "22003")]),
        cast(
            BigInt,
            &[Numeric, Real, Double],
            Implicit,
            "The nearest value.",
            &[("3000000000::float8", "3000000000")],
        ),
        cast(
            Numeric,
            &[SmallInt, Integer, BigInt],
            Assignment,
            "Rounds halves away from zero.",
            &[("2.5::integer", "3")],
        ),
        cast(Numeric, &[Real, Double], Implicit, "The nearest value.", &[("1.5::float8", "1.5")]),
        cast(
            Real,
            &[SmallInt, Integer, BigInt, Numeric],
            Assignment,
            ROUNDED,
            &[("2.5::real::integer", "2")],
        ),
        cast(Real, &[Double], Implicit, EXACT, &[("1.5::real::float8", "1.5")]),
        cast(
            Double,
            &[SmallInt, Integer, BigInt, Numeric, Real],
            Assignment,
            ROUNDED,
            &[("2.5::float8::integer", "2"), ("1e300::float8::real", "22003")],
        ),
        cast(Boolean, &[Integer], Explicit, "1 or 0.", &[("true::integer", "1")]),
        cast(Integer, &[Boolean], Explicit, "Whether it is not 0.", &[("2::boolean", "t")]),
        cast(Boolean, &[Text], Assignment, "`true` or `false`.", &[("true::text", "true")]),
        cast(
            Date,
            &[Timestamp, TimestampTz],
            Implicit,
            "Its midnight.",
            &[("date '2024-02-29'::timestamp", "2024-02-29 00:00:00")],
        ),
        cast(
            Timestamp,
            &[Date],
            Assignment,
            "Its day.",
            &[("timestamp '2024-02-29 12:00:00'::date", "2024-02-29")],
        ),
        cast(
            Timestamp,
            &[Time],
            Assignment,
            "Its time of day.",
            &[("timestamp '2024-02-29 12:00:00'::time", "12:00:00")],
        ),
        cast(
            Timestamp,
            &[TimestampTz],
            Implicit,
            "In the session's time zone, UTC.",
            &[("timestamp '2024-02-29 12:00:00'::timestamptz", "2024-02-29 12:00:00+00")],
        ),
        cast(
            TimestampTz,
            &[Timestamp, Date, Time],
            Assignment,
            "In the session's time zone, UTC.",
            &[("timestamptz '2024-02-29 12:00:00+02'::timestamp", "2024-02-29 10:00:00")],
        ),
        cast(Time, &[Interval], Implicit, "Since midnight.", &[("time '03:04:05'::interval", "03:04:05")]),
        cast(
            Interval,
            &[Time],
            Assignment,
            "Without its days.",
            &[("interval '1 day 03:04:05'::time", "03:04:05")],
        ),
    ]
};

/// Returns the context of a cast between different types.
pub(crate) fn context(from: Kind, to: Kind) -> Option<Context> {
    CASTS.iter().find(|cast| cast.from == from && cast.to.contains(&to)).map(|cast| cast.context)
}

/// Whether an argument of one type is accepted for a parameter of another.
pub(super) fn is_implicit(from: Kind, to: Kind) -> bool {
    from == to || to.accepts_all() || context(from, to) == Some(Context::Implicit)
}
