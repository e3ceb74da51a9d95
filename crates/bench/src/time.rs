//! Dates, for the names of files and the start of a run.

use std::time::Duration;

/// Converts a time since the Unix epoch to year, month, day, hour, minute, second in UTC.
fn civil(since_epoch: Duration) -> (i64, u32, u32, u64, u64, u64) {
    let seconds = since_epoch.as_secs();
    let (days, second) = ((seconds / 86_400) as i64, seconds % 86_400);
    // Days since 1 March of year 0, in eras of 400 years, as in Howard Hinnant's "chrono-compatible
    // low-level date algorithms".
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day, second / 3600, second / 60 % 60, second % 60)
}

/// Formats a time as in `2026-11-21T05:01:00Z`.
pub fn rfc3339(since_epoch: Duration) -> String {
    let (year, month, day, hour, minute, second) = civil(since_epoch);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: special dates are correct. Method: known pairs, including 29 February in a leap
    /// century.
    #[test]
    fn dates_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_763_701_260, "2025-11-21T05:01:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), text);
        }
    }
}
