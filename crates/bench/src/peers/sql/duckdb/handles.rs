//! Owners of DuckDB's objects: every object that is created here is freed here. Apart from the
//! bindings, the rest of this peer has no unsafe code.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use super::ffi::{Api, INLINE, Opaque, RawResult, RawText, SUCCESS, State, kind};
use super::{NAME, fail};
use crate::core::answer::Cell;
use crate::core::error::{Error, Result};
use crate::stores::cells::Cells;
use crate::stores::sql::Visit;

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(fail)
}

/// Returns an error with a message that the library owns.
fn message(text: *const c_char) -> Error {
    if text.is_null() {
        return fail("it failed without a message");
    }
    // SAFETY: messages are zero-terminated and live as long as the object that they are about,
    // which the caller holds.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // DuckDB's message for a conflict between transactions.
    if text.contains("TransactionContext Error") { Error::conflict(NAME, text) } else { fail(text) }
}

/// Returns the version of the library.
pub(super) fn version(api: &Api) -> String {
    // SAFETY: takes no arguments, returns static text.
    let text = unsafe { CStr::from_ptr((api.library_version)()) };
    text.to_string_lossy().trim_start_matches('v').to_owned()
}

/// An open database.
#[derive(Debug)]
pub(super) struct Database {
    api: Arc<Api>,
    raw: Opaque,
}

// SAFETY: DuckDB's databases may be used by any number of threads; connections to them may not.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    pub(super) fn open(api: &Arc<Api>, path: &Path, options: &[(&str, String)]) -> Result<Database> {
        let path = c_string(path.to_str().ok_or_else(|| fail("the path is not UTF-8"))?)?;
        let mut config = ptr::null_mut();
        // SAFETY: the out-pointer is a local variable; the object is destroyed below.
        if unsafe { (api.create_config)(&raw mut config) } != SUCCESS {
            return Err(fail("it cannot create a configuration"));
        }
        let opened = Self::open_with(api, &path, config, options);
        // SAFETY: made above, destroyed once.
        unsafe { (api.destroy_config)(&raw mut config) };
        opened
    }

    fn open_with(
        api: &Arc<Api>,
        path: &CStr,
        config: Opaque,
        options: &[(&str, String)],
    ) -> Result<Database> {
        for (name, value) in options {
            let (key, text) = (c_string(name)?, c_string(value)?);
            // SAFETY: a live configuration and zero-terminated text.
            if unsafe { (api.set_config)(config, key.as_ptr(), text.as_ptr()) } != SUCCESS {
                return Err(fail(format!("it rejects {name} = {value}")));
            }
        }
        let (mut raw, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: out-pointers are local variables, the other arguments are live.
        let state = unsafe { (api.open_ext)(path.as_ptr(), &raw mut raw, config, &raw mut error) };
        if state == SUCCESS {
            return Ok(Database { api: Arc::clone(api), raw });
        }
        let failure = message(error);
        // SAFETY: allocated by the library, freed once; freeing null does nothing.
        unsafe { (api.free)(error.cast()) };
        Err(failure)
    }

    pub(super) fn connect(&self) -> Result<Connection<'_>> {
        let mut raw = ptr::null_mut();
        // SAFETY: the database is open; the out-pointer is a local variable.
        if unsafe { (self.api.connect)(self.raw, &raw mut raw) } != SUCCESS {
            return Err(fail("it opens no connection"));
        }
        Ok(Connection { api: &self.api, raw })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: open until here, and no connection borrows it any more.
        unsafe { (self.api.close)(&raw mut self.raw) };
    }
}

/// The connection of one thread.
#[derive(Debug)]
pub(super) struct Connection<'d> {
    api: &'d Api,
    raw: Opaque,
}

