//! Functions on sequences. The general path draws values when it plans or scans.

use super::Kind::{BigInt, Boolean, Text};
use super::{Function, function};
use crate::datum::{Datum, DatumRef};

pub(super) static ROWS: &[Function] = &[
    function("currval", &[Text], BigInt, |c| Ok(Datum::BigInt(c.context.current_value(Some(c.text(0)))?)))
        .volatile()
        .native()
        .doc("Last value that this session drew from a sequence.", &[]),
    function("lastval", &[], BigInt, |c| Ok(Datum::BigInt(c.context.current_value(None)?)))
        .volatile()
        .native()
        .doc("Last value that this session drew from any sequence.", &[]),
    function("nextval", &[Text], BigInt, |c| Ok(Datum::BigInt(c.context.next_value(c.text(0))?)))
        .volatile()
        .native()
        .doc("Draws a value.", &[]),
    function("setval", &[Text, BigInt, Boolean], BigInt, |c| {
        let is_called = c.value(2) != DatumRef::Boolean(false);
        Ok(Datum::BigInt(c.context.set_value(c.text(0), c.int(1), is_called)?))
    })
    .optional(1)
    .volatile()
    .native()
    .doc("Sets the last value; if the third argument is false, the next one.", &[]),
];
