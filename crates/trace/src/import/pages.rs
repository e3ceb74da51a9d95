//! Lists of page numbers: one a line, in the order of use, without times.

use std::io::BufRead;

use super::{Sink, each_line, event};
use crate::error::{Error, Result};
use crate::event::Detail;

/// Blank lines, lines that begin with `#` and a `*` alone, which some lists end with, are passed
/// over.
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
        // Big-endian, so that keys sort as their numbers do.
        sink.add(&event(0, &number.to_be_bytes(), Detail::Block { bytes: 0, hit: None }))
    })
}
