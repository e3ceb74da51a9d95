//! Dates as day numbers: the proleptic Gregorian calendar, counted from 1970-01-01.

/// Converts a day number since 1970-01-01 to year, month and day. Year 0 is 1 BC. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms".
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (month, day) = (month as u32, day as u32);
    debug_assert!(
        (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day),
        "{days} days are {year}-{month}-{day}, which does not exist"
    );
    debug_assert!(days_from_civil(year, month, day) == days, "{days} days are not {year}-{month}-{day}");
    (year, month, day)
}

/// Converts an existing date to its day number since 1970-01-01.
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = i64::from(if month > 2 { month - 3 } else { month + 9 });
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns the number of days in a month.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: days and dates are inverse, months are as long as they are said to be. Method: every
    /// day of 800 years around year 0, and of the 400 years after 1900.
    #[test]
    fn days_and_dates_are_inverse() {
        for start in [days_from_civil(-400, 1, 1), days_from_civil(1900, 1, 1)] {
            let (mut year, mut month, mut day) = civil_from_days(start);
            for number in start..start + 2 * 146_097 {
                assert_eq!(civil_from_days(number), (year, month, day));
                assert_eq!(days_from_civil(year, month, day), number);
                day += 1;
                if day > days_in_month(year, month) {
                    (month, day) = (month + 1, 1);
                }
                if month > 12 {
                    (year, month) = (year + 1, 1);
                }
            }
        }
        assert_eq!(civil_from_days(0), (1970, 1, 1));
    }
}
