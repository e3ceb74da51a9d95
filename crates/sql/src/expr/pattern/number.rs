//! `to_char` and `to_number` for numbers.

use super::print::ordinal_of;
use crate::datum::{Datum, DatumRef, pow10, rescale};
use crate::error::{Error, Result};
use crate::expr::cast::{as_double, as_integer};
use crate::expr::functions::check_length;
use crate::sqlstate::{
    FEATURE_NOT_SUPPORTED, INVALID_TEXT_REPRESENTATION, NUMERIC_VALUE_OUT_OF_RANGE, SYNTAX_ERROR,
};

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// `9`, or `0`.
    Digit {
        zero: bool,
    },
    Point,
    Group,
    /// `S`; [`Pattern::sign`] holds its position.
    Sign,
    Minus,
    Plus,
    /// `SG`.
    Either,
    /// `PR`, which encloses the number.
    Brackets,
    Ordinal {
        upper: bool,
    },
    Currency,
    /// The point moves over the digits that follow.
    Shift,
    Roman {
        upper: bool,
    },
    Exponent,
    Text(char),
}

/// The position of the sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Sign {
    /// A minus or a blank directly before the number.
    #[default]
    Minus,
    /// `S` before the digits: a plus or a minus directly before the number.
    Before,
    /// `S` after the digits.
    Behind,
    Brackets,
    /// At a mark of the pattern.
    Elsewhere,
}

#[derive(Debug, Default)]
struct Pattern {
    marks: Vec<Mark>,
    /// The number of digits before the point, and after it.
    whole: usize,
    fraction: usize,
    shift: u32,
    /// The position of the first `0` before the point, and the position after the last `0`.
    /// Fractional digits continue the count.
    first_zero: Option<usize>,
    zeros_end: usize,
    fill: bool,
    has_point: bool,
    sign: Sign,
}

const NAMES: &[(&str, Mark)] = &[
    ("EEEE", Mark::Exponent),
    ("MI", Mark::Minus),
    ("PL", Mark::Plus),
    ("PR", Mark::Brackets),
    ("SG", Mark::Either),
    ("S", Mark::Sign),
    ("RN", Mark::Roman { upper: true }),
    ("rn", Mark::Roman { upper: false }),
    ("TH", Mark::Ordinal { upper: true }),
    ("th", Mark::Ordinal { upper: false }),
    ("D", Mark::Point),
    (".", Mark::Point),
    ("G", Mark::Group),
    (",", Mark::Group),
    ("L", Mark::Currency),
    ("V", Mark::Shift),
    ("0", Mark::Digit { zero: true }),
    ("9", Mark::Digit { zero: false }),
];

