//! Sessions over libpq, with PostgreSQL or any server that speaks its protocol. Values are sent in
//! binary format.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::Arc;

use super::binary;
use super::failure::{NAME, fail};
use super::ffi::{Api, BINARY, CONNECTED, COPY_IN, DONE, EMPTY, Oid, Opaque, ROWS, SQLSTATE};
use crate::core::answer::Cell;
use crate::core::error::{Error, Result};
use crate::stores::cells::Cells;
use crate::stores::copy_text::send_rows;
use crate::stores::sql::{Address, Prepared, Rows, SqlSession, Visit};

/// Loads libpq: the library named by `CAIRN_LIBPQ_LIB`, else the one that the system's loader
/// finds.
pub(super) fn load() -> Result<Arc<Api>> {
    match std::env::var_os("CAIRN_LIBPQ_LIB") {
        Some(path) => Api::load(&path),
        None => Api::load("libpq.so.5".as_ref())
            .map_err(|error| fail(format!("{error}; install libpq5, or set CAIRN_LIBPQ_LIB"))),
    }
}

/// Discards notices, which libpq would print.
extern "C" fn ignore(_: *mut std::ffi::c_void, _: *const c_char) {}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(fail)
}

/// The connection of one thread.
#[derive(Debug)]
pub(super) struct Connection {
    api: Arc<Api>,
    raw: Opaque,
    /// Name of each prepared statement, with the types of its parameters.
    statements: Vec<(CString, Vec<Oid>)>,
    /// Buffers for parameters: their bytes, and for each its start, its length and its format.
    bytes: Vec<u8>,
    starts: Vec<Option<usize>>,
    lengths: Vec<c_int>,
    forms: Vec<c_int>,
}

impl Connection {
    /// Connects without encryption, because all traffic stays on the machine.
    pub(super) fn open(api: &Arc<Api>, to: &Address) -> Result<Connection> {
        let Address { host, port, user, database } = to;
        let address = c_string(&format!(
            "host='{host}' port={port} user='{user}' dbname='{database}' sslmode=disable"
        ))?;
        // SAFETY: zero-terminated text.
        let raw = unsafe { (api.connectdb)(address.as_ptr()) };
        let connection = Connection {
            api: Arc::clone(api),
            raw,
            statements: Vec::new(),
            bytes: Vec::new(),
            starts: Vec::new(),
            lengths: Vec::new(),
            forms: Vec::new(),
        };
        // SAFETY: the result of connecting, which may be null, and a static function; all three
        // calls accept null.
        unsafe { (api.setNoticeProcessor)(raw, ignore, ptr::null_mut()) };
        // SAFETY: as above.
        if unsafe { (api.status)(raw) } != CONNECTED {
            return Err(connection.failure());
        }
        Ok(connection)
    }

    /// Returns the connection's own error.
    fn failure(&self) -> Error {
        // SAFETY: a connection, or null; the message lives until the next call.
        let text = unsafe { CStr::from_ptr((self.api.errorMessage)(self.raw)) };
        fail(text.to_string_lossy().trim())
    }

