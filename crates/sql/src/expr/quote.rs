//! Functions that write texts for other programs: `format`, `quote_ident` and the like, `md5`.

use md5::{Digest, Md5};

use super::Val;
use super::functions::check_length;
use crate::error::{Error, Result};
use crate::sqlstate::{INVALID_PARAMETER_VALUE, NULL_VALUE_NOT_ALLOWED, NUMERIC_VALUE_OUT_OF_RANGE};
use crate::syntax::quote_ident;

/// Returns the MD5 digest in hexadecimal digits.
pub(super) fn md5(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Quotes a text as a literal.
pub(super) fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

/// `format(pattern, ...)`: `%s`, `%I` and `%L` with `%n$` and widths.
///
/// Errors: 22023 for a pattern that refers to a missing argument, 22004 for NULL as an identifier.
pub(super) fn format(arguments: &[Val<'_>]) -> Result<Option<String>> {
    let Some((pattern, values)) = arguments.split_first().filter(|(pattern, _)| !pattern.is_null()) else {
        return Ok(None);
    };
    let pattern = pattern.text();
    let mut out = String::new();
    let mut next = 0;
    let mut rest: &str = &pattern;
    while let Some(at) = rest.find('%') {
        out += rest.get(..at).unwrap_or_default();
        rest = rest.get(at + 1..).unwrap_or_default();
        if let Some(behind) = rest.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        let place = Place::read(&mut rest)?;
        let invalid = |what: &str| Error::new(INVALID_PARAMETER_VALUE, what);
        let too_few = || invalid("too few arguments for format()");
        let width = match place.width {
            Width::None => 0,
            Width::Chars(width) => width,
            Width::Argument(of) => {
                next = of.unwrap_or(next);
                let value = values.get(next).ok_or_else(too_few)?;
                next += 1;
                if value.is_null() {
                    0
                } else {
                    value.text().trim().parse().map_err(|_| invalid("number is out of range"))?
                }
            }
        };
        next = place.argument.unwrap_or(next);
        let value = values.get(next).ok_or_else(too_few)?;
        next += 1;
        let text = match place.kind {
            's' => value.text().into_owned(),
            'I' if value.is_null() => {
                let what = "null values cannot be formatted as an SQL identifier";
                return Err(Error::new(NULL_VALUE_NOT_ALLOWED, what));
            }
            'I' => quote_ident(&value.text()),
            _ if value.is_null() => "NULL".to_owned(),
            _ => quote_literal(&value.text()),
        };
        let to_left = place.to_left || width < 0;
        let width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        check_length(out.len().saturating_add(text.len()).saturating_add(width))?;
        let blanks = " ".repeat(width.saturating_sub(text.chars().count()));
        out += &if to_left { text + &blanks } else { blanks + &text };
    }
    out += rest;
    check_length(out.len())?;
    Ok(Some(out))
}

enum Width {
    None,
    Chars(i64),
    /// In the next argument, or in a given one.
    Argument(Option<usize>),
}

/// A format specifier, the part after a `%`.
struct Place {
    argument: Option<usize>,
    to_left: bool,
    width: Width,
    kind: char,
}

impl Place {
    fn read(rest: &mut &str) -> Result<Place> {
        let invalid = |what: String| Error::new(INVALID_PARAMETER_VALUE, what);
        let mut place = Place { argument: None, to_left: false, width: Width::None, kind: 's' };
        let number = number(rest)?;
        let is_place = number.is_some() && rest.starts_with('$');
        if is_place {
            *rest = rest.get(1..).unwrap_or_default();
            place.argument = Some(index(number.unwrap_or(0))?);
        }
        if number.is_none() || is_place {
            while let Some(behind) = rest.strip_prefix('-') {
                (place.to_left, *rest) = (true, behind);
            }
            if let Some(behind) = rest.strip_prefix('*') {
                *rest = behind;
                let of = self::number(rest)?;
                if of.is_some() {
                    *rest = rest.strip_prefix('$').ok_or_else(|| {
                        invalid("width argument position must be ended by \"$\"".to_owned())
                    })?;
                }
                place.width = Width::Argument(of.map(index).transpose()?);
            } else if let Some(width) = self::number(rest)? {
                place.width = Width::Chars(width);
            }
        } else if let Some(width) = number {
            place.width = Width::Chars(width);
        }
        let Some(kind) = rest.chars().next() else {
            return Err(invalid("unterminated format() type specifier".to_owned())
                .with_hint("For a single \"%\" use \"%%\"."));
        };
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(invalid(format!("unrecognized format() type specifier \"{kind}\""))
                .with_hint("For a single \"%\" use \"%%\"."));
        }
        *rest = rest.get(1..).unwrap_or_default();
        place.kind = kind;
        Ok(place)
    }
}

/// Converts the number of an argument, counted from 1, to its position.
fn index(number: i64) -> Result<usize> {
    usize::try_from(number).ok().and_then(|number| number.checked_sub(1)).ok_or_else(|| {
        let what = "format specifies argument 0, but arguments are numbered from 1";
        Error::new(INVALID_PARAMETER_VALUE, what)
    })
}

fn number(rest: &mut &str) -> Result<Option<i64>> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let text = rest.get(..digits).unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    let number: i32 =
        text.parse().map_err(|_| Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"))?;
    *rest = rest.get(digits..).unwrap_or_default();
    Ok(Some(number.into()))
}
