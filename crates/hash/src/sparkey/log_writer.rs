//! Writes a log: appends records, and commits them by rewriting the header.
//!
//! ```text
//! flush:  records -> file   [sync]   header -> file   [sync]
//! ```
//!
//! Only the bytes before the header's `data_end` count. With [`LogOptions::sync`] the records are
//! on stable storage before the header that counts them is written. A power loss therefore leaves
//! the old header or the new one, and either is correct. The header is written by one call and lies
//! within one sector; [`log_header`](super::log_header) states the assumption behind this.
//! Without `sync`, a crash of the process is harmless, but a power loss may keep the new header and
//! lose the records. Sparkey has no checksum by which a reader could detect that.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::compress::{Compression, Format};
use cairn_vfs::{
    AppendWriter, AtomicFile, ErrorKind, File, Fs, OpenOptions, Operation, Rng, StdFs, SystemRng, ensure,
};

use super::block_writer::BlockWriter;
use super::log_header::{KEY_BYTES_MAX, LOG_HEADER_BYTES, LogHeader};
use super::log_lock::{LogLock, lock, open_locked};
use super::options::LogOptions;
use super::paths::{index_path, log_path};
use super::record::{RecordHead, RecordKind};
use crate::{Error, Result};

/// Records are passed to the kernel in pieces of this size.
const BUFFER_BYTES: usize = 1 << 20;

/// A streamed value is copied through a buffer of this size.
const COPY_BYTES: usize = 64 << 10;

/// Appends to a log. A log has one writer at a time; an advisory lock enforces this among Cairn's
/// own writers. Readers take no lock.
///
/// After a failed write, every further call returns [`Error::Poisoned`], because it is unknown how
/// much reached the file. The records of the last successful flush are safe; open the log again
/// with [`LogWriter::append`]. Dropping a writer loses the records that were not flushed.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    file: Arc<dyn File>,
    header: LogHeader,
    out: AppendWriter,
    /// `None` in an uncompressed log.
    blocks: Option<BlockWriter>,
    sync: bool,
    poisoned: bool,
}

