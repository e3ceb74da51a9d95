//! Times as people write them.

use std::time::Duration;

const EXPECTED: &str = "expected a number with us, ms, s, min, h or d, such as 30s";

/// Reads `30s`, `500ms`, `1.5h`; a bare number is seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    read(text, "s")
}

/// The same, but not 0.
pub fn some_seconds(text: &str) -> Result<Duration, String> {
    over_zero(seconds(text)?)
}

/// The same, for times that are kept in whole seconds.
pub fn whole_seconds(text: &str) -> Result<Duration, String> {
    let time = some_seconds(text)?;
    if time.subsec_nanos() == 0 {
        Ok(time)
    } else {
        Err("expected whole seconds, such as 90s or 24h".to_owned())
    }
}

/// Reads `2ms`, `500us`; a bare number is microseconds, and 0 is none.
pub fn some_micros(text: &str) -> Result<Duration, String> {
    over_zero(read(text, "us")?)
}

/// Microseconds of a time, with their fractions.
pub fn as_micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// Formats a time in the largest unit of which it is a whole multiple, such as `90s`.
pub fn shown(time: Duration) -> String {
    let nanos = time.as_nanos();
    let unit = UNITS.iter().rev().find(|(_, unit)| nanos > 0 && nanos.is_multiple_of(*unit));
    match unit {
        Some((name, unit)) => format!("{}{name}", nanos / unit),
        None => format!("{}s", time.as_secs_f64()),
    }
}

fn over_zero(time: Duration) -> Result<Duration, String> {
    if time.is_zero() { Err("expected a time over 0".to_owned()) } else { Ok(time) }
}

/// Units in nanoseconds, by how they are shown.
const UNITS: [(&str, u128); 6] = [
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

fn read(text: &str, bare: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|character: char| character.is_alphabetic());
    let unit = match text.get(number.len()..).unwrap_or_default() {
        "" => bare,
        "m" => "min",
        "µs" => "us",
        unit => unit,
    };
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(EXPECTED)?;
    let number = number.trim();
    let nanos = match number.parse::<u64>() {
        Ok(whole) => u128::from(whole) * unit,
        Err(_) => {
            let number = number.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
            (number.ok_or(EXPECTED)? * *unit as f64).round() as u128
        }
    };
    // The limit is some five hundred years.
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| "too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: times are parsed in each unit, with fractions, and anything else is refused.
    #[test]
    fn times_are_read() {
        let times = ["5", "5s", "500ms", "2min", "2m", "1h", "1d", "1.5s", "250us", "250µs"];
        let read = times.map(|text| seconds(text).unwrap().as_micros());
        let second = 1_000_000;
        let expected = [5, 5, 0, 120, 120, 3_600, 86_400].map(|count| count * second);
        assert_eq!(read[..2], expected[..2]);
        assert_eq!(read[3..7], expected[3..]);
        assert_eq!([read[2], read[7], read[8], read[9]], [second / 2, 3 * second / 2, 250, 250]);
        assert_eq!(
            (as_micros(some_micros("500").unwrap()), as_micros(some_micros("2ms").unwrap())),
            (500.0, 2e3)
        );
        assert_eq!(as_micros(some_micros("0.5").unwrap()), 0.5);
        for wrong in ["", "s", "5 days", "-1s", "nan", "inf", "1 2", "5x", "99999999999999999999h"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(seconds("18446744073709551615h"), Err("too long".to_owned()));
        assert!(some_seconds("0").is_err() && some_micros("0s").is_err() && whole_seconds("0").is_err());
        assert!(whole_seconds("1500ms").is_err() && whole_seconds("1000ms").is_ok());
    }

    /// Goal: a time is formatted as a user would type it, and can be parsed again.
    #[test]
    fn times_are_shown() {
        for text in ["1s", "90s", "2min", "24d", "5h", "500ms", "250us"] {
            assert_eq!(shown(seconds(text).unwrap()), text);
        }
        assert_eq!(
            (shown(Duration::ZERO), shown(Duration::from_nanos(1_500))),
            ("0s".into(), "0.0000015s".into())
        );
    }
}
