//! Encodes rows as DataRow messages.
//!
//! ```text
//! | 'D' | length | columns u16 | length i32, bytes | length i32, bytes | ... |
//!   a length of -1 is NULL
//! ```

use std::borrow::Cow;

use cairn_sql::{Column, DatumRef, RowView, Rows, Statement, StatementKind};

use crate::codec::backend::{begin, end};
use crate::error::Failure;
use crate::sqlstate;
use crate::types::{binary, list, text};

use super::portal::ResultFormats;

/// Returns the columns of a result: those with which the statement was described or, if these were
/// unknown or may be outdated, as for FETCH and EXECUTE, those of the rows.
pub fn columns_of<'a>(statement: &'a Statement, rows: &Rows<'_>) -> Cow<'a, [Column]> {
    let (described, own) = (statement.columns(), rows.columns());
    let is_known = statement.kind() != StatementKind::Fetch && described.len() == own.len();
    if is_known { Cow::Borrowed(described) } else { Cow::Owned(own.to_vec()) }
}

/// Maximum size of a row in bytes: PostgreSQL's limit, which a message's length can represent.
const ROW_BYTES_MAX: usize = 1 << 30;

/// Appends a row. The engine limits the number of columns to what a message can represent.
///
/// Errors: 54000 for a row that is too long, of which nothing is appended.
#[inline]
pub fn data_row(
    out: &mut Vec<u8>,
    columns: &[Column],
    formats: &ResultFormats,
    row: &RowView<'_>,
) -> Result<(), Failure> {
    let at = begin(out, b'D');
    out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
    for (number, column) in columns.iter().enumerate() {
        let value = row.get(number);
        if matches!(value, DatumRef::Null) {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            continue;
        }
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        match (&column.element, value) {
            (Some(element), DatumRef::Text(text)) if formats.is_binary(number) => {
                list::encode(out, element, text);
            }
            _ if formats.is_binary(number) => binary::encode(out, &column.kind, value),
            _ => text::encode_of(out, &column.kind, value),
        }
        let length = i32::try_from(out.len() - length_at - 4).unwrap_or(i32::MAX);
        if let Some(place) = out.get_mut(length_at..length_at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
    if out.len() - at > ROW_BYTES_MAX {
        out.truncate(at);
        let message = format!("a row of more than {ROW_BYTES_MAX} bytes");
        return Err(Failure::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message));
    }
    end(out, at);
    Ok(())
}