impl LogWriter {
    /// Creates an empty log at `path` (`.spl` is appended if missing) on the real file system.
    ///
    /// A crash can leave a file without a header at the path. Readers refuse such a file, and the
    /// next `create` reuses it. With [`LogOptions::replace`] the old log and index are removed at
    /// the start, even if the creation then fails.
    ///
    /// Errors: `Conflict` if a log exists and [`LogOptions::replace`] is off; `Busy` if another
    /// writer has the log open or builds the index that would be replaced; [`Error::Invalid`] for
    /// options out of range. A log that could not be created is removed.
    pub fn create(path: impl AsRef<Path>, options: &LogOptions) -> Result<LogWriter> {
        LogWriter::create_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path, options)
    }

    /// Does the same as [`LogWriter::create`] on any file system.
    pub fn create_in(fs: &Arc<dyn Fs>, path: impl AsRef<Path>, options: &LogOptions) -> Result<LogWriter> {
        options.check()?;
        let path = log_path(path);
        if options.replace {
            remove_old(fs, &path)?;
        }
        let file = new_file(fs, &path)?;
        let created = LogWriter::on_new_file(Arc::clone(&file), options).and_then(|writer| {
            if options.sync {
                // ORDER: an empty log is a valid log, so its name becomes durable only together
                // with its header.
                writer.file.sync_data()?;
                fs.sync_parent(&path)?;
            }
            Ok(writer)
        });
        if created.is_err() {
            // Best effort: a file that stays has no header, and the next `create` reuses it. ORDER:
            // before the lock is released, because after that the name could refer to a log that
            // another writer has begun.
            let _ = fs.remove(&path);
        }
        drop(file);
        created
    }

    /// Opens the log at `path` for appending, on the real file system. Truncates the bytes that an
    /// interrupted writer left after the last commit. Of the options only [`LogOptions::sync`] and
    /// the zstd level are used; the others are determined by the log.
    ///
    /// Errors: `NotFound`; `Busy` if another writer has the log open; [`Error::Corruption`] for a
    /// damaged header.
    pub fn append(path: impl AsRef<Path>, options: &LogOptions) -> Result<LogWriter> {
        LogWriter::append_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path, options)
    }

    /// Does the same as [`LogWriter::append`] on any file system.
    pub fn append_in(fs: &Arc<dyn Fs>, path: impl AsRef<Path>, options: &LogOptions) -> Result<LogWriter> {
        let path = log_path(path);
        let file = open_locked(fs, &path)?;
        let mut header = LogHeader::read(&*file)?;
        let compression = match (header.compression, options.compression) {
            (Format::None, _) => Compression::None,
            (Format::Snappy, _) => Compression::Snappy,
            (Format::Zstd, Compression::Zstd { level }) => Compression::Zstd { level },
            (Format::Zstd, _) => Compression::ZSTD,
        };
        if header.compression == Format::None {
            // Java writes 1 here. From that, the C library derives an address layout that Java on
            // newer machines cannot read. All implementations accept 0.
            header.block_entries_max = 0;
        }
        if file.len()? > header.data_end {
            file.set_len(header.data_end)?;
        }
        if options.sync {
            // The creator of the log may not have synced its name. If the name is lost, synced
            // records are lost too.
            fs.sync_parent(&path)?;
        }
        LogWriter::with_header(file, header, compression, options.sync)
    }

    /// Creates an empty log in an empty file that the caller owns exclusively.
    pub(super) fn on_new_file(file: Arc<dyn File>, options: &LogOptions) -> Result<LogWriter> {
        options.check()?;
        let identifier = match options.identifier {
            Some(identifier) => identifier,
            None => random_u32(file.path())?,
        };
        let compression = options.compression;
        let block_bytes = if compression == Compression::None { 0 } else { options.block_bytes };
        let header = LogHeader::new(identifier, compression.format(), block_bytes);
        let writer = LogWriter::with_header(file, header, compression, options.sync)?;
        writer.file.write_all_at(&header.encode(), 0)?;
        Ok(writer)
    }

    fn with_header(
        file: Arc<dyn File>,
        header: LogHeader,
        compression: Compression,
        sync: bool,
    ) -> Result<LogWriter> {
        debug_assert_eq!(compression.format(), header.compression);
        let blocks = match compression {
            Compression::None => None,
            _ => Some(BlockWriter::new(compression, header.block_bytes, header.block_entries_max)?),
        };
        let path = file.path().to_owned();
        let out = AppendWriter::new(Arc::clone(&file), header.data_end, BUFFER_BYTES);
        Ok(LogWriter { path, file, header, out, blocks, sync, poisoned: false })
    }

    /// Adds `key` with `value`; an older value of `key` becomes garbage.
    ///
    /// Errors: [`Error::Invalid`] for a key of 2 GiB, which other readers could not read; otherwise
    /// those of any write.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let head = self.put_head(key, value.len() as u64)?;
        self.write(|writer| {
            writer.begin(&head, key)?;
            writer.add(value)?;
            writer.end(&head)
        })
    }

    /// Adds `key` with a value of exactly `value_bytes` bytes, which is read from `value` while it
    /// is written.
    ///
    /// Errors: as for [`LogWriter::put`]. If `value` fails or ends early, half a record has been
    /// written and the writer is poisoned; the records flushed before are safe.
    pub fn put_stream(&mut self, key: &[u8], value_bytes: u64, value: &mut dyn Read) -> Result<()> {
        let head = self.put_head(key, value_bytes)?;
        self.write(|writer| {
            writer.begin(&head, key)?;
            let mut left = value_bytes;
            let mut buffer = vec![0; COPY_BYTES.min(usize::try_from(left).unwrap_or(COPY_BYTES))];
            while left > 0 {
                let room = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let count = match value.read(&mut buffer[..room]) {
                    Ok(0) => {
                        return Err(Error::invalid(format!(
                            "the value ended {left} bytes short of its {value_bytes}"
                        )));
                    }
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        // A value read from another store carries the error of that store.
                        return Err(error.downcast::<Error>().unwrap_or_else(|error| {
                            Error::invalid(format!("the value could not be read: {error}"))
                        }));
                    }
                };
                writer.add(&buffer[..count])?;
                left -= count as u64;
            }
            writer.end(&head)
        })
    }

    /// Removes `key`. Returns whether a record was written. A key that is longer than any that was
    /// put cannot exist, and a record of it would prevent sparkey-java from reading the log.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.check()?;
        if key.len() as u64 > self.header.key_bytes_max {
            return Ok(false);
        }
        let head = RecordHead::delete(key.len() as u64);
        self.write(|writer| {
            writer.begin(&head, key)?;
            writer.end(&head)
        })?;
        Ok(true)
    }

    /// Commits the added records: readers that open the log after this see them. In a compressed
    /// log this ends a block.
    ///
    /// Cost: two syncs of the file with [`LogOptions::sync`].
    pub fn flush(&mut self) -> Result<()> {
        self.write(|writer| {
            if let Some(blocks) = &mut writer.blocks {
                blocks.close_block(&mut writer.out)?;
                writer.header.block_entries_max = blocks.entries_max();
            }
            // ORDER: the records, then the header that counts them; with `sync`, each on stable
            // storage before the next step. In the other order, a power loss could leave a header
            // that counts lost records.
            writer.out.flush()?;
            if writer.sync {
                writer.file.sync_data()?;
            }
            let end = writer.out.position();
            ensure!(
                end >= writer.header.data_end,
                "the log shrinks from {} to {end}",
                writer.header.data_end
            );
            writer.header.data_end = end;
            debug_assert!(
                writer.header.check(&writer.path, end).is_ok(),
                "a reader accepts the log: {:?}",
                writer.header
            );
            debug_assert_eq!(
                LogHeader::decode(&writer.path, &writer.header.encode(), end).ok(),
                Some(writer.header),
                "decoded as it is encoded"
            );
            writer.file.write_all_at(&writer.header.encode(), 0)?;
            if writer.sync {
                writer.file.sync_data()?;
            }
            Ok(())
        })
    }

    /// Flushes, and releases the lock.
    pub fn close(mut self) -> Result<()> {
        self.flush()
    }

    /// Returns the header as the next flush will write it, except for `data_end` and
    /// `block_entries_max`, which are those of the last flush.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// Returns the path of the log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn put_head(&self, key: &[u8], value_bytes: u64) -> Result<RecordHead> {
        self.check()?;
        let key_bytes = key.len() as u64;
        if key_bytes > KEY_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a key has {key_bytes} bytes, expected at most {KEY_BYTES_MAX}"
            )));
        }
        let head = RecordHead::put(key_bytes, value_bytes);
        let end = self.out.position().checked_add(head.record_bytes());
        if end.is_none_or(|end| end > i64::MAX as u64) {
            return Err(Error::invalid(format!("a value of {value_bytes} bytes does not fit into a file")));
        }
        Ok(head)
    }

    fn begin(&mut self, head: &RecordHead, key: &[u8]) -> Result<()> {
        match &mut self.blocks {
            Some(blocks) => {
                blocks.begin(head, &mut self.out)?;
                blocks.add(key, &mut self.out)
            }
            None => {
                let mut bytes = [0; RecordHead::BYTES_MAX];
                head.encode(&mut bytes);
                self.out.write_all(&bytes[..head.head_bytes])?;
                Ok(self.out.write_all(key)?)
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.blocks {
            Some(blocks) => blocks.add(bytes, &mut self.out),
            None => Ok(self.out.write_all(bytes)?),
        }
    }

    /// Ends a record and counts it.
    fn end(&mut self, head: &RecordHead) -> Result<()> {
        if let Some(blocks) = &mut self.blocks {
            blocks.end(&mut self.out)?;
        }
        let header = &mut self.header;
        match head.kind {
            RecordKind::Put => {
                header.puts += 1;
                header.put_bytes += head.record_bytes();
                header.key_bytes_max = header.key_bytes_max.max(head.key_bytes);
                header.value_bytes_max = header.value_bytes_max.max(head.value_bytes);
            }
            RecordKind::Delete => {
                header.deletes += 1;
                header.delete_bytes += head.record_bytes();
            }
        }
        debug_assert!(
            self.blocks.is_some()
                || LOG_HEADER_BYTES as u64 + header.put_bytes + header.delete_bytes == self.out.position(),
            "an uncompressed log has its records and nothing else: {header:?}"
        );
        Ok(())
    }

    /// Runs one step. After the first error, no further step is run.
    fn write(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.check()?;
        let done = step(self);
        self.poisoned = done.is_err();
        done
    }

    fn check(&self) -> Result<()> {
        if self.poisoned { Err(Error::Poisoned { file: self.path.clone() }) } else { Ok(()) }
    }
}

/// Opens and locks a file at `path` that holds no log yet: a new file, or the remains of an
/// interrupted creation.
fn new_file(fs: &Arc<dyn Fs>, path: &Path) -> Result<Arc<dyn File>> {
    let file: Arc<dyn File> = Arc::from(fs.open(path, OpenOptions::create())?);
    let mut bytes = [0; LOG_HEADER_BYTES];
    let len = file.len()?;
    if len <= LOG_HEADER_BYTES as u64 {
        let file = lock(fs, file)?;
        // Read again under the lock: the creator may have written the header meanwhile.
        let len = file.len()?.min(LOG_HEADER_BYTES as u64 + 1) as usize;
        if let Some(bytes) = bytes.get_mut(..len) {
            file.read_exact_at(bytes, 0)?;
            // A crash may keep the length of the header and lose its bytes. A valid log has at
            // least its magic number.
            if bytes.iter().all(|&byte| byte == 0) {
                return Ok(file);
            }
        }
    }
    let source = io::Error::new(io::ErrorKind::AlreadyExists, "a log already exists");
    Err(cairn_vfs::Error::new(Operation::Open, path, source).into())
}

/// Removes a log that is to be replaced. Its index is removed first, because an index without its
/// log is useless but never wrong.
fn remove_old(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    let _lock = LogLock::take(fs, path)?;
    // Another process that builds an index of the old log would publish it under the name of the
    // new log's index.
    let _index_lock = AtomicFile::create(fs, &index_path(path))?;
    for old in [index_path(path), path.to_owned()] {
        match fs.remove(&old) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Returns a random number for an identifier or a seed.
pub(super) fn random_u32(path: &Path) -> Result<u32> {
    let mut rng = SystemRng::new().map_err(|source| cairn_vfs::Error::new(Operation::Open, path, source))?;
    Ok(rng.next_u64() as u32)
}
