//! The second half of a build: sorts partitions in parallel and writes them in order, followed by
//! the other sections.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use cairn_codec::checksum::xxh3_64;
use cairn_codec::compress::{CompressionDictionary, Dictionary};
use cairn_vfs::{AppendWriter, Bug, File, Fs, ensure};

use super::build::Stage;
use super::compression::ValueCompressor;
use super::format::{Header, LINE_BYTES, PAGE_BYTES, page_align};
use super::ingest::{Sealed, temporary_file};
use super::layout::{PartitionLayout, Shape, lay_out};
use super::options::BuildOptions;
use super::pages::build_tree;
use super::place::Partition;
use super::running_sum::RunningSum;
use crate::{Error, Result};

const WRITE_BUFFER_BYTES: usize = 1 << 20;
const COPY_BYTES: usize = 1 << 20;
/// The memory for index lines is the total divided by this.
const SPOOL_SHARE: u64 = 4;

/// Appends to the table file and computes the checksum of every page.
#[derive(Debug)]
pub(crate) struct PageWriter {
    out: AppendWriter,
    /// The page that is being filled.
    page: Vec<u8>,
    sums: Vec<u64>,
}

impl PageWriter {
    /// Starts after the header page, which [`PageWriter::finish`] writes.
    pub fn new(file: Arc<dyn File>) -> PageWriter {
        let out = AppendWriter::new(file, PAGE_BYTES, WRITE_BUFFER_BYTES);
        PageWriter { out, page: Vec::with_capacity(PAGE_BYTES as usize), sums: Vec::new() }
    }

    /// Returns the file offset of the next byte.
    pub fn position(&self) -> u64 {
        self.out.position()
    }

    /// Appends `bytes`.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        if !self.page.is_empty() {
            let (head, rest) = bytes.split_at(bytes.len().min(PAGE_BYTES as usize - self.page.len()));
            self.page.extend_from_slice(head);
            bytes = rest;
            if self.page.len() as u64 == PAGE_BYTES {
                self.sums.push(xxh3_64(&self.page));
                self.page.clear();
            }
        }
        let pages = bytes.chunks_exact(PAGE_BYTES as usize);
        self.page.extend_from_slice(pages.remainder());
        self.sums.extend(pages.map(xxh3_64));
        debug_assert_eq!(self.page.len() as u64, self.position() % PAGE_BYTES);
        debug_assert_eq!(self.sums.len() as u64, self.position() / PAGE_BYTES - 1, "one for each page");
        Ok(())
    }

    /// Pads the page with zeros and returns the offset of the next one.
    pub fn pad(&mut self) -> Result<u64> {
        let zeros = page_align(self.position()) - self.position();
        self.write_all(&vec![0; zeros as usize])?;
        debug_assert_eq!(self.position() % PAGE_BYTES, 0);
        Ok(self.position())
    }

    /// Writes the checksum pages. Returns their offset, the checksum of the topmost page, and their
    /// end.
    fn write_sums(&mut self) -> Result<(u64, u64, u64)> {
        let start = self.pad()?;
        let pages = self.sums.len() as u64;
        ensure!(start == (pages + 1) * PAGE_BYTES, "{pages} checksums of the pages before {start}");
        let root_sum = build_tree(mem::take(&mut self.sums), |page| Ok(self.out.write_all(page)?))?;
        let end = self.position();
        debug_assert!(end > start && end.is_multiple_of(PAGE_BYTES), "checksums in {start}..{end}");
        Ok((start, root_sum, end))
    }

    /// Writes the buffered bytes, and then the header.
    pub fn finish(self, header: &Header) -> Result<()> {
        let end = self.position();
        let file = self.out.into_file()?;
        // The checks of a reader, before the file is published rather than at its first open.
        if let Err(error) = header.check(file.path(), end) {
            return Err(Bug::new(error.to_string()).into());
        }
        debug_assert!(
            Header::decode(file.path(), &header.encode(), end).is_ok_and(|read| read == *header),
            "decoded as it is encoded: {header:?}"
        );
        // ORDER: no sync is needed before the header, because the file is renamed to its final name
        // only after all of it is synced.
        file.write_all_at(&header.encode(), 0)?;
        Ok(())
    }
}

