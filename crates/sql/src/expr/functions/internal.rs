//! Functions that users do not name: operators of the direct path, and calls that queries are
//! rewritten to for the general path.

use super::Kind::{Boolean, Text, TimestampTz};
use super::{Call, Function, function, kernels};
use crate::datum::{Datum, zoned_text};
use crate::error::Result;
use crate::expr::like::like;
use crate::expr::regular::{Options, Regular};

/// The text of a timestamp with a time zone.
pub(crate) static TIMESTAMPTZ_TEXT: Function =
    function("cairn_timestamptz_text", &[TimestampTz], Text, |c| Ok(Datum::Text(zoned_text(c.value(0)))));

static MATCHES: Function = function("~", &[Text, Text], Boolean, |c| matches(c, false, false));
static NOT_MATCHES: Function = function("!~", &[Text, Text], Boolean, |c| matches(c, false, true));
static MATCHES_I: Function = function("~*", &[Text, Text], Boolean, |c| matches(c, true, false));
static NOT_MATCHES_I: Function = function("!~*", &[Text, Text], Boolean, |c| matches(c, true, true));

/// Returns `a ~ b` or one of its variants.
pub(crate) fn regular_match(insensitive: bool, negated: bool) -> &'static Function {
    match (insensitive, negated) {
        (false, false) => &MATCHES,
        (false, true) => &NOT_MATCHES,
        (true, false) => &MATCHES_I,
        (true, true) => &NOT_MATCHES_I,
    }
}

pub(super) static ROWS: &[Function] = &[
    // With backslash as the escape character.
    function("cairn_like", &[Text, Text], Boolean, |c| matches_like(c, false)).hidden(),
    function("cairn_ilike", &[Text, Text], Boolean, |c| matches_like(c, true)).hidden(),
    function("cairn_matches", &[Text, Text], Boolean, |c| matches(c, false, false))
        .vectorised(|inputs| kernels::matches(inputs, Options::insensitive(false)))
        .hidden(),
    function("cairn_matches_i", &[Text, Text], Boolean, |c| matches(c, true, false))
        .vectorised(|inputs| kernels::matches(inputs, Options::insensitive(true)))
        .hidden(),
];

fn matches(c: &Call<'_>, insensitive: bool, negated: bool) -> Result<Datum> {
    let regular = Regular::of(c.text(1), Options::insensitive(insensitive))?;
    Ok(Datum::Boolean(regular.is_match(c.text(0)) != negated))
}

fn matches_like(c: &Call<'_>, insensitive: bool) -> Result<Datum> {
    Ok(Datum::Boolean(like(c.text(0), c.text(1), Some('\\'), insensitive)?))
}
