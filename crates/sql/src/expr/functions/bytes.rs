//! Functions on bytes. Positions and lengths are in bytes, counted from 1.

use super::Kind::{BigInt, Bytea, Integer, Text};
use super::{Call, Function, function, general, text};
use crate::datum::{Datum, DatumRef};
use crate::error::{Error, Result};
use crate::expr::quote::md5;
use crate::sqlstate::INVALID_PARAMETER_VALUE;

pub(super) static ROWS: &[Function] = &[
    function("bit_length", &[Bytea], Integer, |c| Ok(Datum::Int((c.bytes(0).len() * 8) as i32)))
        .doc("Number of bits.", &[("bit_length('\\x1234'::bytea)", "16")]),
    general("decode", &[Text, Text], Bytea)
        .doc("Bytes of a text in `hex`, `base64` or `escape`.", &[("decode('00ff', 'hex')", "\\x00ff")]),
    // The general path has one of its own: a constant text that it has computed looks like a
    // literal.
    function("encode", &[Bytea, Text], Text, encode).native().doc(
        "As a text, in the format hex, base64 or escape.",
        &[
            ("encode('\\x0102'::bytea, 'hex')", "0102"),
            ("encode('\\x010203'::bytea, 'base64')", "AQID"),
            ("encode('\\x0041ff'::bytea, 'escape')", "\\000A\\377"),
            ("encode('\\x00'::bytea, 'octal')", "22023"),
        ],
    ),
    function("length", &[Bytea], Integer, |c| Ok(Datum::Int(c.bytes(0).len() as i32)))
        .doc("Number of bytes.", &[("length('\\x1234'::bytea)", "2")]),
    function("md5", &[Bytea], Text, |c| Ok(Datum::Text(md5(c.bytes(0))))).doc(
        "MD5 digest in hexadecimal digits.",
        &[("md5('\\x61'::bytea)", "0cc175b9c0f1b6a831c399e269772661")],
    ),
    function("md5", &[Text], Text, |c| Ok(Datum::Text(md5(c.text(0).as_bytes()))))
        .doc("MD5 digest of a text in UTF-8.", &[("md5('abc')", "900150983cd24fb0d6963f7d28e17f72")]),
    function("octet_length", &[Bytea], Integer, |c| Ok(Datum::Int(c.bytes(0).len() as i32)))
        .doc("Number of bytes.", &[("octet_length('\\x123456'::bytea)", "3")]),
    function("overlay", &[Bytea, Bytea, Integer, Integer], Bytea, text::overlay).optional(1).doc(
        "Replaces a part by other bytes.",
        &[("overlay('\\x1234567890'::bytea placing '\\x0203'::bytea from 2 for 3)", "\\x12020390")],
    ),
    function("substr", &[Bytea, Integer, Integer], Bytea, substring).optional(1).doc(
        "Part that begins at a position, up to a length.",
        &[("substr('\\x1234567890'::bytea, 3, 2)", "\\x5678")],
    ),
    function("substring", &[Bytea, Integer, Integer], Bytea, substring).optional(1).doc(
        "Part that begins at a position, up to a length.",
        &[("substring('\\x1234567890'::bytea from 3 for 2)", "\\x5678")],
    ),
    function("to_hex", &[Integer], Text, |c| Ok(Datum::Text(format!("{:x}", c.int(0) as i32))))
        .doc("Hexadecimal digits.", &[("to_hex(255)", "ff"), ("to_hex(-1)", "ffffffff")]),
    function("to_hex", &[BigInt], Text, |c| Ok(Datum::Text(format!("{:x}", c.int(0)))))
        .doc("Hexadecimal digits.", &[("to_hex((-1)::bigint)", "ffffffffffffffff")]),
];

impl<'c> Call<'c> {
    fn bytes(&self, at: usize) -> &'c [u8] {
        match self.value(at) {
            DatumRef::Blob(bytes) => bytes,
            _ => &[],
        }
    }
}

fn substring(c: &Call<'_>) -> Result<Datum> {
    let (skip, take) = text::part(c.int(1), c.optional_int(2))?;
    Ok(Datum::Blob(c.bytes(0).iter().copied().skip(skip).take(take).collect()))
}

fn encode(c: &Call<'_>) -> Result<Datum> {
    Ok(Datum::Text(encoded(c.bytes(0), c.text(1))?))
}

/// `encode(bytes, format)`. Errors: an unknown format.
pub(crate) fn encoded(bytes: &[u8], format: &str) -> Result<String> {
    Ok(match format.to_ascii_lowercase().as_str() {
        "hex" => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        "base64" => base64(bytes),
        "escape" => escape(bytes),
        other => {
            let message = format!("unrecognized encoding: \"{other}\"");
            return Err(Error::new(INVALID_PARAMETER_VALUE, message));
        }
    })
}

/// With padding, in lines of 76 characters.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for (at, group) in bytes.chunks(3).enumerate() {
        if at > 0 && at % 19 == 0 {
            text.push('\n');
        }
        let bits =
            group.iter().enumerate().fold(0_u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for digit in 0..4 {
            let place = (bits >> (18 - 6 * digit)) & 63;
            let character = DIGITS.get(place as usize).copied().unwrap_or(b'=');
            text.push(if digit <= group.len() { char::from(character) } else { '=' });
        }
    }
    text
}

/// Writes zero bytes and bytes from 128 as a backslash and octal digits.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            0 | 128.. => text.push_str(&format!("\\{byte:03o}")),
            b'\\' => text.push_str("\\\\"),
            plain => text.push(char::from(plain)),
        }
    }
    text
}