impl Pattern {
    /// Errors: 42601 for an invalid combination of marks.
    fn parse(pattern: &str) -> Result<Pattern> {
        let mut parsed = Pattern::default();
        let (mut signs, mut said, mut sign_at, mut shifted) = (0, false, None, false);
        let mut rest = pattern;
        while let Some(first) = rest.chars().next() {
            if let Some(behind) = ["FM", "fm"].iter().find_map(|prefix| rest.strip_prefix(prefix)) {
                (parsed.fill, rest) = (true, behind);
                continue;
            }
            if let Some(quoted) = rest.strip_prefix('"') {
                let end = quoted.find('"').unwrap_or(quoted.len());
                parsed.marks.extend(
                    quoted
                        .chars()
                        .take(quoted.get(..end).map_or(0, |text| text.chars().count()))
                        .map(Mark::Text),
                );
                rest = quoted.get(end + 1..).unwrap_or_default();
                continue;
            }
            let named = NAMES.iter().find(|(name, mark)| {
                let exact = matches!(mark, Mark::Roman { .. } | Mark::Ordinal { .. });
                rest.get(..name.len())
                    .is_some_and(|start| start == *name || (!exact && start == name.to_ascii_lowercase()))
            });
            let Some((name, mark)) = named else {
                parsed.marks.push(Mark::Text(first));
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
                continue;
            };
            rest = rest.get(name.len()..).unwrap_or_default();
            match mark {
                Mark::Digit { .. } if shifted => parsed.shift += 1,
                Mark::Digit { zero } => parsed.digit(*zero),
                Mark::Point if parsed.has_point => return Err(syntax("multiple decimal points")),
                Mark::Point if shifted => return Err(syntax("cannot use \"V\" and decimal point together")),
                Mark::Point => parsed.has_point = true,
                Mark::Sign if sign_at.is_some() => return Err(syntax("cannot use \"S\" twice")),
                Mark::Sign => sign_at = Some(parsed.whole),
                Mark::Minus | Mark::Plus | Mark::Either => {
                    signs += 1;
                    // A plus alone does not move the minus.
                    said |= *mark != Mark::Plus;
                }
                Mark::Brackets => parsed.sign = Sign::Brackets,
                Mark::Shift if parsed.has_point => {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                Mark::Shift => shifted = true,
                _ => {}
            }
            parsed.marks.push(*mark);
        }
        if let Some(at) = sign_at {
            if signs > 0 || parsed.sign == Sign::Brackets {
                return Err(syntax("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
            }
            parsed.sign = if at == parsed.whole { Sign::Behind } else { Sign::Before };
        } else if signs > 0 {
            if parsed.sign == Sign::Brackets {
                return Err(syntax("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
            }
            if said {
                parsed.sign = Sign::Elsewhere;
            }
        }
        if parsed.marks.contains(&Mark::Exponent)
            && parsed
                .marks
                .iter()
                .any(|mark| !matches!(mark, Mark::Digit { .. } | Mark::Point | Mark::Exponent))
        {
            return Err(syntax("\"EEEE\" is incompatible with other formats")
                .with_detail("\"EEEE\" may only be used together with digit and decimal point patterns."));
        }
        parsed.whole += parsed.shift as usize;
        Ok(parsed)
    }

    fn digit(&mut self, zero: bool) {
        if zero && self.first_zero.is_none() && !self.has_point {
            self.first_zero = Some(self.whole);
        }
        if self.has_point {
            self.fraction += 1;
        } else {
            self.whole += 1;
        }
        if zero {
            self.zeros_end = self.whole + self.fraction;
        }
    }
}

fn syntax(what: &str) -> Error {
    Error::new(SYNTAX_ERROR, what)
}

/// The digits of a number, rounded to the requested number of fractional digits.
struct Digits {
    negative: bool,
    /// At least one digit.
    whole: String,
    /// The requested digits, or fewer where a double has no more.
    fraction: String,
}

impl Digits {
    /// `None` for values without digits, or with more than numbers have here.
    fn of(value: DatumRef<'_>, fraction: usize, shift: u32) -> Option<Digits> {
        let text = match value {
            DatumRef::Real(_) | DatumRef::Double(_) => {
                let (value, most) = match value {
                    DatumRef::Real(value) => (f64::from(value), 6),
                    DatumRef::Double(value) => (value, 15),
                    _ => return None,
                };
                if !value.is_finite() {
                    return None;
                }
                let value = value * 10_f64.powi(shift as i32);
                let before = format!("{:.0}", value.abs()).len();
                format!("{value:.*}", fraction.min(15).min(usize::saturating_sub(most, before)))
            }
            other => {
                let (unscaled, scale) = match other {
                    DatumRef::Decimal { unscaled, scale } => (unscaled, scale),
                    DatumRef::SmallInt(value) => (value.into(), 0),
                    DatumRef::Int(value) => (value.into(), 0),
                    DatumRef::BigInt(value) => (value.into(), 0),
                    _ => return None,
                };
                let unscaled = unscaled.checked_mul(pow10(shift)?)?;
                // The number is padded with zeros.
                let kept = fraction.min(scale.into()) as u8;
                let mut text =
                    Datum::Decimal { unscaled: rescale(unscaled, scale, kept)?, scale: kept }.to_string();
                if fraction > usize::from(kept) {
                    if kept == 0 {
                        text.push('.');
                    }
                    text.extend(std::iter::repeat_n('0', fraction - usize::from(kept)));
                }
                text
            }
        };
        let number = text.strip_prefix('-').unwrap_or(&text);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_zero = number.bytes().all(|byte| matches!(byte, b'0' | b'.'));
        let negative = text.starts_with('-') && !is_zero;
        Some(Digits { negative, whole: whole.to_owned(), fraction: fraction.to_owned() })
    }
}

/// Formats a number by a pattern.
///
/// Errors: 42601 for an invalid pattern, 54000 for one that is too long.
pub(in crate::expr) fn number_text(value: DatumRef<'_>, pattern: &str) -> Result<String> {
    check_length(pattern.len().saturating_mul(4))?;
    let pattern = Pattern::parse(pattern)?;
    if let Some(upper) = pattern.marks.iter().find_map(|mark| match mark {
        Mark::Roman { upper } => Some(*upper),
        _ => None,
    }) {
        return roman(value, upper, pattern.fill);
    }
    if pattern.marks.contains(&Mark::Exponent) {
        return Ok(exponential(value, pattern.fraction));
    }
    let digits = Digits::of(value, pattern.fraction, pattern.shift);
    let fits = |digits: &Digits| digits.whole.len() <= pattern.whole;
    let printer = match digits {
        Some(digits) if fits(&digits) => Printer::new(&pattern, digits),
        // Too long for the pattern, which prints `#` for each digit.
        other => Printer::new(
            &pattern,
            Digits {
                negative: other.is_some_and(|digits| digits.negative),
                whole: "#".repeat(pattern.whole),
                fraction: "#".repeat(pattern.fraction),
            },
        ),
    };
    Ok(printer.print())
}

struct Printer<'p> {
    pattern: &'p Pattern,
    digits: Digits,
    /// The number of positions before the first digit.
    lead: usize,
    /// The number of fractional digits that are always printed. Others are printed at a `0` only.
    relevant: usize,
    out: String,
    signed: bool,
    /// A digit has been printed.
    within: bool,
}

impl<'p> Printer<'p> {
    fn new(pattern: &'p Pattern, digits: Digits) -> Self {
        let lead = pattern.whole.saturating_sub(digits.whole.len());
        let relevant = match pattern.fill {
            false => digits.fraction.len(),
            true => digits
                .fraction
                .trim_end_matches('0')
                .len()
                .max(pattern.zeros_end.saturating_sub(pattern.whole).min(digits.fraction.len())),
        };
        Printer { pattern, digits, lead, relevant, out: String::new(), signed: false, within: false }
    }

    fn blank(&mut self) {
        if !self.pattern.fill {
            self.out.push(' ');
        }
    }

    /// Writes the sign directly before the number.
    fn sign(&mut self) {
        if std::mem::replace(&mut self.signed, true) {
            return;
        }
        match (self.pattern.sign, self.digits.negative) {
            (Sign::Before, negative) => self.out.push(if negative { '-' } else { '+' }),
            (Sign::Brackets, true) => self.out.push('<'),
            (Sign::Minus, true) => self.out.push('-'),
            (Sign::Minus | Sign::Brackets, false) => self.blank(),
            (Sign::Behind | Sign::Elsewhere, _) => {}
        }
    }

    /// Writes the sign directly after the number.
    fn end(&mut self) {
        match (self.pattern.sign, self.digits.negative) {
            (Sign::Behind, negative) => self.out.push(if negative { '-' } else { '+' }),
            (Sign::Brackets, true) => self.out.push('>'),
            (Sign::Brackets, false) => self.blank(),
            _ => {}
        }
    }

    fn print(mut self) -> String {
        let is_place = |mark: &Mark| matches!(mark, Mark::Digit { .. } | Mark::Point);
        let last = self.pattern.marks.iter().rposition(is_place);
        let (mut place, mut behind) = (0, 0);
        let mut after_point = false;
        for (at, mark) in self.pattern.marks.iter().enumerate() {
            match *mark {
                Mark::Digit { zero } if after_point => {
                    self.sign();
                    if behind < self.relevant || (zero && behind < self.digits.fraction.len()) {
                        self.digit(self.digits.fraction.as_bytes().get(behind).copied());
                    }
                    behind += 1;
                }
                Mark::Digit { .. } => {
                    self.whole(place);
                    place += 1;
                }
                Mark::Point => {
                    self.sign();
                    after_point = true;
                    // A point at the end of the pattern is printed only next to `#`.
                    if self.pattern.fraction > 0 || self.digits.whole.starts_with('#') {
                        self.out.push('.');
                    }
                }
                Mark::Group if self.within => self.out.push(','),
                Mark::Group | Mark::Currency => self.blank(),
                Mark::Minus if self.digits.negative => self.out.push('-'),
                Mark::Plus if !self.digits.negative => self.out.push('+'),
                Mark::Minus | Mark::Plus => self.blank(),
                Mark::Either => self.out.push(if self.digits.negative { '-' } else { '+' }),
                Mark::Ordinal { upper } => {
                    let countable = !self.digits.negative
                        && !self.pattern.has_point
                        && !self.digits.whole.starts_with('#');
                    if countable {
                        let suffix = ordinal_of(&self.digits.whole);
                        self.out += &if upper { suffix.to_ascii_uppercase() } else { suffix.to_owned() };
                    }
                }
                Mark::Text(c) => self.out.push(c),
                Mark::Sign | Mark::Brackets | Mark::Shift | Mark::Roman { .. } | Mark::Exponent => {}
            }
            if Some(at) == last {
                self.end();
            }
        }
        self.out
    }

    fn digit(&mut self, digit: Option<u8>) {
        if let Some(digit) = digit {
            self.out.push(char::from(digit));
            self.within = true;
        }
    }

    /// Writes a position before the point.
    fn whole(&mut self, place: usize) {
        let zeros = self.pattern.first_zero.is_some_and(|first| first <= place);
        if place < self.lead {
            if zeros {
                self.sign();
                self.digit(Some(b'0'));
            } else {
                self.blank();
            }
            return;
        }
        // A single zero before the point is omitted, unless nothing else would be printed.
        let unsaid =
            self.pattern.first_zero.is_none() && self.pattern.fraction > 0 && self.digits.whole == "0";
        if unsaid && !(self.pattern.fill && self.relevant == 0) {
            self.blank();
            return;
        }
        self.sign();
        let digit = self.digits.whole.as_bytes().get(place - self.lead).copied();
        self.digit(digit);
    }
}

/// Exceeds the number of digits of any double.
const MOST_DIGITS: usize = 1_100;

fn exponential(value: DatumRef<'_>, fraction: usize) -> String {
    let value = as_double(value);
    if !value.is_finite() {
        return format!(" #.{}", "#".repeat(fraction + 4));
    }
    // All digits of the number, padded with zeros. The formatter rejects very large precisions.
    let digits = fraction.min(MOST_DIGITS);
    let text = format!("{value:.digits$e}");
    let (number, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let zeros = "0".repeat(fraction - digits);
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let blank = if number.starts_with('-') { "" } else { " " };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{blank}{number}{zeros}e{sign}{:02}", exponent.unsigned_abs())
}

fn roman(value: DatumRef<'_>, upper: bool, fill: bool) -> Result<String> {
    const LETTERS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    const WIDTH: usize = 15;
    let number = as_integer(value).and_then(|value| i32::try_from(value).ok());
    let number = number.ok_or_else(|| Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))?;
    let in_range = u32::try_from(number).ok().filter(|number| (1..4000).contains(number));
    let Some(mut left) = in_range else { return Ok("#".repeat(WIDTH)) };
    let mut text = String::new();
    for (worth, letters) in LETTERS {
        while left >= worth {
            left -= worth;
            text += letters;
        }
    }
    let text = if upper { text } else { text.to_ascii_lowercase() };
    Ok(if fill { text } else { format!("{text:>WIDTH$}") })
}

/// Returns the scale of numbers parsed by a pattern.
pub(in crate::expr) fn scale_of(pattern: &str) -> Option<u8> {
    let pattern = Pattern::parse(pattern).ok()?;
    Some(pattern.fraction.saturating_add(pattern.shift as usize).min(38) as u8)
}

/// Parses a number by a pattern, whose scale the number takes.
///
/// Errors: 22P02 for a text without a number, 0A000 for patterns that are for output only.
pub(in crate::expr) fn number_from(text: &str, pattern: &str) -> Result<(i128, u8)> {
    let pattern = Pattern::parse(pattern)?;
    if pattern.marks.iter().any(|mark| matches!(mark, Mark::Roman { .. } | Mark::Exponent)) {
        return Err(Error::new(FEATURE_NOT_SUPPORTED, "\"EEEE\" and \"RN\" are not supported for input"));
    }
    let mut negative = false;
    let (mut digits, mut fraction, mut after_point) = (String::new(), 0, false);
    let mut rest = text.trim_start();
    let take_sign = |rest: &mut &str, negative: &mut bool| {
        let trimmed = rest.trim_start();
        if let Some(behind) = trimmed.strip_prefix(['-', '<']) {
            (*negative, *rest) = (true, behind);
        } else if let Some(behind) = trimmed.strip_prefix('+') {
            *rest = behind;
        }
    };
    for mark in &pattern.marks {
        match mark {
            Mark::Digit { .. } => {
                if digits.is_empty() {
                    take_sign(&mut rest, &mut negative);
                }
                rest = rest.trim_start();
                if !after_point && rest.starts_with('.') {
                    continue;
                }
                if let Some(c) = rest.chars().next().filter(char::is_ascii_digit) {
                    digits.push(c);
                    fraction += u32::from(after_point);
                    rest = rest.get(1..).unwrap_or_default();
                }
            }
            Mark::Point => {
                if digits.is_empty() {
                    take_sign(&mut rest, &mut negative);
                }
                if let Some(behind) = rest.strip_prefix('.') {
                    (rest, after_point) = (behind, true);
                }
            }
            Mark::Group => rest = rest.strip_prefix(',').unwrap_or(rest),
            Mark::Sign | Mark::Minus | Mark::Plus | Mark::Either => take_sign(&mut rest, &mut negative),
            Mark::Brackets | Mark::Shift | Mark::Roman { .. } | Mark::Exponent => {}
            Mark::Ordinal { .. } => rest = rest.get(2..).unwrap_or_default(),
            // Any character that cannot be part of a number may take its place.
            Mark::Currency | Mark::Text(_) => {
                let mut characters = rest.chars();
                let first = characters.next();
                if first.is_some_and(|c| !c.is_ascii_digit() && !matches!(c, '.' | ',' | '-' | '+')) {
                    rest = characters.as_str();
                }
            }
        }
    }
    let shown = || {
        let what = format!("invalid input syntax for type numeric: \"{text}\"");
        Error::new(INVALID_TEXT_REPRESENTATION, what)
    };
    let unscaled: i128 = digits.parse().map_err(|_| shown())?;
    let scale = u8::try_from(pattern.fraction.min(38)).unwrap_or(38);
    let unscaled = pow10(u32::from(scale).saturating_sub(fraction))
        .and_then(|more| unscaled.checked_mul(more))
        .ok_or_else(shown)?;
    let scale = scale + pattern.shift.min(38 - u32::from(scale)) as u8;
    Ok((if negative { -unscaled } else { unscaled }, scale))
}
