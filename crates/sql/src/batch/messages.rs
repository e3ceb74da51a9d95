//! Translates DataFusion's error messages into PostgreSQL's codes and messages.
//!
//! DataFusion tells many errors of a statement apart by their text only. A text that no rule here
//! recognizes is not meant for users. It becomes the detail of a general message.

use crate::error::Error;
use crate::sqlstate::{
    AMBIGUOUS_COLUMN, CANNOT_COERCE, CARDINALITY_VIOLATION, DATATYPE_MISMATCH, DIVISION_BY_ZERO,
    DUPLICATE_ALIAS, FEATURE_NOT_SUPPORTED, GROUPING_ERROR, INTERNAL_ERROR, INVALID_RECURSION,
    INVALID_TEXT_REPRESENTATION, NUMERIC_VALUE_OUT_OF_RANGE, SYNTAX_ERROR, UNDEFINED_COLUMN,
    UNDEFINED_FUNCTION, UNDEFINED_TABLE, WINDOWING_ERROR,
};

/// The part of DataFusion that reports an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The planner: the statement is wrong.
    Planner,
    /// An operator of a running plan: a value is wrong.
    Operator,
    /// A report that something is not implemented.
    Unimplemented,
    /// A report of an internal error.
    Engine,
}

/// Translates an error message.
pub(crate) fn translate_message(message: &str, origin: Origin) -> Error {
    let line = message.lines().next().unwrap_or_default();
    if let Some(error) = about_functions(line).or_else(|| about_types(line)).or_else(|| about_values(line)) {
        return error;
    }
    if let Some((_, sqlstate, message_for_user)) = MESSAGES.iter().find(|(part, ..)| line.contains(part)) {
        return Error::new(sqlstate, *message_for_user);
    }
    match origin {
        Origin::Planner | Origin::Unimplemented => {
            let what = "the statement uses an unsupported construct";
            Error::new(FEATURE_NOT_SUPPORTED, what)
                .with_detail(format!("The planner says: {}", sql_types(line)))
        }
        Origin::Operator => Error::new(INTERNAL_ERROR, BUG).with_detail(sql_types(line)),
        Origin::Engine => Error::new(INTERNAL_ERROR, BUG).with_detail(line),
    }
}

/// The message of internal errors.
pub(crate) const BUG: &str = "internal error: this is a bug of Cairn's; please report it with the statement";

