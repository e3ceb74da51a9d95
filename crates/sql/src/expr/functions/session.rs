//! Functions on the session, and random values.

use super::Kind::{Double, Text, Uuid};
use super::{Call, Function, function};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::sqlstate::UNDEFINED_OBJECT;

pub(super) static ROWS: &[Function] = &[
    function("current_setting", &[Text], Text, current_setting)
        .stable()
        .native()
        .doc("Value of a setting.", &[("current_setting('cairn.none')", "42704")]),
    function("gen_random_uuid", &[], Uuid, |c| Ok(Datum::Uuid(random_uuid(c))))
        .aliases(&["uuid_generate_v4"])
        .volatile()
        .native()
        .doc("Random UUID, of version 4.", &[]),
    function("random", &[], Double, |c| {
        Ok(Datum::Double((c.context.random() >> 11) as f64 / (1u64 << 53) as f64))
    })
    .volatile()
    .native()
    .doc("Random number from 0 up to, but not including, 1.", &[]),
];

fn current_setting(c: &Call<'_>) -> Result<Datum> {
    let name = c.text(0);
    let unknown = || Error::new(UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""));
    c.context.setting(name).map(Datum::Text).ok_or_else(unknown)
}

/// Returns a random UUID, version 4.
fn random_uuid(c: &Call<'_>) -> [u8; 16] {
    let high = c.context.random() & !0xf000 | 0x4000;
    let low = c.context.random() & !(0b11 << 62) | 0b10 << 62;
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}
