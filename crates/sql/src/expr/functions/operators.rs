//! The operators. A binary operator on two numbers computes in their common type (`^` always in
//! double precision), which has to be listed here; one on a date, time or interval is resolved from
//! these rows. For shifts, `||`, comparisons, matches of texts and prefix operators, the compiler
//! has the types, and the rows only list them.

use super::example::Example;
use super::kind::Kind::{
    self, AnyArray, BigInt, Boolean, Bytea, Date, Double, Integer, Interval, Numeric, Real, Record, SmallInt,
    Text, Time, Timestamp, TimestampTz, Uuid,
};
use super::resolve::{self, Candidate};
use crate::expr::operator::Operator;

/// A row of the table: an operator on operands of certain types.
#[derive(Debug)]
pub(crate) struct OperatorRow {
    pub symbol: &'static str,
    pub operands: Operands,
    /// The type of the result; `None` for that of the operands.
    pub result: Option<Kind>,
    /// Its implementation, if it is a binary operator that returns a value.
    pub operator: Option<Operator>,
    /// The types in which it computes, if they are others.
    computed_as: Option<(Kind, Kind)>,
    pub doc: &'static str,
    #[cfg_attr(not(test), allow(dead_code, reason = "the page of functions and tests read it"))]
    pub examples: &'static [Example],
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Operands {
    /// Two operands of the same type, of each of these.
    Same(&'static [Kind]),
    Pair(Kind, Kind),
    /// One operand, after the symbol, of each of these types.
    Prefix(&'static [Kind]),
}

/// An operator for operands of these types.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signature {
    pub row: &'static OperatorRow,
    pub left: Option<Kind>,
    pub right: Kind,
    pub result: Kind,
}

impl Candidate for Signature {
    fn parameter(self, at: usize) -> Option<Kind> {
        match at {
            0 => self.left,
            1 => Some(self.right),
            _ => None,
        }
    }
}

impl Signature {
    /// Returns the types that the operands are converted to.
    pub fn computed_as(&self) -> (Kind, Kind) {
        self.row.computed_as.unwrap_or((self.left.unwrap_or(self.right), self.right))
    }
}

impl OperatorRow {
    const fn computed_as(self, left: Kind, right: Kind) -> Self {
        OperatorRow { computed_as: Some((left, right)), ..self }
    }

    /// Returns the row's operators, one for each combination of types.
    pub fn signatures(&'static self) -> impl Iterator<Item = Signature> {
        let (kinds, pair): (&[Kind], _) = match &self.operands {
            Operands::Same(kinds) | Operands::Prefix(kinds) => (kinds, None),
            Operands::Pair(left, right) => (&[], Some((*left, *right))),
        };
        let has_left = !matches!(self.operands, Operands::Prefix(_));
        let of = move |left: Kind, right: Kind| Signature {
            row: self,
            left: has_left.then_some(left),
            right,
            result: self.result.unwrap_or(right),
        };
        kinds.iter().map(|kind| (*kind, *kind)).chain(pair).map(move |(left, right)| of(left, right))
    }
}

/// Returns all operators.
pub(crate) fn all() -> impl Iterator<Item = Signature> {
    OPERATORS.iter().flat_map(OperatorRow::signatures)
}

/// Returns the operator for operands of these types; `None` if there is none.
pub(crate) fn find(operator: Operator, left: Kind, right: Kind) -> Option<Signature> {
    let candidates = OPERATORS.iter().filter(|row| row.operator == Some(operator));
    resolve::only(candidates.flat_map(OperatorRow::signatures), &[left, right])
}

/// Whether an operator computes in this type.
pub(crate) fn computes_in(operator: Operator, kind: Kind) -> bool {
    let rows = OPERATORS.iter().filter(|row| row.operator == Some(operator));
    rows.filter_map(|row| match row.operands {
        Operands::Same(kinds) => Some(kinds),
        _ => None,
    })
    .any(|kinds| kinds.contains(&kind))
}

const INTEGERS: &[Kind] = &[SmallInt, Integer, BigInt];
const EXACT: &[Kind] = &[SmallInt, Integer, BigInt, Numeric];
const NUMBERS: &[Kind] = &[SmallInt, Integer, BigInt, Numeric, Real, Double];
const COMPARED: &[Kind] = &[
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Numeric,
    Real,
    Double,
    Text,
    Bytea,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Interval,
    Uuid,
    AnyArray,
    Record,
];

const fn row(
    symbol: &'static str,
    operands: Operands,
    result: Option<Kind>,
    operator: Option<Operator>,
) -> OperatorRow {
    OperatorRow { symbol, operands, result, operator, computed_as: None, doc: "", examples: &[] }
}

const fn same(symbol: &'static str, kinds: &'static [Kind], operator: Operator) -> OperatorRow {
    row(symbol, Operands::Same(kinds), None, Some(operator))
}

const fn pair(
    symbol: &'static str,
    left: Kind,
    right: Kind,
    result: Kind,
    operator: Operator,
) -> OperatorRow {
    row(symbol, Operands::Pair(left, right), Some(result), Some(operator))
}

const fn compared(symbol: &'static str) -> OperatorRow {
    row(symbol, Operands::Same(COMPARED), Some(Boolean), None)
}

const fn on_texts(symbol: &'static str) -> OperatorRow {
    row(symbol, Operands::Pair(Text, Text), Some(Boolean), None)
}

const fn prefix(symbol: &'static str, kinds: &'static [Kind]) -> OperatorRow {
    row(symbol, Operands::Prefix(kinds), None, None)
}

impl OperatorRow {
    const fn doc(self, doc: &'static str, examples: &'static [Example]) -> Self {
        OperatorRow { doc, examples, ..self }
    }
}

pub(crate) static OPERATORS: &[OperatorRow] = {
    use Operator::{
        Add, BitAnd, BitOr, BitXor, Concat, Divide, Modulo, Multiply, Power, ShiftLeft, ShiftRight, Subtract,
    };
    &[
        same("+", NUMBERS, Add)
            .doc("Sum.", &[("2 + 3", "5"), ("1.5 + 2", "3.5"), ("2147483647 + 1", "22003")]),
        same("-", NUMBERS, Subtract).doc("Difference.", &[("2 - 3", "-1")]),
        same("*", NUMBERS, Multiply).doc("Product.", &[("1.10 * 2.5", "2.750")]),
        same("/", NUMBERS, Divide)
            .doc("Quotient, of integers without the fraction.", &[("-7 / 2", "-3"), ("1 / 0", "22012")]),
        same("%", EXACT, Modulo).doc("Remainder, with the sign of the dividend.", &[("-7 % 3", "-1")]),
        same("^", &[Double], Power).doc("Power.", &[("2 ^ 10", "1024")]),
        same("&", INTEGERS, BitAnd).doc("Bits that both have.", &[("91 & 15", "11")]),
        same("|", INTEGERS, BitOr).doc("Bits that one of both has.", &[("32 | 3", "35")]),
        same("#", INTEGERS, BitXor).doc("Exclusive or.", &[("17 # 5", "20")]),
        pair("<<", SmallInt, Integer, SmallInt, ShiftLeft)
            .doc("Bits shifted left.", &[("1::smallint << 4", "16")]),
        pair("<<", Integer, Integer, Integer, ShiftLeft).doc("Bits shifted left.", &[("1 << 4", "16")]),
        pair("<<", BigInt, Integer, BigInt, ShiftLeft)
            .doc("Bits shifted left.", &[("1::bigint << 40", "1099511627776")]),
        pair(">>", SmallInt, Integer, SmallInt, ShiftRight)
            .doc("Bits shifted right.", &[("8::smallint >> 2", "2")]),
        pair(">>", Integer, Integer, Integer, ShiftRight).doc("Bits shifted right.", &[("8 >> 2", "2")]),
        pair(">>", BigInt, Integer, BigInt, ShiftRight)
            .doc("Bits shifted right.", &[("8::bigint >> 2", "2")]),
        prefix("-", &[SmallInt, Integer, BigInt, Numeric, Real, Double, Interval])
            .doc("Negation.", &[("- (2 + 3)", "-5"), ("- interval '23 hours'", "-23:00:00")]),
        prefix("+", NUMBERS).doc("The same number.", &[("+ 3.5", "3.5")]),
        prefix("~", INTEGERS).doc("All bits inverted.", &[("~ 1", "-2")]),
        prefix("@", NUMBERS).doc("Absolute value.", &[("@ -5.0", "5.0")]),
        prefix("|/", &[Double]).doc("Square root.", &[("|/ 25.0", "5")]),
        prefix("||/", &[Double]).doc("Cube root.", &[("||/ 64.0", "4")]),
        same("||", &[Text, Bytea], Concat).doc(
            "Concatenation.",
            &[("'Post' || 'greSQL'", "PostgreSQL"), ("'\\x1234'::bytea || '\\x56'::bytea", "\\x123456")],
        ),
        row("||", Operands::Pair(Text, Kind::Any), Some(Text), None)
            .doc("Concatenation with the text of a value.", &[("'Value: ' || 42", "Value: 42")]),
        row("||", Operands::Pair(Kind::Any, Text), Some(Text), None)
            .doc("Concatenation with the text of a value.", &[("1 || '.'", "1.")]),
        compared("=").doc(
            "Equal.",
            &[("1 = 1.0", "t"), ("interval '1 month' = interval '30 days'", "t"), ("1 = true", "42883")],
        ),
        compared("<>").doc("Not equal.", &[("1 <> 2", "t")]),
        compared("<").doc("Less.", &[("date '2024-01-01' < timestamp '2024-01-01 00:00:01'", "t")]),
        compared("<=").doc("Less or equal.", &[("'a' <= 'b'", "t")]),
        compared(">").doc("Greater.", &[("1 > NULL", "NULL")]),
        compared(">=").doc("Greater or equal.", &[("2 >= 2", "t")]),
        on_texts("~").doc("Whether a regular expression matches.", &[("'thomas' ~ 't.*ma'", "t")]),
        on_texts("~*").doc("The same without regard to case.", &[("'thomas' ~* 'T.*ma'", "t")]),
        on_texts("!~").doc("Whether a regular expression does not match.", &[("'thomas' !~ 't.*max'", "t")]),
        on_texts("!~*").doc("The same without regard to case.", &[("'thomas' !~* 'T.*ma'", "f")]),
        on_texts("~~").doc("LIKE.", &[("'abc' like 'a%'", "t"), ("'a%c' like 'a\\%c'", "t")]),
        on_texts("~~*").doc("ILIKE.", &[("'ABC' ilike 'a_c'", "t")]),
        on_texts("!~~").doc("NOT LIKE.", &[("'abc' not like 'b%'", "t")]),
        on_texts("!~~*").doc("NOT ILIKE.", &[("'ABC' not ilike 'b%'", "t")]),
        pair("+", Date, Integer, Date, Add).doc("Days later.", &[("date '2001-09-28' + 7", "2001-10-05")]),
        pair("+", Integer, Date, Date, Add).doc("Days later.", &[("7 + date '2001-09-28'", "2001-10-05")]),
        pair("-", Date, Integer, Date, Subtract)
            .doc("Days before.", &[("date '2001-10-01' - 7", "2001-09-24")]),
        pair("-", Date, Date, Integer, Subtract)
            .doc("Days between.", &[("date '2001-10-01' - date '2001-09-28'", "3")]),
        pair("+", Date, Time, Timestamp, Add)
            .computed_as(Timestamp, Interval)
            .doc("A time on a day.", &[("date '2001-09-28' + time '03:00'", "2001-09-28 03:00:00")]),
        pair("+", Time, Date, Timestamp, Add)
            .computed_as(Interval, Timestamp)
            .doc("A time on a day.", &[("time '03:00' + date '2001-09-28'", "2001-09-28 03:00:00")]),
        pair("+", Date, Interval, Timestamp, Add)
            .computed_as(Timestamp, Interval)
            .doc("Later.", &[("date '2001-09-28' + interval '1 hour'", "2001-09-28 01:00:00")]),
        pair("+", Interval, Date, Timestamp, Add)
            .computed_as(Interval, Timestamp)
            .doc("Later.", &[("interval '1 hour' + date '2001-09-28'", "2001-09-28 01:00:00")]),
        pair("-", Date, Interval, Timestamp, Subtract)
            .computed_as(Timestamp, Interval)
            .doc("Before.", &[("date '2001-09-28' - interval '1 hour'", "2001-09-27 23:00:00")]),
        pair("+", Timestamp, Interval, Timestamp, Add)
            .doc("Later.", &[("timestamp '2001-09-28 01:00' + interval '23 hours'", "2001-09-29 00:00:00")]),
        pair("+", Interval, Timestamp, Timestamp, Add)
            .doc("Later.", &[("interval '1 month' + timestamp '2024-01-31 00:00'", "2024-02-29 00:00:00")]),
        pair("-", Timestamp, Interval, Timestamp, Subtract)
            .doc("Before.", &[("timestamp '2001-09-28 23:00' - interval '23 hours'", "2001-09-28 00:00:00")]),
        pair("-", Timestamp, Timestamp, Interval, Subtract).doc(
            "Time between, in days and hours.",
            &[("timestamp '2001-09-29 03:00' - timestamp '2001-07-27 12:00'", "63 days 15:00:00")],
        ),
        pair("+", TimestampTz, Interval, TimestampTz, Add).doc(
            "Later.",
            &[("timestamptz '2001-09-28 01:00+00' + interval '23 hours'", "2001-09-29 00:00:00+00")],
        ),
        pair("+", Interval, TimestampTz, TimestampTz, Add).doc(
            "Later.",
            &[("interval '1 hour' + timestamptz '2001-09-28 01:00+00'", "2001-09-28 02:00:00+00")],
        ),
        pair("-", TimestampTz, Interval, TimestampTz, Subtract).doc(
            "Before.",
            &[("timestamptz '2001-09-28 01:00+00' - interval '1 hour'", "2001-09-28 00:00:00+00")],
        ),
        pair("-", TimestampTz, TimestampTz, Interval, Subtract).doc(
            "Time between, in days and hours.",
            &[("timestamptz '2001-09-29 03:00+00' - timestamptz '2001-09-28 02:00+00'", "1 day 01:00:00")],
        ),
        pair("+", Time, Interval, Time, Add).doc(
            "Later, within the day.",
            &[("time '23:30' + interval '1 hour'", "00:30:00"), ("time '01:00' + time '02:00'", "42883")],
        ),
        pair("+", Interval, Time, Time, Add)
            .doc("Later, within the day.", &[("interval '3 hours' + time '01:00'", "04:00:00")]),
        pair("-", Time, Interval, Time, Subtract)
            .doc("Before, within the day.", &[("time '05:00' - interval '2 hours'", "03:00:00")]),
        pair("-", Time, Time, Interval, Subtract)
            .doc("Time between.", &[("time '05:00' - time '03:00'", "02:00:00")]),
        pair("+", Interval, Interval, Interval, Add)
            .doc("Sum.", &[("interval '1 day' + interval '1 hour'", "1 day 01:00:00")]),
        pair("-", Interval, Interval, Interval, Subtract)
            .doc("Difference.", &[("interval '1 day' - interval '1 hour'", "1 day -01:00:00")]),
        pair("*", Interval, Double, Interval, Multiply)
            .doc("Multiple.", &[("interval '1 day' * 1.5", "1 day 12:00:00")]),
        pair("*", Double, Interval, Interval, Multiply)
            .doc("Multiple.", &[("900 * interval '1 second'", "00:15:00")]),
        pair("/", Interval, Double, Interval, Divide)
            .doc("Fraction.", &[("interval '1 hour' / 1.5", "00:40:00")]),
    ]
};
