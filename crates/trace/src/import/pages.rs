//! Lists of page numbers: one per line, in order of use, without times.

use std::io::BufRead;

use super::{Sink, each_line, event};
use crate::error::{Error, Result};
use crate::event::Detail;

/// Reads a list of page numbers. Skips blank lines, lines that begin with `#`, and a single `*`,
/// with which some lists end.
pub(super) fn read(name: &str, input: &mut dyn BufRead, sink: &mut Sink) -> Result<()> {
    sink.header.timed = false;
    each_line(name, input, |at, line| {
        if line.is_empty() || line.starts_with(b"#") || line == b"*" {
            return Ok(());
        }
        let number = std::str::from_utf8(line).ok().and_then(|text| text.parse::<u64>().ok());
        let number = number.ok_or_else(|| Error::Input {
            input: name.to_owned(),
            place: Some(format!("line {at}")),
            what: format!(
                "{:?} is not a page number: expected one from 0 to 2^64 - 1",
                String::from_utf8_lossy(line.get(..line.len().min(40)).unwrap_or_default())
            ),
        })?;
        // Big-endian, so that keys sort like their numbers.
        sink.add(&event(0, &number.to_be_bytes(), Detail::Block { bytes: 0, hit: None }))
    })
}
