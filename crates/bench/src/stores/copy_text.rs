//! Rows in PostgreSQL's text form for `COPY … FROM STDIN`: cells separated by tabs, NULL as `\N`,
//! and special characters escaped with a backslash.

use super::sql::Rows;
use crate::core::answer::Cell;
use crate::core::error::Result;
use crate::core::time::date_text;

/// Bytes of rows that are passed on at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Passes all rows to `send` in chunks of whole lines, and returns the number of rows.
pub fn send_rows(rows: &mut dyn Rows, send: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let (mut text, mut count) = (Vec::with_capacity(2 * CHUNK_BYTES), 0);
    rows.each(&mut |row| {
        append_row(row, &mut text);
        count += 1;
        if text.len() >= CHUNK_BYTES {
            send(&text)?;
            text.clear();
        }
        Ok(())
    })?;
    send(&text)?;
    Ok(count)
}

fn append_row(row: &[Cell<'_>], line: &mut Vec<u8>) {
    for (index, &cell) in row.iter().enumerate() {
        if index > 0 {
            line.push(b'\t');
        }
        match cell {
            Cell::Null => line.extend_from_slice(b"\\N"),
            Cell::Text(text) => {
                for byte in text.bytes() {
                    match byte {
                        b'\\' => line.extend_from_slice(b"\\\\"),
                        b'\t' => line.extend_from_slice(b"\\t"),
                        b'\n' => line.extend_from_slice(b"\\n"),
                        b'\r' => line.extend_from_slice(b"\\r"),
                        other => line.push(other),
                    }
                }
            }
            other => append_text(other, line),
        }
    }
    line.push(b'\n');
}

/// Appends a value as text; nothing for NULL.
pub fn append_text(cell: Cell<'_>, bytes: &mut Vec<u8>) {
    let text = match cell {
        Cell::Null => return,
        Cell::Text(text) => return bytes.extend_from_slice(text.as_bytes()),
        Cell::Int(value) => value.to_string(),
        Cell::Real(value) => value.to_string(),
        Cell::Date(days) => date_text(days),
        Cell::Decimal(units, scale) => {
            let power = 10_u64.pow(u32::from(scale));
            let (sign, units) = (if units < 0 { "-" } else { "" }, units.unsigned_abs());
            format!("{sign}{}.{:0width$}", units / power, units % power, width = usize::from(scale))
        }
    };
    bytes.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a line keeps its cells separate, whatever they contain.
    #[test]
    fn lines_of_rows() {
        let mut line = Vec::new();
        append_row(&[Cell::Int(-1), Cell::Null, Cell::Text("a\tb\\\n"), Cell::Decimal(1205, 2)], &mut line);
        assert_eq!(line, b"-1\t\\N\ta\\tb\\\\\\n\t12.05\n");
    }

    /// Goal: all rows arrive, in chunks of whole lines.
    #[test]
    fn chunks_are_whole_lines() {
        struct Many;
        impl Rows for Many {
            fn each(&mut self, visit: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>) -> Result<()> {
                (0..30_000).try_for_each(|number| visit(&[Cell::Int(number), Cell::Text("text")]))
            }
        }
        let (mut lines, mut chunks) = (0, 0);
        let count = send_rows(&mut Many, &mut |chunk| {
            assert!(chunk.is_empty() || chunk.ends_with(b"text\n"));
            lines += chunk.iter().filter(|&&byte| byte == b'\n').count();
            chunks += 1;
            Ok(())
        });
        assert_eq!((count.unwrap(), lines), (30_000, 30_000));
        assert!(chunks > 3);
    }
}