/// The inputs of the second half.
#[derive(Debug)]
pub(crate) struct Assembly<'a> {
    pub fs: &'a Arc<dyn Fs>,
    pub spill_path: PathBuf,
    pub sealed: &'a Sealed,
    pub shape: Shape,
    pub options: &'a BuildOptions,
    pub dictionary: Option<&'a (Dictionary, CompressionDictionary)>,
}

/// The index lines until they are written after the data: in memory, or beyond the limit in a spill
/// file.
#[derive(Debug)]
struct IndexSpool {
    memory: Vec<u8>,
    memory_bytes_max: usize,
    file: Option<AppendWriter>,
    /// The checksum of the bytes in the file.
    sum: RunningSum,
}

impl Assembly<'_> {
    /// Writes all sections and returns the complete header.
    pub fn write(
        &self,
        out: &mut PageWriter,
        mut header: Header,
        progress: &mut dyn FnMut(Stage, u64, u64),
    ) -> Result<Header> {
        header.data_offset = out.pad()?;
        header.tombstones = 0;
        let mut spool = IndexSpool {
            memory: Vec::new(),
            memory_bytes_max: (self.options.memory_bytes / SPOOL_SHARE) as usize,
            file: None,
            sum: RunningSum::default(),
        };
        let mut partitions = Vec::new();
        let total = header.partitions();
        self.for_each_partition(&mut |layout| {
            let lines = layout.lines.len() as u64 / LINE_BYTES;
            ensure!(lines >= u64::from(layout.home_lines), "{lines} lines of {}", layout.home_lines);
            partitions.push(Partition {
                first_line: header.index_lines,
                home_lines: layout.home_lines,
                tail_lines: (lines - u64::from(layout.home_lines)) as u32,
                data_start: out.position(),
                data_bytes: layout.data.len() as u64,
            });
            header.index_lines += lines;
            header.entries += layout.entries;
            header.tombstones += layout.tombstones;
            header.key_bytes += layout.key_bytes;
            header.value_bytes += layout.value_bytes;
            header.key_bytes_max = header.key_bytes_max.max(layout.key_bytes_max);
            header.value_bytes_max = header.value_bytes_max.max(layout.value_bytes_max);
            out.write_all(&layout.data)?;
            spool.push(self, &layout.lines)?;
            progress(Stage::Sort, partitions.len() as u64, total);
            Ok(())
        })?;
        ensure!(partitions.len() as u64 == total, "{} partitions of {total}", partitions.len());
        debug_assert!(
            partitions.is_sorted_by(|a, b| a.data_start + a.data_bytes == b.data_start),
            "the data of a partition begins where that of the one before it ends"
        );
        ensure!(header.entries <= header.puts, "{} entries of {} puts", header.entries, header.puts);
        progress(Stage::Publish, 0, 1);
        header.data_bytes = out.position() - header.data_offset;
        header.index_offset = out.pad()?;
        spool.copy_to(out, &self.spill_path)?;
        let index_end = header.index_offset + header.index_lines * LINE_BYTES;
        ensure!(out.position() == index_end, "index lines end at {}, not {index_end}", out.position());
        header.partitions_offset = out.pad()?;
        for partition in &partitions {
            out.write_all(&partition.encode())?;
        }
        header.dictionary_offset = out.pad()?;
        if let Some((dictionary, _)) = self.dictionary {
            header.dictionary_bytes = dictionary.as_bytes().len() as u64;
            out.write_all(dictionary.as_bytes())?;
        }
        (header.sums_offset, header.root_sum, header.file_bytes) = out.write_sums()?;
        Ok(header)
    }

    /// Lays out all partitions on several threads and passes them to `take` in order.
    ///
    /// Of `n` threads, thread `t` lays out partitions `t`, `t + n`, `t + 2n`... and has its own
    /// channel with room for one partition. A thread thus holds at most two partitions, however
    /// unequal they are. This bounds the memory.
    fn for_each_partition(&self, take: &mut dyn FnMut(PartitionLayout) -> Result<()>) -> Result<()> {
        let partitions = 1usize << self.shape.partition_bits;
        let threads = self.threads().min(partitions);
        debug_assert!(threads > 0);
        cairn_vfs::thread::scope(|scope| {
            // The receivers are dropped when this closure returns early. Otherwise a worker would
            // wait forever for room in its channel, and the scope for the worker.
            let mut workers = Vec::new();
            for first in 0..threads {
                let (start, started) = mpsc::sync_channel::<usize>(1);
                let (send, receive) = mpsc::sync_channel::<Result<PartitionLayout>>(1);
                let work = move || {
                    // The assignment of partitions depends on the number of threads that could be
                    // started.
                    let Ok(threads) = started.recv() else { return };
                    let mut mine = (first..partitions).step_by(threads);
                    while mine.next().is_some_and(|index| send.send(self.lay_out(index)).is_ok()) {}
                };
                // If the system cannot start more threads, the build is slower, but it does not
                // fail.
                if cairn_vfs::thread::spawn_scoped(scope, "cairn-build", work).is_err() {
                    break;
                }
                workers.push((start, receive));
            }
            if workers.is_empty() {
                return (0..partitions).try_for_each(|index| take(self.lay_out(index)?));
            }
            for (start, _) in &workers {
                let _ = start.send(workers.len());
            }
            for (_, receive) in workers.iter().cycle().take(partitions) {
                let Ok(layout) = receive.recv() else {
                    return Err(Bug::new("a thread of the build has panicked").into());
                };
                take(layout?)?;
            }
            Ok(())
        })
    }

    /// Returns the requested number of threads, or fewer if their partitions would not fit the
    /// memory together.
    fn threads(&self) -> usize {
        // A partition exists as records, as (hash, place) pairs, and as output, while the output of
        // the previous one waits to be written.
        let partition_bytes = self.sealed.bytes_max(self.shape.partition_bits).saturating_mul(4).max(1);
        let spool_bytes = self.options.memory_bytes / SPOOL_SHARE;
        let free = self.options.memory_bytes.saturating_sub(spool_bytes + self.sealed.memory_bytes());
        let fitting = (free / partition_bytes).max(1);
        let threads = self.options.threads.min(fitting.try_into().unwrap_or(usize::MAX));
        debug_assert!((1..=self.options.threads).contains(&threads), "{threads} threads");
        threads
    }

    fn lay_out(&self, index: usize) -> Result<PartitionLayout> {
        debug_assert!(index < 1 << self.shape.partition_bits, "partition {index}");
        let prepared = self.dictionary.map(|(_, prepared)| prepared);
        let mut compressor = ValueCompressor::new(self.options.compression, prepared)?;
        lay_out(&self.sealed.load(index, self.shape.partition_bits)?, self.shape, &mut compressor)
    }
}

