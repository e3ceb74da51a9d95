//! Sizes in bytes as people write them.

use cairn_pool::{MAX_PAGE_SIZE, MIN_PAGE_SIZE};

use crate::output::human;

/// Reads a size such as `64`, `512MiB`, `2G`: units are powers of 1024, the `iB` may be left out.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let expected = "expected a number with B, KiB, MiB, GiB or TiB, such as 512MiB";
    cairn_bench::core::text::parse_bytes(text).ok_or_else(|| format!("{text:?}: {expected}"))
}

/// Reads a size of at least one byte.
pub fn some_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        0 => Err("expected more than 0".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Reads a size from `least` to `most`.
pub fn bytes_between(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| match parse_bytes(text)? {
        bytes if (least..=most).contains(&bytes) => Ok(bytes),
        _ => Err(format!("expected {} to {}", human(least), human(most))),
    }
}

/// Like [`bytes_between`], for sizes in memory.
pub fn size_between(
    least: usize,
    most: usize,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    let bytes = bytes_between(least as u64, most as u64);
    move |text| usize::try_from(bytes(text)?).map_err(|error| error.to_string())
}

/// The size of a page.
pub fn page_size(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    let is_one = bytes.is_power_of_two()
        && usize::try_from(bytes).is_ok_and(|bytes| (MIN_PAGE_SIZE..=MAX_PAGE_SIZE).contains(&bytes));
    if is_one { Ok(bytes) } else { Err("expected 4KiB, 8KiB, 16KiB, 32KiB or 64KiB".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: sizes are parsed in human notation, and anything else is refused.
    #[test]
    fn sizes_are_read() {
        for (text, bytes) in
            [("0", 0), ("64", 64), ("4KiB", 4096), ("1 MiB", 1 << 20), ("2g", 2 << 30), ("3TB", 3 << 40)]
        {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "MiB", "1.5GiB", "-1", "99999999999999999999", "20000000TiB", "1x"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!((page_size("4KiB"), page_size("65536")), (Ok(4096), Ok(65536)));
        for wrong in ["0", "5", "2KiB", "5000", "128KiB", "x"] {
            assert!(page_size(wrong).is_err(), "{wrong}");
        }
        assert_eq!((some_bytes("1"), some_bytes("0KiB")), (Ok(1), Err("expected more than 0".to_owned())));
        let some = bytes_between(16, 1 << 30);
        assert_eq!((some("16"), some("1GiB")), (Ok(16), Ok(1 << 30)));
        for wrong in ["15", "1073741825", "4GiB"] {
            assert_eq!(some(wrong), Err("expected 16 B to 1.0 GiB".to_owned()), "{wrong}");
        }
    }
}
