//! Parses patterns of dates and times.

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    Field {
        field: Field,
        /// The field as written.
        name: &'static str,
        /// `FM`: no blanks and no leading zeros.
        fill: bool,
        /// Followed by `TH` or `th`.
        ordinal: Option<Case>,
    },
    /// A literal character: quoted, or not part of a field, blank or separator.
    Text(char),
    /// Matches any blank or separator in input.
    Separator(char),
}

/// The case of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    /// As in `Month`.
    Capital,
    Lower,
}

/// The fields of patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// `BC`, `A.D.`: the era; whether with points.
    Era(Case, bool),
    /// `AM`, `p.m.`: the half of the day; whether with points.
    Half(Case, bool),
    Century,
    Day,
    DayOfYear,
    IsoDayOfYear,
    /// Sunday is 1.
    DayOfWeek,
    /// Monday is 1.
    IsoDayOfWeek,
    DayName(Case),
    DayShort(Case),
    /// This many digits of a second.
    Fraction(u32),
    Hour12,
    Hour24,
    /// The last digits of the ISO year.
    IsoYear(u32),
    IsoWeek,
    Julian,
    Minute,
    Month,
    MonthName(Case),
    MonthShort(Case),
    Offset,
    Quarter,
    Roman(Case),
    Second,
    SecondOfDay,
    WeekOfMonth,
    WeekOfYear,
    /// The last digits of the year.
    Year(u32),
    /// `Y,YYY`.
    YearWithComma,
    Zone(Case),
    ZoneHour,
    ZoneMinute,
}

impl Field {
    /// Whether its input is a run of digits.
    pub fn is_digits(self) -> bool {
        use Field as F;
        !matches!(
            self,
            F::Era(..)
                | F::Half(..)
                | F::DayName(_)
                | F::DayShort(_)
                | F::MonthName(_)
                | F::MonthShort(_)
                | F::Offset
                | F::Roman(_)
                | F::Zone(_)
                | F::ZoneHour
                | F::ZoneMinute
        )
    }
}

use Case::{Capital, Lower, Upper};
use Field as F;

/// Fields by name. If two begin alike, the longer one comes first. Names whose case does not matter
/// are in capitals, and found in lower case too.
const FIELDS: &[(&str, Field)] = &[
    ("A.D.", F::Era(Upper, true)),
    ("a.d.", F::Era(Lower, true)),
    ("B.C.", F::Era(Upper, true)),
    ("b.c.", F::Era(Lower, true)),
    ("A.M.", F::Half(Upper, true)),
    ("a.m.", F::Half(Lower, true)),
    ("P.M.", F::Half(Upper, true)),
    ("p.m.", F::Half(Lower, true)),
    ("AD", F::Era(Upper, false)),
    ("ad", F::Era(Lower, false)),
    ("BC", F::Era(Upper, false)),
    ("bc", F::Era(Lower, false)),
    ("AM", F::Half(Upper, false)),
    ("am", F::Half(Lower, false)),
    ("PM", F::Half(Upper, false)),
    ("pm", F::Half(Lower, false)),
    ("CC", F::Century),
    ("DAY", F::DayName(Upper)),
    ("Day", F::DayName(Capital)),
    ("day", F::DayName(Lower)),
    ("DDD", F::DayOfYear),
    ("DD", F::Day),
    ("DY", F::DayShort(Upper)),
    ("Dy", F::DayShort(Capital)),
    ("dy", F::DayShort(Lower)),
    ("D", F::DayOfWeek),
    ("FF1", F::Fraction(1)),
    ("FF2", F::Fraction(2)),
    ("FF3", F::Fraction(3)),
    ("FF4", F::Fraction(4)),
    ("FF5", F::Fraction(5)),
    ("FF6", F::Fraction(6)),
    ("HH24", F::Hour24),
    ("HH12", F::Hour12),
    ("HH", F::Hour12),
    ("IDDD", F::IsoDayOfYear),
    ("ID", F::IsoDayOfWeek),
    ("IW", F::IsoWeek),
    ("IYYY", F::IsoYear(4)),
    ("IYY", F::IsoYear(3)),
    ("IY", F::IsoYear(2)),
    ("I", F::IsoYear(1)),
    ("J", F::Julian),
    ("MI", F::Minute),
    ("MM", F::Month),
    ("MONTH", F::MonthName(Upper)),
    ("Month", F::MonthName(Capital)),
    ("month", F::MonthName(Lower)),
    ("MON", F::MonthShort(Upper)),
    ("Mon", F::MonthShort(Capital)),
    ("mon", F::MonthShort(Lower)),
    ("MS", F::Fraction(3)),
    ("OF", F::Offset),
    ("Q", F::Quarter),
    ("RM", F::Roman(Upper)),
    ("rm", F::Roman(Lower)),
    ("SSSSS", F::SecondOfDay),
    ("SSSS", F::SecondOfDay),
    ("SS", F::Second),
    ("TZH", F::ZoneHour),
    ("TZM", F::ZoneMinute),
    ("TZ", F::Zone(Upper)),
    ("tz", F::Zone(Lower)),
    ("US", F::Fraction(6)),
    ("WW", F::WeekOfYear),
    ("W", F::WeekOfMonth),
    ("Y,YYY", F::YearWithComma),
    ("YYYY", F::Year(4)),
    ("YYY", F::Year(3)),
    ("YY", F::Year(2)),
    ("Y", F::Year(1)),
];