/// Parts of DataFusion's messages, with the code and message for each. The first match counts.
const MESSAGES: [(&str, &str, &str); 44] = [
    ("ivide by zero", DIVISION_BY_ZERO, "division by zero"),
    ("division by zero", DIVISION_BY_ZERO, "division by zero"),
    (
        "more than one row",
        CARDINALITY_VIOLATION,
        "more than one row returned by a subquery used as an expression",
    ),
    (
        "queries have different number of columns",
        SYNTAX_ERROR,
        "each UNION query must have the same number of columns",
    ),
    (
        "have different number of columns",
        SYNTAX_ERROR,
        "each UNION query must have the same number of columns",
    ),
    ("should only return one column", SYNTAX_ERROR, "subquery must return only one column"),
    ("should only return 1 column", SYNTAX_ERROR, "subquery must return only one column"),
    ("must return exactly one column", SYNTAX_ERROR, "subquery must return only one column"),
    ("subquery must yield one column", SYNTAX_ERROR, "subquery must return only one column"),
    ("Too many columns", SYNTAX_ERROR, "subquery has too many columns"),
    (
        "Unexpected empty work table",
        FEATURE_NOT_SUPPORTED,
        "more than one self-reference in a recursive query is not supported",
    ),
    (
        "work table",
        INVALID_RECURSION,
        "a recursive query may name itself only in the recursive part, once and outside of subqueries",
    ),
    (
        "Recursive",
        INVALID_RECURSION,
        "recursive query does not have the form non-recursive-term UNION [ALL] recursive-term",
    ),
    (
        "Aggregate functions are not allowed in",
        GROUPING_ERROR,
        "aggregate functions are not allowed in this place",
    ),
    ("is nested inside", GROUPING_ERROR, "aggregate function calls cannot be nested"),
    ("Window functions are not allowed", WINDOWING_ERROR, "window functions are not allowed in this place"),
    (
        "RANGE requires exactly one ORDER BY",
        WINDOWING_ERROR,
        "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
    ),
    ("GROUPS requires an ORDER BY", WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause"),
    ("window frame", WINDOWING_ERROR, "invalid window frame"),
    (
        "must appear in the GROUP BY",
        GROUPING_ERROR,
        "a column must appear in the GROUP BY clause or be used in an aggregate function",
    ),
    (
        "could not be resolved from available columns",
        GROUPING_ERROR,
        "a column must appear in the GROUP BY clause or be used in an aggregate function",
    ),
    (
        "must be in GROUP BY",
        GROUPING_ERROR,
        "a column must appear in the GROUP BY clause or be used in an aggregate function",
    ),
    (
        "HAVING clause references",
        GROUPING_ERROR,
        "a column must appear in the GROUP BY clause or be used in an aggregate function",
    ),
    (
        "GROUP BY",
        GROUPING_ERROR,
        "a column must appear in the GROUP BY clause or be used in an aggregate function",
    ),
    ("non-boolean predicate", DATATYPE_MISMATCH, "argument of WHERE must be type boolean"),
    ("must be boolean", DATATYPE_MISMATCH, "a condition must be of type boolean"),
    ("NTILE requires", "22014", "argument of ntile must be greater than zero"),
    ("LIMIT must be", "2201W", "LIMIT must not be negative"),
    ("OFFSET must be", "2201X", "OFFSET must not be negative"),
    (
        "expressions must appear in select list",
        "42P10",
        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
    ),
    ("SELECT DISTINCT ON", "42P10", "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"),
    ("mbiguous", AMBIGUOUS_COLUMN, "a column reference is ambiguous"),
    ("duplicate unqualified field name", AMBIGUOUS_COLUMN, "duplicate column name"),
    ("duplicate qualified field name", DUPLICATE_ALIAS, "table name specified more than once"),
    ("unique expression names", AMBIGUOUS_COLUMN, "two columns of a subquery have one name"),
    ("SELECT * with no tables", SYNTAX_ERROR, "SELECT * with no tables specified is not valid"),
    ("Values list cannot be", SYNTAX_ERROR, "VALUES lists must not be empty"),
    ("nconsistent data length across values list", SYNTAX_ERROR, "VALUES lists must all be the same length"),
    (
        "Physical plan does not support logical expression",
        FEATURE_NOT_SUPPORTED,
        "a correlated subquery is not supported here",
    ),
    ("OuterReferenceColumn", FEATURE_NOT_SUPPORTED, "a correlated subquery is not supported here"),
    ("outer_ref", FEATURE_NOT_SUPPORTED, "a correlated subquery is not supported here"),
    ("utf-8", "22021", "invalid byte sequence for encoding \"UTF8\""),
    ("verflow", NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"),
    (" to store in a ", NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow"),
];

/// Returns the text between the first two quotes.
fn quoted(line: &str, quote: char) -> Option<&str> {
    let (_, rest) = line.split_once(quote)?;
    rest.split_once(quote).map(|(inner, _)| inner)
}

/// Returns the text between two parts of a line, or up to its end.
fn between<'l>(line: &'l str, before: &str, behind: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(before)?;
    Some(rest.split_once(behind).map_or(rest, |(inner, _)| inner))
}

/// Calls of undefined functions, or with unsupported argument types.
fn about_functions(line: &str) -> Option<Error> {
    let missing = |call: &str| {
        let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
        let what = format!("function {} does not exist", sql_types(call));
        Some(Error::new(UNDEFINED_FUNCTION, what).with_hint(hint))
    };
    if line.contains("No function matches") {
        return missing(quoted(line, '\'')?);
    }
    let is_missing = line.contains("Invalid function")
        || line.contains("does not support zero arguments")
        || line.contains("There is no window function named")
        || line.contains("Function") && line.contains("not found");
    if is_missing {
        let name = quoted(line, '\'')
            .or_else(|| between(line, "named ", " "))
            .or_else(|| between(line, "unction ", " "));
        return missing(&format!("{}()", name.unwrap_or_default().trim_end_matches('.')));
    }
    let fails = line.contains("failed to match any signature")
        || line.contains("coerce arguments to satisfy a call to")
        || (line.contains("unction '") && line.contains("expected") && line.contains("but received"))
        || line.contains("does not support inputs of type")
        || line.contains("not supported for");
    if fails {
        let name = quoted(line, '\'').or_else(|| quoted(line, '`'));
        let name = name.or_else(|| {
            line.split_ascii_whitespace()
                .find(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        });
        return missing(&format!("{}(...)", name.unwrap_or_default()));
    }
    None
}

/// Operators and casts that are undefined for their types, and unknown columns and tables.
fn about_types(line: &str) -> Option<Error> {
    for before in [
        "Cannot coerce arithmetic expression ",
        "Cannot infer common argument type for comparison operation ",
        "Cannot infer common argument type for logical boolean operation ",
        "Cannot infer common argument type for regex operation ",
        "Cannot infer common type for bitwise operation ",
        "Cannot infer common array type for arrow operation ",
        "Cannot infer common string type for string concat operation ",
    ] {
        if let Some(operation) = between(line, before, " to valid types") {
            let what = format!("operator does not exist: {}", sql_types(operation));
            return Some(Error::new(UNDEFINED_FUNCTION, what));
        }
    }
    if let Some(cast) = between(line, "Cannot automatically convert ", "\n") {
        let what = format!("cannot cast type {}", sql_types(cast));
        return Some(Error::new(CANNOT_COERCE, what));
    }
    if let Some(cast) = between(line, "Unsupported CAST from ", "\n")
        .or_else(|| between(line, "Casting from ", " not supported"))
    {
        let what = format!("cannot cast type {}", sql_types(cast));
        return Some(Error::new(CANNOT_COERCE, what));
    }
    if line.contains("There isn't a common type to coerce") || line.contains("ail to find the coerced type") {
        let what = "operator does not exist between values of these types";
        return Some(Error::new(UNDEFINED_FUNCTION, what));
    }
    if let Some(types) = between(line, "Failed to coerce then", "\n")
        .or_else(|| between(line, "ncompatible inputs for Union", "\n"))
    {
        let what = "types of the results cannot be matched";
        return Some(Error::new(DATATYPE_MISMATCH, what).with_detail(sql_types(types.trim())));
    }
    if line.contains("table") && line.contains("not found") || line.contains("Table not found") {
        let name = quoted(line, '\'').unwrap_or_default();
        let name = name.rsplit('.').next().unwrap_or(name);
        return Some(Error::new(UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")));
    }
    if line.starts_with("No field named ") || line.contains("Column") && line.contains("is not in schema") {
        let name = between(line, "No field named ", ". ").or_else(|| between(line, "Column ", " is not"));
        let name = name.unwrap_or_default().trim_end_matches('.').replace('"', "");
        return Some(Error::new(UNDEFINED_COLUMN, format!("column \"{name}\" does not exist")));
    }
    None
}

/// Values that are invalid for the requested type.
fn about_values(line: &str) -> Option<Error> {
    if let Some(value) = between(line, "Cannot cast string '", "' to value of ") {
        let kind = between(line, "' to value of ", " type").map(sql_types).unwrap_or_default();
        let what = format!("invalid input syntax for type {kind}: \"{value}\"");
        return Some(Error::new(INVALID_TEXT_REPRESENTATION, what));
    }
    if let Some(value) = between(line, "Cannot cast value '", "' to value of ") {
        let kind = between(line, "' to value of ", " type").map(sql_types).unwrap_or_default();
        let what = format!("invalid input syntax for type {kind}: \"{value}\"");
        return Some(Error::new(INVALID_TEXT_REPRESENTATION, what));
    }
    if line.contains("Can't cast value ") {
        let kind = between(line, " to type ", "\n").map(sql_types).unwrap_or_default();
        return Some(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, format!("{kind} out of range")));
    }
    if let Some(value) =
        between(line, "Error parsing ", " at ").or_else(|| between(line, "Parser error: ", "\n"))
    {
        let what = format!("invalid input syntax: {}", sql_types(value));
        return Some(Error::new(INVALID_TEXT_REPRESENTATION, what));
    }
    if line.contains("Invalid argument error") && line.contains(" to store in a ") {
        return Some(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow"));
    }
    None
}

/// Arrow's type names, with SQL's.
const TYPES: [(&str, &str); 19] = [
    ("LargeUtf8", "text"),
    ("Utf8View", "text"),
    ("Utf8", "text"),
    ("Int8", "smallint"),
    ("Int16", "smallint"),
    ("Int32", "integer"),
    ("Int64", "bigint"),
    ("Float32", "real"),
    ("Float64", "double precision"),
    ("Boolean", "boolean"),
    ("Date32", "date"),
    ("Time64", "time without time zone"),
    ("Timestamp", "timestamp without time zone"),
    ("Interval", "interval"),
    ("Duration", "interval"),
    ("Decimal128", "numeric"),
    ("LargeBinary", "bytea"),
    ("BinaryView", "bytea"),
    ("Binary", "bytea"),
];

/// Replaces Arrow's type names in a text by SQL's, and drops type parameters in parentheses.
pub(crate) fn sql_types(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_start = !out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let found = TYPES.iter().filter(|_| is_start).find_map(|(engine, sql)| {
            let behind = rest.strip_prefix(engine)?;
            let ends = !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            ends.then_some((behind, *sql))
        });
        match found {
            Some((behind, sql)) => {
                out.push_str(sql);
                rest = match behind.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
                    Some((_, behind)) => behind,
                    None => behind,
                };
            }
            None => {
                out.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: users never see DataFusion's types, functions or plans in the primary message.
    /// Method: original messages, each with PostgreSQL's code and message, and unknown messages.
    #[test]
    fn words_of_the_engine() {
        for (message, sqlstate, message_for_user) in [
            ("Invalid function 'nosuch'.\nDid you mean 'x'?", "42883", "function nosuch() does not exist"),
            (
                "No function matches the given name and argument types 'round(Utf8View, Int64)'. You might need",
                "42883",
                "function round(text, bigint) does not exist",
            ),
            (
                "Cannot coerce arithmetic expression Int32 + Utf8 to valid types",
                "42883",
                "operator does not exist: integer + text",
            ),
            (
                "Cannot infer common argument type for comparison operation Decimal128(10, 2) = Date32",
                "42883",
                "operator does not exist: numeric = date",
            ),
            (
                "Cannot cast string 'x' to value of Int32 type",
                "22P02",
                "invalid input syntax for type integer: \"x\"",
            ),
            ("Can't cast value 3000000000 to type Int32", "22003", "integer out of range"),
            (
                "Invalid argument error: 10.0 is too large to store in a Decimal128 of precision 2. Max is 9.9",
                "22003",
                "numeric field overflow",
            ),
            (
                "Invalid argument error: -10.0 is too small to store in a Decimal128 of precision 2. Min is -9.9",
                "22003",
                "numeric field overflow",
            ),
            (
                "Cast error: Cannot cast to Decimal128(38, 38). Overflowing on 17",
                "22003",
                "value out of range: overflow",
            ),
            ("table 'cairn.public.t' not found", "42P01", "relation \"t\" does not exist"),
        ] {
            let error = translate_message(message, Origin::Planner);
            assert_eq!((error.sqlstate(), error.message()), (sqlstate, message_for_user), "{message}");
        }
        for (origin, sqlstate) in [
            (Origin::Planner, "0A000"),
            (Origin::Unimplemented, "0A000"),
            (Origin::Operator, "XX000"),
            (Origin::Engine, "XX000"),
        ] {
            let error = translate_message("RepartitionExec: Float64 went wrong", origin);
            assert_eq!(error.sqlstate(), sqlstate);
            assert!(
                !error.message().contains("Exec")
                    && error.detail().is_some_and(|detail| detail.contains("RepartitionExec"))
            );
        }
        assert!(
            translate_message("Unexpected empty work table", Origin::Engine).message().contains("recursive")
        );
        assert!(
            !translate_message(
                "Physical plan does not support logical expression InSubquery(..)",
                Origin::Unimplemented
            )
            .message()
            .contains("hysical")
        );
    }
}
