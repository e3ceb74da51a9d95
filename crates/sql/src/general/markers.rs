//! Names of the functions that a rewritten statement calls, and that only this path knows.

/// The function that rewrites LIKE patterns with another escape character at run time.
pub(crate) const ESCAPED: &str = "cairn_like_pattern";

/// The function that converts SIMILAR TO patterns to regular expressions at run time.
pub(crate) const SIMILAR: &str = "cairn_similar_pattern";

/// The name of the marker function.
pub(crate) const SHARED_CTE: &str = "cairn_once";

/// The name of the marker function.
pub(crate) const BRANCH: &str = "cairn_branch";

/// The cast to a text type with a length.
pub(crate) const VARCHAR: &str = "cairn_varchar";

/// The cast to time.
pub(crate) const TIME: &str = "cairn_time";

/// The cast to interval with a precision.
pub(crate) const INTERVAL: &str = "cairn_interval";

/// The cast to timestamp with a precision.
pub(crate) const MOMENT: &str = "cairn_moment";

/// The function that returns the length of an interval.
pub(crate) const SPAN: &str = "cairn_span";

/// The function that rejects a second row of a scalar subquery.
pub(crate) const SINGLE_VALUE: &str = "cairn_one";

/// The function that returns its argument, declared as nullable.
pub(crate) const NULLABLE: &str = "cairn_maybe";

/// Like [`NULLABLE`], but declares nothing except the type.
pub(crate) const WITHOUT_METADATA: &str = "cairn_maybe_bare";

/// The function that tests whether a value is an item of a list. NULL is neither in it nor not.
pub(crate) const HAS: &str = "cairn_has";

/// Like the function with six digits, but a date counts as its midnight.
pub(crate) const DATE_PART: &str = "cairn_date_part";

/// The name of the marker function. Its arguments are the operand, and the number of the list among
/// those of the statement.
pub(crate) const LIST_MARKER: &str = "cairn_among";

/// `a ~ b`; with the suffix `_i`, `a ~* b`.
pub(crate) const MATCHES: &str = "cairn_matches";

/// The function behind `AT TIME ZONE`.
pub(crate) const AT_ZONE: &str = "timezone";