/// Whether the case of the field's name determines that of its output. Such names are matched
/// exactly.
fn has_case(field: Field) -> bool {
    matches!(
        field,
        F::Era(..)
            | F::Half(..)
            | F::DayName(_)
            | F::DayShort(_)
            | F::MonthName(_)
            | F::MonthShort(_)
            | F::Roman(_)
            | F::Zone(_)
    )
}

fn field_at(pattern: &str) -> Option<(&'static str, Field)> {
    FIELDS.iter().copied().find(|(name, field)| {
        let Some(start) = pattern.get(..name.len()) else { return false };
        start == *name || (!has_case(*field) && start == name.to_ascii_lowercase())
    })
}

/// Parses a pattern. Also returns whether it contains `FX`, which makes blanks and separators
/// significant.
pub(super) fn parse(pattern: &str) -> (Vec<Item>, bool) {
    let (mut items, mut exact) = (Vec::new(), false);
    let mut rest = pattern;
    while !rest.is_empty() {
        let mut fill = false;
        if let Some(behind) = ["FM", "fm"].iter().find_map(|prefix| rest.strip_prefix(prefix)) {
            (fill, rest) = (true, behind);
        } else if let Some(behind) = ["TM", "tm"].iter().find_map(|prefix| rest.strip_prefix(prefix)) {
            // Names in the words of the locale. There is only one locale.
            (fill, rest) = (true, behind);
        } else if let Some(behind) = ["FX", "fx"].iter().find_map(|prefix| rest.strip_prefix(prefix)) {
            (exact, rest) = (true, behind);
        }
        if let Some((name, field)) = field_at(rest) {
            rest = rest.get(name.len()..).unwrap_or_default();
            let ordinal = [("TH", Case::Upper), ("th", Case::Lower)]
                .into_iter()
                .find_map(|(suffix, case)| rest.strip_prefix(suffix).map(|behind| (case, behind)));
            if let Some((_, behind)) = ordinal {
                rest = behind;
            }
            items.push(Item::Field { field, name, fill, ordinal: ordinal.map(|(case, _)| case) });
            continue;
        }
        rest = match rest.strip_prefix('"') {
            Some(quoted) => self::quoted(quoted, &mut items),
            None => plain(rest, &mut items),
        };
    }
    (items, exact)
}

/// Parses a quoted part. A backslash escapes the next character.
fn quoted<'p>(pattern: &'p str, items: &mut Vec<Item>) -> &'p str {
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => break,
            '\\' => items.push(Item::Text(characters.next().unwrap_or('\\'))),
            c => items.push(Item::Text(c)),
        }
    }
    characters.as_str()
}

fn plain<'p>(pattern: &'p str, items: &mut Vec<Item>) -> &'p str {
    let pattern = if pattern.starts_with("\\\"") { pattern.get(1..).unwrap_or_default() } else { pattern };
    let mut characters = pattern.chars();
    if let Some(c) = characters.next() {
        items.push(if is_separator(c) { Item::Separator(c) } else { Item::Text(c) });
    }
    characters.as_str()
}

pub(super) fn is_separator(c: char) -> bool {
    c.is_ascii_whitespace() || c.is_ascii_punctuation()
}

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Starting with Sunday.
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

pub(super) const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
