//! External merge sort of rows: sorted runs in a temporary file, which are then merged all at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::varint;
use cairn_vfs::{AppendWriter, File, Fs, OpenOptions};

use super::{Cell, Row};
use crate::error::{Error, Result};

/// Number of bytes read from a run at a time.
const READ_BYTES: usize = 64 << 10;

/// The rows in memory, and the runs of those that did not fit.
pub(super) struct Sorter {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    keys: usize,
    limit_bytes: usize,
    held_bytes: usize,
    rows: Vec<Row>,
    spill: Option<AppendWriter>,
    runs: Vec<(u64, u64)>,
}

/// A row with its sort key first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    key: Vec<Cell>,
    id: u64,
    run: usize,
    rest: Vec<Cell>,
}

fn encode(row: &Row, out: &mut Vec<u8>) {
    varint::push(row.id, out);
    for cell in &row.cells {
        put_cell(cell, out);
    }
}

/// Appends a cell in the encoding of the directory and the runs.
pub(super) fn put_cell(cell: &Cell, out: &mut Vec<u8>) {
    match cell {
        Cell::Null => out.push(0),
        Cell::Integer(integer) => {
            out.push(1);
            crate::cursor::push_zigzag(*integer as u64, out);
        }
        Cell::Bytes(bytes) => {
            out.push(2);
            varint::push(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
    }
}

/// Reads a cell that [`put_cell`] wrote.
pub(super) fn take_cell(cursor: &mut crate::cursor::Cursor<'_>) -> crate::Checked<Cell> {
    let at = cursor.at();
    Ok(match cursor.u8()? {
        0 => Cell::Null,
        1 => Cell::Integer(cursor.zigzag()? as i64),
        2 => {
            let len = usize::try_from(cursor.varint()?).unwrap_or(usize::MAX);
            Cell::Bytes(cursor.take(len)?.to_vec())
        }
        _ => return Err(crate::Damage::at(at, "a value")),
    })
}

impl Sorter {
    pub(super) fn new(fs: &Arc<dyn Fs>, path: &Path, keys: usize, limit_bytes: usize) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push(".runs");
        Sorter {
            fs: fs.clone(),
            path: name.into(),
            keys,
            limit_bytes,
            held_bytes: 0,
            rows: Vec::new(),
            spill: None,
            runs: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: Row) -> Result<()> {
        let bytes: usize =
            row.cells.iter().map(|cell| if let Cell::Bytes(b) = cell { b.len() } else { 0 }).sum();
        self.held_bytes += bytes + size_of::<Row>() + row.cells.len() * size_of::<Cell>();
        self.rows.push(row);
        if self.held_bytes > self.limit_bytes { self.spill() } else { Ok(()) }
    }

    fn sort(&mut self) {
        let keys = self.keys;
        self.rows.sort_unstable_by(|a, b| a.cells[..keys].cmp(&b.cells[..keys]).then(a.id.cmp(&b.id)));
    }

    /// Writes a run: for each row a length u32 and the row. There is no checksum: a run lives only
    /// as long as its build, and rows are validated when they are read.
    fn spill(&mut self) -> Result<()> {
        self.sort();
        let writer = match &mut self.spill {
            Some(writer) => writer,
            none => {
                let options = OpenOptions::create();
                let file: Arc<dyn File> = Arc::from(self.fs.open(&self.path, options)?);
                file.set_len(0)?;
                none.insert(AppendWriter::new(file, 0, 1 << 20))
            }
        };
        let start = writer.position();
        debug_assert!(self.runs.last().is_none_or(|(_, end)| *end == start), "runs follow each other");
        let mut bytes = Vec::new();
        for row in self.rows.drain(..) {
            bytes.clear();
            bytes.extend_from_slice(&[0; 4]);
            encode(&row, &mut bytes);
            let len = u32::try_from(bytes.len() - 4).map_err(|_| Error::invalid("a row is over 4 GiB"))?;
            bytes[..4].copy_from_slice(&len.to_le_bytes());
            writer.write_all(&bytes)?;
        }
        debug_assert!(self.rows.is_empty());
        self.runs.push((start, writer.position()));
        self.held_bytes = 0;
        Ok(())
    }

    /// Passes all rows to `each` in order.
    pub(super) fn drain(&mut self, mut each: impl FnMut(&Row) -> Result<()>) -> Result<()> {
        if self.runs.is_empty() {
            self.sort();
            return self.rows.drain(..).try_for_each(|row| each(&row));
        }
        self.spill()?;
        let Some(mut writer) = self.spill.take() else { return Ok(()) };
        writer.flush()?;
        let file = writer.into_file()?;
        let mut runs: Vec<RunReader> =
            self.runs.iter().map(|(from, to)| RunReader::new(file.clone(), *from, *to)).collect();
        let mut heads = BinaryHeap::new();
        for (run, reader) in runs.iter_mut().enumerate() {
            if let Some(row) = reader.next()? {
                heads.push(Reverse(self.head(row, run)));
            }
        }
        while let Some(Reverse(head)) = heads.pop() {
            let mut cells = head.key;
            cells.extend(head.rest);
            each(&Row { id: head.id, cells })?;
            if let Some(row) = runs[head.run].next()? {
                heads.push(Reverse(self.head(row, head.run)));
            }
        }
        debug_assert!(runs.iter().all(|run| run.at == run.end), "a run was not read to its end");
        Ok(())
    }

    fn head(&self, mut row: Row, run: usize) -> Head {
        let rest = row.cells.split_off(self.keys);
        Head { key: row.cells, id: row.id, run, rest }
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        if !self.runs.is_empty() {
            // Best effort: a file that stays is overwritten by the next build.
            let _ = self.fs.remove(&self.path);
        }
    }
}

/// Reads one run with read-ahead.
struct RunReader {
    file: Arc<dyn File>,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
}

impl RunReader {
    fn new(file: Arc<dyn File>, at: u64, end: u64) -> Self {
        RunReader { file, at, end, buffer: Vec::new(), used: 0 }
    }

    /// Makes `count` unread bytes available. Returns false at the end of the run.
    fn fill(&mut self, count: usize) -> Result<bool> {
        while self.buffer.len() - self.used < count {
            if self.at == self.end {
                return Ok(false);
            }
            self.buffer.drain(..self.used);
            self.used = 0;
            let more = ((self.end - self.at) as usize).min(READ_BYTES.max(count));
            let old = self.buffer.len();
            self.buffer.resize(old + more, 0);
            self.file.read_exact_at(&mut self.buffer[old..], self.at)?;
            self.at += more as u64;
            debug_assert!(self.at <= self.end, "beyond the end of the run");
        }
        debug_assert!(self.used + count <= self.buffer.len());
        Ok(true)
    }

    fn next(&mut self) -> Result<Option<Row>> {
        if !self.fill(4)? {
            return Ok(None);
        }
        let offset = self.at - (self.buffer.len() - self.used) as u64;
        let mut four = [0; 4];
        four.copy_from_slice(&self.buffer[self.used..self.used + 4]);
        self.used += 4;
        let len = u32::from_le_bytes(four) as usize;
        if len as u64 > self.end || !self.fill(len)? {
            return Err(Error::corruption(self.file.path(), offset, "a row runs past the end of its run"));
        }
        let damaged = |what: &str| Error::corruption(self.file.path(), offset, what);
        let bytes = &self.buffer[self.used..self.used + len];
        let mut cursor = crate::cursor::Cursor::new(bytes, 0, len).map_err(|_| damaged("a row"))?;
        let mut row = Row { id: cursor.varint().map_err(|_| damaged("a row id"))?, cells: Vec::new() };
        while cursor.at() < cursor.end() {
            row.cells.push(take_cell(&mut cursor).map_err(|_| damaged("a value"))?);
        }
        self.used += len;
        Ok(Some(row))
    }
}
