//! Formats numbers the way people write them: `5.83 M/s`, `142 ns`, `1.50 MiB`, `3.21×`.
//!
//! Every function here is total: a number that is not finite prints as a dash, never as `NaN`.

/// Stands for a number that does not exist.
pub(super) const NONE: &str = "–";

const DECIMAL: [(f64, &str); 4] = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
const BINARY: [(f64, &str); 5] = [
    (1_099_511_627_776.0, "TiB"),
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1024.0, "KiB"),
    (1.0, "B"),
];
const TIME_NS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];

/// Formats `value` with its unit, three significant digits and a fitting prefix.
///
/// Scales `ops/s`, `ns`, `s`, `B` and their relatives. Any other unit is appended to the bare
/// number.
pub(super) fn quantity(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    match unit {
        "ops/s" | "/s" => per_second(value),
        "ns" => duration(value, 1.0, unit),
        "us" | "µs" => duration(value, 1e3, unit),
        "ms" => duration(value, 1e6, unit),
        "s" => duration(value, 1e9, unit),
        "B" | "bytes" => bytes(value),
        "B/s" => format!("{}/s", bytes(value)),
        "" => number(value),
        other if (1e3..1e6).contains(&value.abs()) => format!("{} {other}", whole_number(value)),
        other => format!("{} {other}", number(value)),
    }
}

/// Formats an axis label: like [`quantity`], without trailing zeros.
pub(super) fn tick(value: f64, unit: &str) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = quantity(value, unit);
    let end = text.find(' ').unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if !digits.contains('.') {
        return text;
    }
    format!("{}{rest}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats both ends of an interval, with the unit written once if they share it.
pub(super) fn interval(low: f64, high: f64, unit: &str) -> String {
    let (from, to) = (quantity(low, unit), quantity(high, unit));
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((digits, left)), Some((_, right))) if left == right => format!("{digits} to {to}"),
        _ => format!("{from} to {to}"),
    }
}

/// Formats a ratio: `0.71×`, `1.004×`, `3.21×`, `12.4×`, `150×`. A ratio close to one gets one more
/// digit, since that digit is decisive there.
pub(super) fn ratio(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value != 1.0 && (value - 1.0).abs() < 0.0495 {
        return format!("{value:.3}×");
    }
    if value < 0.1 { format!("{value:.3}×") } else { format!("{}×", significant(value)) }
}