impl Connection<'_> {
    pub(super) fn query(&self, sql: &str) -> Result<Answer<'_>> {
        let (sql, mut raw) = (c_string(sql)?, RawResult::EMPTY);
        // SAFETY: a live connection, zero-terminated text, and an out-pointer to a local variable.
        let state = unsafe { (self.api.query)(self.raw, sql.as_ptr(), &raw mut raw) };
        Answer { api: self.api, raw }.check(state)
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        let (sql, mut raw) = (c_string(sql)?, ptr::null_mut());
        // SAFETY: a live connection, zero-terminated text, and an out-pointer to a local variable.
        let state = unsafe { (self.api.prepare)(self.raw, sql.as_ptr(), &raw mut raw) };
        // A statement must be destroyed even if preparing it failed.
        let mut statement = Statement { api: self.api, raw, kinds: Vec::new() };
        if state != SUCCESS {
            // SAFETY: the statement lives until the end of this function.
            return Err(message(unsafe { (self.api.prepare_error)(raw) }));
        }
        // SAFETY: a live statement; parameters count from 1.
        let kind = |index| unsafe { (self.api.param_type)(raw, index) };
        // SAFETY: a live statement.
        statement.kinds = (1..=unsafe { (self.api.nparams)(raw) }).map(kind).collect();
        Ok(statement)
    }

    pub(super) fn appender(&self, table: &str) -> Result<Appender<'_>> {
        let (table, mut raw) = (c_string(table)?, ptr::null_mut());
        // SAFETY: a live connection, zero-terminated text, and an out-pointer to a local variable;
        // a null schema means the default one.
        let state =
            unsafe { (self.api.appender_create)(self.raw, ptr::null(), table.as_ptr(), &raw mut raw) };
        let appender = Appender { api: self.api, raw };
        appender.check(state)?;
        Ok(appender)
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // SAFETY: live until here; statements and results borrow it.
        unsafe { (self.api.disconnect)(&raw mut self.raw) };
    }
}

/// A prepared statement.
#[derive(Debug)]
pub(super) struct Statement<'c> {
    api: &'c Api,
    raw: Opaque,
    /// Types of its parameters. Values of other types would make DuckDB plan again.
    kinds: Vec<c_int>,
}

impl<'c> Statement<'c> {
    pub(super) fn run(&mut self, parameters: &[Cell<'_>]) -> Result<Answer<'c>> {
        for ((&cell, &kind), index) in parameters.iter().zip(&self.kinds).zip(1..) {
            self.bind(index, kind, cell)?;
        }
        let mut raw = RawResult::EMPTY;
        // SAFETY: a live statement whose parameters are bound, and an out-pointer to a local
        // variable.
        let state = unsafe { (self.api.execute_prepared)(self.raw, &raw mut raw) };
        Answer { api: self.api, raw }.check(state)
    }

    fn bind(&self, index: u64, kind: c_int, cell: Cell<'_>) -> Result<()> {
        let (api, raw) = (self.api, self.raw);
        // SAFETY: a live statement in all calls; text is copied by the library.
        let state = unsafe {
            match cell {
                Cell::Null => (api.bind_null)(raw, index),
                Cell::Int(value) if kind == kind::INTEGER => {
                    (api.bind_int32)(raw, index, i32::try_from(value).map_err(fail)?)
                }
                Cell::Int(value) => (api.bind_int64)(raw, index, value),
                Cell::Date(days) => (api.bind_date)(raw, index, days),
                Cell::Real(value) => (api.bind_double)(raw, index, value),
                Cell::Decimal(units, scale) => {
                    (api.bind_double)(raw, index, units as f64 / 10_f64.powi(i32::from(scale)))
                }
                Cell::Text(text) => {
                    (api.bind_varchar_length)(raw, index, text.as_ptr().cast(), text.len() as u64)
                }
            }
        };
        if state == SUCCESS { Ok(()) } else { Err(fail(format!("it does not take parameter {index}"))) }
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: live until here, destroyed once.
        unsafe { (self.api.destroy_prepare)(&raw mut self.raw) };
    }
}

/// Appends rows to a table.
#[derive(Debug)]
pub(super) struct Appender<'c> {
    api: &'c Api,
    raw: Opaque,
}

impl Appender<'_> {
    fn check(&self, state: State) -> Result<()> {
        if state == SUCCESS {
            return Ok(());
        }
        // SAFETY: a live appender.
        Err(message(unsafe { (self.api.appender_error)(self.raw) }))
    }