impl IndexSpool {
    fn push(&mut self, assembly: &Assembly<'_>, lines: &[u8]) -> Result<()> {
        debug_assert!((lines.len() as u64).is_multiple_of(LINE_BYTES), "{} bytes of lines", lines.len());
        self.memory.extend_from_slice(lines);
        if self.memory.len() > self.memory_bytes_max {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(temporary_file(assembly.fs, &assembly.spill_path)?),
            };
            self.sum.update(&self.memory);
            file.write_all(&self.memory)?;
            self.memory.clear();
        }
        debug_assert!(self.memory.len() <= self.memory_bytes_max, "{} bytes wait", self.memory.len());
        Ok(())
    }

    /// Copies the lines to `out`. Errors: the bytes read back differ from those written; `path`
    /// names the spill file in the error.
    fn copy_to(mut self, out: &mut PageWriter, path: &Path) -> Result<()> {
        if let Some(file) = self.file {
            let bytes = file.position();
            debug_assert!(bytes.is_multiple_of(LINE_BYTES), "{bytes} bytes of lines in the file");
            let file = file.into_file()?;
            let mut piece = vec![0; COPY_BYTES];
            let (mut offset, mut sum) = (0, RunningSum::default());
            while offset < bytes {
                let count = (bytes - offset).min(COPY_BYTES as u64) as usize;
                file.read_exact_at(&mut piece[..count], offset)?;
                sum.update(&piece[..count]);
                out.write_all(&piece[..count])?;
                offset += count as u64;
            }
            debug_assert_eq!(offset, bytes);
            let (found, expected) = (sum.take(), self.sum.take());
            if found != expected {
                let detail = format!(
                    "{bytes} bytes of the temporary file have checksum {found:016x}, expected {expected:016x}"
                );
                return Err(Error::corruption(path, 0, detail));
            }
        }
        out.write_all(&self.memory)
    }
}