/// Formats a whole number with thin spaces between thousands: `1 234 567`.
pub(super) fn whole(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// Formats a count in short form if that loses nothing (`100 k`, `1 M`, `2.5 M`), and in full
/// otherwise (`123 456`).
pub(super) fn count(value: u64) -> String {
    for (size, prefix) in [(1_000_000_000_u64, "G"), (1_000_000, "M"), (1_000, "k")] {
        if value >= size && value.is_multiple_of(size / 10) {
            let tenths = value / (size / 10);
            let (units, rest) = (whole(tenths / 10), tenths % 10);
            return if rest == 0 { format!("{units} {prefix}") } else { format!("{units}.{rest} {prefix}") };
        }
    }
    whole(value)
}

/// Formats `2026-03-01T12:34:56Z` as `2026-03-01 12:34 UTC`, and returns anything else unchanged.
pub(super) fn moment(rfc3339: &str) -> String {
    let shape: String = rfc3339.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let is_utc = rfc3339.ends_with('Z') || rfc3339.ends_with("+00:00");
    match (rfc3339.get(..10), rfc3339.get(11..16)) {
        (Some(day), Some(time)) if is_utc && shape.starts_with("0000-00-00T00:00") => {
            format!("{day} {time} UTC")
        }
        _ => rfc3339.to_owned(),
    }
}

/// Shortens `text` to at most `keep` characters, with an ellipsis in place of its middle. The two
/// ends distinguish names better than the beginning alone.
pub(super) fn shorten(text: &str, keep: usize) -> String {
    let length = text.chars().count();
    if length <= keep || keep < 3 {
        return text.to_owned();
    }
    let tail = (keep - 1) / 2;
    let head = keep - 1 - tail;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{}…{}", start.trim_end(), end.trim_start())
}

/// Formats three significant digits, without an exponent below 1e15.
fn significant(value: f64) -> String {
    let value = round3(value);
    let size = value.abs();
    if size >= 1e15 {
        format!("{value:.2e}")
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.1 || size == 0.0 {
        format!("{value:.2}")
    } else if size >= 1e-4 {
        let text = format!("{value:.6}");
        text.trim_end_matches('0').to_owned()
    } else {
        format!("{value:.2e}")
    }
}

/// Rounds to three significant digits, so that 999.7 moves to the next prefix instead of printing
/// as `1000`.
fn round3(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power = 10_f64.powf(2.0 - value.abs().log10().floor());
    if power.is_finite() && power > 0.0 { (value * power).round() / power } else { value }
}

fn scaled(value: f64, steps: &[(f64, &'static str)]) -> (f64, &'static str) {
    let rounded = round3(value).abs();
    let fits = steps.iter().find(|(size, _)| rounded >= *size).or(steps.last());
    fits.map_or((value, ""), |(size, name)| (value / size, name))
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e5 {
        return format!("{value:.0}");
    }
    let (digits, prefix) = scaled(value, &DECIMAL);
    if prefix.is_empty() { significant(value) } else { format!("{} {prefix}", significant(digits)) }
}

/// Formats a whole number for units that already carry a prefix, such as `MB/s`, and take no second
/// one.
fn whole_number(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", whole(value.abs().round() as u64))
}

fn per_second(value: f64) -> String {
    let (digits, prefix) = scaled(value, &DECIMAL);
    format!("{} {prefix}/s", significant(digits))
}

fn bytes(value: f64) -> String {
    let (digits, name) = scaled(value, &BINARY);
    let is_whole = name == "B" && digits.fract() == 0.0;
    // 1000 to 1023 KiB would otherwise print as 1.0e3. All four digits fit.
    let text = if is_whole || digits.abs() >= 999.5 { format!("{digits:.0}") } else { significant(digits) };
    format!("{text} {name}")
}

fn duration(value: f64, nanoseconds_each: f64, unit: &str) -> String {
    let nanoseconds = value * nanoseconds_each;
    let seconds = nanoseconds / 1e9;
    if seconds.is_nan() || seconds.abs() >= 1e6 {
        return format!("{} {unit}", number(value));
    }
    if seconds.abs() >= 99.95 {
        let whole_seconds = seconds.round();
        let minutes = (whole_seconds / 60.0).trunc();
        return format!("{minutes:.0} min {:.0} s", (whole_seconds - minutes * 60.0).abs());
    }
    let (digits, name) = scaled(nanoseconds, &TIME_NS);
    format!("{} {name}", significant(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each unit gets the prefix that a person would choose, even at the boundaries. Method:
    /// table.
    #[test]
    fn quantities_read_naturally() {
        let table = [
            (5_832_100.0, "ops/s", "5.83 M/s"),
            (999_700.0, "ops/s", "1.00 M/s"),
            (99_970.0, "ops/s", "100 k/s"),
            (12.0, "ops/s", "12.0 /s"),
            (142.4, "ns", "142 ns"),
            (999.9, "ns", "1.00 µs"),
            (0.683, "s", "683 ms"),
            (12.04, "s", "12.0 s"),
            (123.4, "s", "2 min 3 s"),
            (119.99, "s", "2 min 0 s"),
            (2e9, "s", "2.00 G s"),
            (1e305, "s", "1.00e296 G s"),
            (6.0, "B", "6 B"),
            (21.37, "B", "21.4 B"),
            (1_572_864.0, "B", "1.50 MiB"),
            (1_024_000.0, "B", "1000 KiB"),
            (1_047_552.0, "B", "1.00 MiB"),
            (0.0, "ns", "0.00 ns"),
            (37.0, "", "37"),
            (1_900.4, "MB/s", "1\u{202f}900 MB/s"),
            (-52_300.0, "reads/s", "-52\u{202f}300 reads/s"),
            (0.012, "", "0.012"),
            (f64::NAN, "ns", NONE),
            (f64::INFINITY, "B", NONE),
        ];
        for (value, unit, expected) in table {
            assert_eq!(quantity(value, unit), expected, "{value} {unit}");
        }
    }

    /// Goal: axis labels have no trailing zeros, and zero has no unit. Method: table.
    #[test]
    fn ticks_are_bare() {
        assert_eq!(tick(0.0, "ops/s"), "0");
        assert_eq!(tick(2e6, "ops/s"), "2 M/s");
        assert_eq!(tick(2.5e6, "ops/s"), "2.5 M/s");
        assert_eq!(tick(100.0, "ns"), "100 ns");
        assert_eq!(tick(20.0, "B"), "20 B");
    }

    /// Goal: an interval names its unit once, unless its ends have different units. Method: both
    /// kinds.
    #[test]
    fn intervals_share_their_unit() {
        assert_eq!(interval(5.7e6, 5.96e6, "ops/s"), "5.70 to 5.96 M/s");
        assert_eq!(interval(900e3, 1.1e6, "ops/s"), "900 k/s to 1.10 M/s");
        assert_eq!(interval(f64::NAN, 1.0, "ns"), "– to 1.00 ns");
    }

    /// Goal: counts are shortened only where that loses nothing. Method: round and odd numbers.
    #[test]
    fn counts_lose_nothing() {
        assert_eq!(count(100_000), "100 k");
        assert_eq!(count(1_000_000), "1 M");
        assert_eq!(count(2_500_000), "2.5 M");
        assert_eq!(count(123_456), "123\u{202f}456");
        assert_eq!(count(7), "7");
        assert_eq!(count(0), "0");
    }

    /// Goal: shortening keeps both ends, whole characters, and the promised length. Method: long,
    /// short and multi-byte text.
    #[test]
    fn shorten_keeps_the_ends() {
        assert_eq!(shorten("lmdb", 8), "lmdb");
        assert_eq!(shorten("abcdefghij", 5), "ab…ij");
        assert!(shorten("ééééééééé", 5).chars().count() <= 5);
    }

    /// Goal: a UTC time is made readable, and anything else stays unchanged. Method: a valid time,
    /// a time with an offset and garbage.
    #[test]
    fn times_are_made_readable() {
        assert_eq!(moment("2026-03-01T12:34:56Z"), "2026-03-01 12:34 UTC");
        assert_eq!(moment("2026-03-01T12:34:56+02:00"), "2026-03-01T12:34:56+02:00");
        assert_eq!(moment("yesterday"), "yesterday");
        assert_eq!(moment(""), "");
    }

    /// Goal: ratios keep three digits, small ones too. Method: table.
    #[test]
    fn ratios() {
        assert_eq!(ratio(3.2049), "3.20×");
        assert_eq!(ratio(0.714), "0.71×");
        assert_eq!(ratio(1.0), "1.00×");
        assert_eq!(ratio(1.0042), "1.004×");
        assert_eq!(ratio(0.9531), "0.953×");
        assert_eq!(ratio(0.0214), "0.021×");
        assert_eq!(ratio(149.6), "150×");
        assert_eq!(ratio(f64::NAN), NONE);
    }
}