    pub(super) fn row(&mut self, row: &[Cell<'_>]) -> Result<()> {
        let (api, raw) = (self.api, self.raw);
        for &cell in row {
            // SAFETY: a live appender in all calls; text is copied by the library.
            let state = unsafe {
                match cell {
                    Cell::Null => (api.append_null)(raw),
                    Cell::Int(value) => (api.append_int64)(raw, value),
                    Cell::Date(days) => (api.append_date)(raw, days),
                    Cell::Real(value) => (api.append_double)(raw, value),
                    Cell::Decimal(units, scale) => {
                        (api.append_double)(raw, units as f64 / 10_f64.powi(i32::from(scale)))
                    }
                    Cell::Text(text) => {
                        (api.append_varchar_length)(raw, text.as_ptr().cast(), text.len() as u64)
                    }
                }
            };
            self.check(state)?;
        }
        // SAFETY: a live appender.
        self.check(unsafe { (api.appender_end_row)(raw) })
    }

    pub(super) fn close(self) -> Result<()> {
        // SAFETY: a live appender.
        self.check(unsafe { (self.api.appender_close)(self.raw) })
    }
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        // SAFETY: live until here, destroyed once.
        unsafe { (self.api.appender_destroy)(&raw mut self.raw) };
    }
}

/// The result of a statement.
#[derive(Debug)]
pub(super) struct Answer<'c> {
    api: &'c Api,
    raw: RawResult,
}

impl Answer<'_> {
    fn check(mut self, state: State) -> Result<Self> {
        if state == SUCCESS {
            return Ok(self);
        }
        // SAFETY: the result of a failed call is also valid until it is destroyed.
        Err(message(unsafe { (self.api.result_error)(&raw mut self.raw) }))
    }

    pub(super) fn changed(mut self) -> u64 {
        // SAFETY: a live result.
        unsafe { (self.api.rows_changed)(&raw mut self.raw) }
    }

    /// Passes all rows to `visit`.
    pub(super) fn show(mut self, visit: &mut Visit<'_>) -> Result<()> {
        let columns = self.columns();
        loop {
            // SAFETY: a live result; its copy is used in this call only.
            let mut chunk = unsafe { (self.api.fetch_chunk)(self.raw) };
            if chunk.is_null() {
                return Ok(());
            }
            let shown = self.show_chunk(chunk, &columns, visit);
            // SAFETY: fetched above, destroyed once, and no part of it is used after.
            unsafe { (self.api.destroy_data_chunk)(&raw mut chunk) };
            shown?;
        }
    }

    fn columns(&mut self) -> Vec<Column> {
        let raw = &raw mut self.raw;
        let column = |index| {
            // SAFETY: a live result and one of its columns in all calls; the logical type is
            // destroyed once.
            unsafe {
                let kind = (self.api.column_type)(raw, index);
                if kind != kind::DECIMAL {
                    return Column { kind, scale: None };
                }
                let mut logical = (self.api.column_logical_type)(raw, index);
                let (scale, inside) =
                    ((self.api.decimal_scale)(logical), (self.api.decimal_internal_type)(logical));
                (self.api.destroy_logical_type)(&raw mut logical);
                Column { kind: inside, scale: Some(scale) }
            }
        };
        // SAFETY: a live result.
        (0..unsafe { (self.api.column_count)(raw) }).map(column).collect()
    }

    fn show_chunk(&self, chunk: Opaque, columns: &[Column], visit: &mut Visit<'_>) -> Result<()> {
        let vector = |(index, column): (usize, &Column)| {
            // SAFETY: a live chunk and one of its columns.
            unsafe {
                let vector = (self.api.data_chunk_get_vector)(chunk, index as u64);
                let data = (self.api.vector_get_data)(vector).cast::<u8>().cast_const();
                Vector { column: *column, data, valid: (self.api.vector_get_validity)(vector) }
            }
        };
        let vectors: Vec<Vector> = columns.iter().enumerate().map(vector).collect();
        // SAFETY: a live chunk.
        for row in 0..unsafe { (self.api.data_chunk_get_size)(chunk) } as usize {
            let mut cells = Cells::new();
            for vector in &vectors {
                // SAFETY: the row is below the chunk's size, and the chunk lives until this
                // function has returned.
                cells.push(unsafe { vector.cell(row) }?);
            }
            visit(cells.row());
        }
        Ok(())
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        // SAFETY: live until here, destroyed once.
        unsafe { (self.api.destroy_result)(&raw mut self.raw) };
    }
}