    /// Takes the result of a call. Errors: the call failed.
    fn answer(&self, raw: Opaque) -> Result<Answer<'_>> {
        if raw.is_null() {
            return Err(self.failure());
        }
        let answer = Answer { api: &self.api, raw };
        match answer.status() {
            EMPTY | DONE | ROWS | COPY_IN => Ok(answer),
            _ => Err(answer.error()),
        }
    }

    fn simple(&self, sql: &str) -> Result<Answer<'_>> {
        let sql = c_string(sql)?;
        // SAFETY: a live connection and zero-terminated text.
        self.answer(unsafe { (self.api.exec)(self.raw, sql.as_ptr()) })
    }

    fn perform(&mut self, statement: Prepared, parameters: &[Cell<'_>]) -> Result<Answer<'_>> {
        let (name, kinds) = self.statements.get(statement.0).ok_or_else(|| fail("no such statement"))?;
        self.bytes.clear();
        self.starts.clear();
        self.lengths.clear();
        self.forms.clear();
        for (&cell, &kind) in parameters.iter().zip(kinds) {
            let start = self.bytes.len();
            let is_binary = binary::encode(kind, cell, &mut self.bytes)?;
            self.starts.push((cell != Cell::Null).then_some(start));
            self.lengths.push(c_int::try_from(self.bytes.len() - start).map_err(fail)?);
            self.forms.push(c_int::from(is_binary));
        }
        // Addresses are taken after all bytes are appended, because `bytes` may reallocate before
        // that.
        let place = |start: &Option<usize>| {
            let bytes = start.and_then(|start| self.bytes.get(start..));
            bytes.map_or(ptr::null(), |bytes| bytes.as_ptr().cast::<c_char>())
        };
        let mut few = [ptr::null(); 8];
        let many: Vec<*const c_char>;
        let places = if self.starts.len() <= few.len() {
            few.iter_mut().zip(&self.starts).for_each(|(to, start)| *to = place(start));
            few.as_ptr()
        } else {
            many = self.starts.iter().map(place).collect();
            many.as_ptr()
        };
        let count = c_int::try_from(self.starts.len()).map_err(fail)?;
        // SAFETY: a live connection; arrays of `count` elements, whose addresses point into
        // `bytes`; text in them is zero-terminated.
        let raw = unsafe {
            (self.api.execPrepared)(
                self.raw,
                name.as_ptr(),
                count,
                places,
                self.lengths.as_ptr(),
                self.forms.as_ptr(),
                BINARY,
            )
        };
        self.answer(raw)
    }

    /// Sends rows as text by `COPY … FROM STDIN`.
    pub(super) fn copy(&mut self, table: &str, rows: &mut dyn Rows) -> Result<u64> {
        self.simple(&format!("COPY {table} FROM STDIN"))?;
        let count = send_rows(rows, &mut |text| self.send(text))?;
        // SAFETY: a live connection in COPY mode; a null message means that all rows were sent.
        if unsafe { (self.api.putCopyEnd)(self.raw, ptr::null()) } != 1 {
            return Err(self.failure());
        }
        // SAFETY: a live connection. It returns the result of the COPY, and then null.
        self.answer(unsafe { (self.api.getResult)(self.raw) })?;
        // SAFETY: as above; clearing null does nothing.
        unsafe { (self.api.clear)((self.api.getResult)(self.raw)) };
        Ok(count)
    }

    fn send(&self, text: &[u8]) -> Result<()> {
        let length = c_int::try_from(text.len()).map_err(fail)?;
        // SAFETY: a live connection in COPY mode, and `length` bytes.
        let sent = unsafe { (self.api.putCopyData)(self.raw, text.as_ptr().cast(), length) };
        if sent == 1 { Ok(()) } else { Err(self.failure()) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: live until here, finished once; results borrow the connection.
        unsafe { (self.api.finish)(self.raw) };
    }
}

impl SqlSession for Connection {
    fn execute(&mut self, sql: &str) -> Result<u64> {
        Ok(self.simple(sql)?.changed())
    }

    fn select(&mut self, sql: &str, visit: &mut Visit<'_>) -> Result<()> {
        let sql = c_string(sql)?;
        // SAFETY: a live connection and zero-terminated text; there are no parameters, so their
        // arrays are not read.
        let raw = unsafe {
            (self.api.execParams)(
                self.raw,
                sql.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
                ptr::null(),
                ptr::null(),
                BINARY,
            )
        };
        self.answer(raw)?.show(visit)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        let (sql, name) = (c_string(sql)?, c_string(&format!("s{}", self.statements.len()))?);
        // SAFETY: a live connection and zero-terminated texts; the server infers the types of
        // parameters.
        self.answer(unsafe { (self.api.prepare)(self.raw, name.as_ptr(), sql.as_ptr(), 0, ptr::null()) })?;
        // SAFETY: a live connection and zero-terminated text.
        let described = self.answer(unsafe { (self.api.describePrepared)(self.raw, name.as_ptr()) })?;
        let kinds = described.parameter_types();
        drop(described);
        self.statements.push((name, kinds));
        Ok(Prepared(self.statements.len() - 1))
    }

    fn run(&mut self, statement: Prepared, parameters: &[Cell<'_>]) -> Result<u64> {
        Ok(self.perform(statement, parameters)?.changed())
    }

    fn query(&mut self, statement: Prepared, parameters: &[Cell<'_>], visit: &mut Visit<'_>) -> Result<()> {
        self.perform(statement, parameters)?.show(visit)
    }

    fn begin(&mut self) -> Result<()> {
        self.simple("BEGIN").map(drop)
    }

    fn commit(&mut self) -> Result<()> {
        self.simple("COMMIT").map(drop)
    }

    fn rollback(&mut self) -> Result<()> {
        self.simple("ROLLBACK").map(drop)
    }
}

/// The result of a call.
struct Answer<'c> {
    api: &'c Api,
    raw: Opaque,
}

impl Answer<'_> {
    fn status(&self) -> c_int {
        // SAFETY: a live result.
        unsafe { (self.api.resultStatus)(self.raw) }
    }

    fn error(&self) -> Error {
        let text = |text: *const c_char| {
            // SAFETY: zero-terminated, and lives as long as the result.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned())
        };
        // SAFETY: a live result.
        let state = text(unsafe { (self.api.resultErrorField)(self.raw, SQLSTATE) }).unwrap_or_default();
        // SAFETY: as above.
        let message = text(unsafe { (self.api.resultErrorMessage)(self.raw) }).unwrap_or_default();
        // serialization_failure, deadlock_detected
        if matches!(state.as_str(), "40001" | "40P01") {
            return Error::conflict(NAME, message);
        }
        fail(format!("{message} ({state})"))
    }

    fn parameter_types(&self) -> Vec<Oid> {
        // SAFETY: a live result of a description; parameters count from 0.
        unsafe {
            let count = (self.api.nparams)(self.raw);
            (0..count).map(|index| (self.api.paramtype)(self.raw, index)).collect()
        }
    }

    fn changed(&self) -> u64 {
        // SAFETY: a live result; the text is zero-terminated, empty if no rows were counted, and
        // lives as long as the result.
        let text = unsafe { CStr::from_ptr((self.api.cmdTuples)(self.raw)) };
        text.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn show(&self, visit: &mut Visit<'_>) -> Result<()> {
        let (api, raw) = (self.api, self.raw);
        // SAFETY: a live result.
        let (rows, columns) = unsafe { ((api.ntuples)(raw), (api.nfields)(raw)) };
        for row in 0..rows {
            let mut cells = Cells::new();
            for column in 0..columns {
                // SAFETY: a live result, and a row and a column of it in all calls.
                if unsafe { (api.getisnull)(raw, row, column) } != 0 {
                    cells.push(Cell::Null);
                    continue;
                }
                // SAFETY: as above.
                let (kind, start, length) = unsafe {
                    (
                        (api.ftype)(raw, column),
                        (api.getvalue)(raw, row, column),
                        (api.getlength)(raw, row, column),
                    )
                };
                let length = usize::try_from(length).map_err(fail)?;
                // SAFETY: the value has `length` bytes, which live as long as the result.
                let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) };
                cells.push(binary::decode(kind, bytes)?);
            }
            visit(cells.row());
        }
        Ok(())
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        // SAFETY: live until here, cleared once.
        unsafe { (self.api.clear)(self.raw) };
    }
}
