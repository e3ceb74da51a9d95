//! Numbers and addresses as people type them. Errors say which values are expected, and leave out
//! the parser's own message.

#[cfg(feature = "ui")]
use std::net::IpAddr;
#[cfg(feature = "sql")]
use std::net::SocketAddr;
use std::num::IntErrorKind;

/// A whole number that is not negative.
pub trait Whole: TryFrom<u64> + Clone + Send + Sync + 'static {
    /// The largest.
    const MOST: u64;
}

impl Whole for u16 {
    const MOST: u64 = u16::MAX as u64;
}

impl Whole for u32 {
    const MOST: u64 = u32::MAX as u64;
}

impl Whole for i32 {
    const MOST: u64 = i32::MAX as u64;
}

impl Whole for u64 {
    const MOST: u64 = u64::MAX;
}

impl Whole for usize {
    const MOST: u64 = usize::MAX as u64;
}

/// Reads any whole number.
pub fn whole<T: Whole>(text: &str) -> Result<T, String> {
    read(text, 0, T::MOST)
}

/// Reads whole numbers from `least` on.
pub fn from<T: Whole>(least: u64) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    between(least, T::MOST)
}

/// Reads whole numbers from `least` to `most`.
pub fn between<T: Whole>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| read(text, least, most)
}

fn read<T: Whole>(text: &str, least: u64, most: u64) -> Result<T, String> {
    let number = text.parse::<u64>();
    // Mention the maximum of the type only if it was exceeded.
    let is_beyond = matches!(&number, Err(error) if *error.kind() == IntErrorKind::PosOverflow);
    let number = number.ok().filter(|number| (least..=most).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match most {
        u64::MAX if !is_beyond => format!("expected a whole number from {least}"),
        _ => format!("expected a whole number from {least} to {most}"),
    })
}

/// Reads any number.
pub fn real(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "expected a number, such as 2.5".to_owned())
}

/// Reads shares, which need not add up to any total.
pub fn share(text: &str) -> Result<f64, String> {
    real(text).ok().filter(|share| *share >= 0.0).ok_or_else(|| "expected a number of 0 or more".to_owned())
}

/// Reads numbers from `least` to `most`.
pub fn real_between(
    least: f64,
    most: f64,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| match real(text) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("expected a number from {least} to {most}")),
    }
}

/// Reads numbers over `least`, up to `most`.
pub fn real_over(
    least: f64,
    most: f64,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| match real(text) {
        Ok(number) if number > least && number <= most => Ok(number),
        _ => Err(format!("expected a number over {least}, at most {most}")),
    }
}

/// Reads an address of this machine.
#[cfg(feature = "ui")]
pub fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "expected an address in numbers, such as 127.0.0.1 or ::1".to_owned())
}

/// Reads an address with a port.
#[cfg(feature = "sql")]
pub fn address_and_port(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address in numbers with a port, such as 127.0.0.1:5432 or [::1]:5432";
    text.parse().map_err(|_| expected.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers within the range are parsed, and anything else is refused with the range.
    /// Method: both ends, one beyond each, and texts that are not whole numbers.
    #[test]
    fn whole_numbers_are_read() {
        assert_eq!((whole("0"), whole(&u64::MAX.to_string())), (Ok(0u64), Ok(u64::MAX)));
        assert_eq!((between(1, 5)("1"), between(1, 5)("5")), (Ok(1u32), Ok(5)));
        for wrong in ["0", "6", "-1", "", "1.5", "1e3", "five", "99999999999999999999"] {
            assert_eq!(
                between::<u32>(1, 5)(wrong),
                Err("expected a whole number from 1 to 5".to_owned()),
                "{wrong}"
            );
        }
        assert_eq!(whole::<u16>("65536"), Err("expected a whole number from 0 to 65535".to_owned()));
        assert_eq!(from::<u64>(1)("0"), Err("expected a whole number from 1".to_owned()));
        assert_eq!(from::<u64>(1)("-1"), Err("expected a whole number from 1".to_owned()));
        assert!(whole::<u64>("18446744073709551616").unwrap_err().ends_with("to 18446744073709551615"));
    }

    /// Goal: numbers and addresses are parsed, and text that only looks like one is refused.
    #[test]
    fn numbers_and_addresses_are_read() {
        assert_eq!((real("2.5"), real("-1"), real("1e3")), (Ok(2.5), Ok(-1.0), Ok(1000.0)));
        for wrong in ["", "x", "NaN", "inf", "1,5", "5%"] {
            assert!(real(wrong).unwrap_err().contains("2.5"), "{wrong}");
        }
        assert_eq!((share("0"), share("95"), share("0.5")), (Ok(0.0), Ok(95.0), Ok(0.5)));
        for wrong in ["-5", "x", "NaN"] {
            assert_eq!(share(wrong), Err("expected a number of 0 or more".to_owned()), "{wrong}");
        }
        let (seconds, scale) = (real_between(0.001, 600.0), real_over(0.0, 100.0));
        assert_eq!((seconds("0.001"), seconds("600"), scale("1e-9")), (Ok(0.001), Ok(600.0), Ok(1e-9)));
        for wrong in ["0", "-1", "601", "x", "NaN"] {
            assert_eq!(seconds(wrong), Err("expected a number from 0.001 to 600".to_owned()), "{wrong}");
            assert_eq!(scale(wrong), Err("expected a number over 0, at most 100".to_owned()), "{wrong}");
        }
        #[cfg(feature = "ui")]
        assert!(address("::1").is_ok() && address("localhost").unwrap_err().contains("127.0.0.1"));
        #[cfg(feature = "sql")]
        assert!(
            address_and_port("[::1]:1").is_ok()
                && address_and_port("127.0.0.1").unwrap_err().contains("5432")
        );
    }
}