#[derive(Debug, Clone, Copy)]
struct Column {
    /// The physical type.
    kind: c_int,
    /// Digits after the decimal point, if it is a decimal.
    scale: Option<u8>,
}

struct Vector {
    column: Column,
    data: *const u8,
    valid: *const u64,
}

impl Vector {
    /// Returns the value of a row.
    ///
    /// # Safety
    /// `row` must be one of the vector's, and its chunk must live as long as the cell.
    unsafe fn cell<'v>(&self, row: usize) -> Result<Cell<'v>> {
        // SAFETY: a bit for each row, unless the pointer is null because there are no NULLs.
        if !self.valid.is_null() && unsafe { self.valid.add(row / 64).read() } >> (row % 64) & 1 == 0 {
            return Ok(Cell::Null);
        }
        // SAFETY: here and below, the array has elements of the column's type.
        let int = |value: i128| match self.column.scale {
            Some(scale) => Cell::Real(value as f64 / 10_f64.powi(i32::from(scale))),
            None => i64::try_from(value).map_or(Cell::Real(value as f64), Cell::Int),
        };
        // SAFETY: as above.
        Ok(unsafe {
            match self.column.kind {
                kind::BOOLEAN => Cell::Int(i64::from(self.data.add(row).read())),
                kind::TINYINT => int(i128::from(self.data.cast::<i8>().add(row).read())),
                kind::SMALLINT => int(i128::from(self.data.cast::<i16>().add(row).read())),
                kind::INTEGER => int(i128::from(self.data.cast::<i32>().add(row).read())),
                kind::BIGINT => int(i128::from(self.data.cast::<i64>().add(row).read())),
                // Two words, which may be less aligned than Rust requires for 128 bits.
                kind::HUGEINT => int(self.data.cast::<i128>().add(row).read_unaligned()),
                kind::FLOAT => Cell::Real(f64::from(self.data.cast::<f32>().add(row).read())),
                kind::DOUBLE => Cell::Real(self.data.cast::<f64>().add(row).read()),
                kind::DATE => Cell::Date(self.data.cast::<i32>().add(row).read()),
                kind::VARCHAR => Cell::Text(text(self.data.cast::<RawText>().add(row))?),
                other => return Err(fail(format!("type {other}, which the lab's queries do not have"))),
            }
        })
    }
}

/// Returns a text of a vector as a string.
///
/// # Safety
/// `raw` must be a text of a vector that lives as long as the result.
unsafe fn text<'v>(raw: *const RawText) -> Result<&'v str> {
    // SAFETY: guaranteed by the caller.
    let length = unsafe { (*raw).length } as usize;
    let bytes = if length <= INLINE {
        // SAFETY: short texts begin at the prefix.
        unsafe { (&raw const (*raw).prefix).cast::<u8>() }
    } else {
        // SAFETY: long texts are at the address.
        unsafe { (*raw).address }
    };
    // SAFETY: the text has `length` bytes.
    std::str::from_utf8(unsafe { std::slice::from_raw_parts(bytes, length) }).map_err(fail)
}
