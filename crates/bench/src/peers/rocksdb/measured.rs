//! RocksDB as the reference for validating the simulator: opened with an options string, and read
//! for its own statistics.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cairn_sim::Config;
use cairn_sim::import::rocksdb_string;
use cairn_vfs::{Clock, Fs, StdFs, SystemClock};

use super::ffi::Opaque;
use super::measured_ffi::Api;
use super::{fail, library_path, version_of};
use crate::core::error::Result;
use crate::stores::measured::{Level, MeasuredLibrary, MeasuredStore, Totals};

/// Interval between checks of background work.
const POLL: Duration = Duration::from_micros(500);

/// Number of checks without running work after which pending work counts as stuck.
const QUIET_POLLS: u32 = 60;

/// A check that takes this many times its interval shows that the machine is busy, and is not
/// evidence about the store.
const BUSY_MACHINE: u32 = 3;

/// Number of checks after which the store counts as idle even on the busiest machine.
const POLLS_MAX: u32 = 400;

/// A loaded RocksDB library.
#[derive(Debug, Clone)]
pub struct Library {
    api: Arc<Api>,
    path: PathBuf,
}

impl Library {
    /// Loads the library: `path` if given; else `CAIRN_ROCKSDB_LIB`; else Debian's, by the names in
    /// its packages; else that of the setup script.
    ///
    /// Errors: none of them exists.
    pub fn find(path: Option<&Path>) -> Result<Library> {
        if let Some(path) = path {
            let api = Api::load(path.as_os_str())
                .map_err(|error| fail(format!("{} cannot be loaded: {error}", path.display())))?;
            return Ok(Library { api, path: path.to_owned() });
        }
        let mut names: Vec<PathBuf> = Vec::new();
        if std::env::var_os("CAIRN_ROCKSDB_LIB").is_none() {
            names.extend(["librocksdb.so.7.8", "librocksdb.so.8.9", "librocksdb.so.9.10"].map(PathBuf::from));
        }
        names.push(library_path());
        for path in names {
            let is_name = path.components().count() == 1;
            if !is_name && !StdFs::new().exists(&path)? {
                continue;
            }
            if let Ok(api) = Api::load(path.as_os_str()) {
                return Ok(Library { api, path });
            }
        }
        Err(fail(
            "no library found: install Debian's librocksdb, run `scripts/setup peers` in a clone of Cairn, or set CAIRN_ROCKSDB_LIB",
        ))
    }

    /// Returns the path or name of the library.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl MeasuredLibrary for Library {
    fn open(&self, dir: &Path, config: &Config, fills: bool, logs: bool) -> Result<Box<dyn MeasuredStore>> {
        let mut text = rocksdb_string(&config.options).map_err(fail)?;
        if !fills {
            text += "write_buffer_size=1073741824;max_write_buffer_number=4;";
        }
        text += "stats_dump_period_sec=0;stats_persist_period_sec=0;";
        let text = CString::new(text).map_err(fail)?;
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).map_err(fail)?;
        let api = self.api.clone();
        let mut error = ptr::null_mut();
        // SAFETY: constructors without preconditions, setters on the live objects they made,
        // zero-terminated texts and an out-pointer for the error. Options are freed when the store
        // is dropped, because its statistics are read through them.
        unsafe {
            let base = (api.options_create)();
            let options = (api.options_create)();
            (api.get_options_from_string)(base, text.as_ptr(), options, &mut error);
            (api.options_destroy)(base);
            if let Err(failure) = api.check(error) {
                (api.options_destroy)(options);
                return Err(failure);
            }
            (api.options_set_create_if_missing)(options, 1);
            (api.options_set_max_open_files)(options, -1);
            (api.options_enable_statistics)(options);
            let db = (api.open)(options, path.as_ptr(), &mut error);
            if let Err(failure) = api.check(error) {
                (api.options_destroy)(options);
                return Err(failure);
            }
            let (read, write) = ((api.readoptions_create)(), (api.writeoptions_create)());
            (api.writeoptions_disable_WAL)(write, i32::from(!logs));
            let version = version_of(dir)?.unwrap_or_else(|| "of unknown version".to_owned());
            Ok(Box::new(RocksDbMeasured { api, db, options, read, write, version }))
        }
    }
}

/// An open store.
#[derive(Debug)]
pub struct RocksDbMeasured {
    api: Arc<Api>,
    db: Opaque,
    options: Opaque,
    read: Opaque,
    write: Opaque,
    version: String,
}

impl Drop for RocksDbMeasured {
    fn drop(&mut self) {
        // SAFETY: made in `open`, freed once, the store first.
        unsafe {
            (self.api.readoptions_destroy)(self.read);
            (self.api.writeoptions_destroy)(self.write);
            (self.api.close)(self.db);
            (self.api.options_destroy)(self.options);
        }
    }
}

impl RocksDbMeasured {
    fn property(&self, name: &CStr) -> u64 {
        let mut value = 0;
        // SAFETY: an open store, a zero-terminated name, an out-pointer for the value.
        let unknown = unsafe { (self.api.property_int)(self.db, name.as_ptr(), &mut value) };
        if unknown == 0 { value } else { 0 }
    }

    fn is_busy(&self) -> bool {
        let counts = [
            c"rocksdb.mem-table-flush-pending",
            c"rocksdb.num-running-flushes",
            c"rocksdb.num-running-compactions",
        ];
        counts.into_iter().any(|name| self.property(name) > 0)
    }

    fn statistics(&self) -> String {
        // SAFETY: live options with statistics; the text is zero-terminated, owned by the caller,
        // and freed once.
        unsafe {
            let text = (self.api.options_statistics_get_string)(self.options);
            if text.is_null() {
                return String::new();
            }
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.api.free)(text.cast());
            copy
        }
    }
}

/// Returns the count of a ticker from the text of the statistics.
fn ticker(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
}

impl MeasuredStore for RocksDbMeasured {
    fn version(&self) -> String {
        format!("RocksDB {}", self.version)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: an open store, its options, bytes of these lengths, an out-pointer for the error.
        unsafe {
            let (start, data) = (key.as_ptr().cast(), value.as_ptr().cast());
            (self.api.put)(self.db, self.write, start, key.len(), data, value.len(), &mut error);
        }
        self.api.check(error)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: as above.
        unsafe { (self.api.delete)(self.db, self.write, key.as_ptr().cast(), key.len(), &mut error) };
        self.api.check(error)
    }

    fn get(&mut self, key: &[u8]) -> Result<bool> {
        let mut error = ptr::null_mut();
        // SAFETY: as above; a slice that was returned is freed once.
        let found = unsafe {
            let slice = (self.api.get_pinned)(self.db, self.read, key.as_ptr().cast(), key.len(), &mut error);
            let found = !slice.is_null();
            if found {
                (self.api.pinnableslice_destroy)(slice);
            }
            found
        };
        self.api.check(error)?;
        Ok(found)
    }

    fn flush(&mut self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: an open store, options made and freed here, an out-pointer for the error.
        unsafe {
            let options = (self.api.flushoptions_create)();
            (self.api.flushoptions_set_wait)(options, 1);
            (self.api.flush)(self.db, options, &mut error);
            (self.api.flushoptions_destroy)(options);
        }
        self.api.check(error)
    }

    fn settle(&mut self) -> Result<()> {
        let clock = SystemClock::new();
        // For a moment between a flush and the compaction that it triggers, neither is running. A
        // compaction may also stay pending forever: a universal tree may have enough runs but none
        // that can be merged.
        let (mut quiet, mut idle) = (0, 0);
        while quiet < QUIET_POLLS && idle < POLLS_MAX {
            let start = clock.now();
            let is_due = self.property(c"rocksdb.compaction-pending") > 0;
            let is_busy = self.is_busy();
            clock.sleep(POLL);
            let is_starved = clock.now() - start > POLL * BUSY_MACHINE;
            (quiet, idle) = match (is_busy, is_due) {
                (true, _) => (0, 0),
                (false, true) => (quiet + u32::from(!is_starved), idle + 1),
                (false, false) => (quiet + QUIET_POLLS / 2, idle + 1),
            };
        }
        Ok(())
    }

    fn totals(&self) -> Totals {
        let text = self.statistics();
        let of = |name: &str| ticker(&text, name);
        Totals {
            flush_bytes: of("rocksdb.flush.write.bytes"),
            compact_read_bytes: of("rocksdb.compact.read.bytes"),
            compact_write_bytes: of("rocksdb.compact.write.bytes"),
            filters_skipping: of("rocksdb.bloom.filter.useful"),
            block_hits: of("rocksdb.block.cache.data.hit"),
            block_misses: of("rocksdb.block.cache.data.miss"),
            stall_secs: of("rocksdb.stall.micros") * 1e-6,
        }
    }

    fn levels(&self) -> Vec<Level> {
        let mut levels: Vec<Level> = Vec::new();
        // SAFETY: an open store; the list is freed once, and indices are below its count.
        unsafe {
            let files = (self.api.livefiles)(self.db);
            for at in 0..(self.api.livefiles_count)(files) {
                let level = (self.api.livefiles_level)(files, at).max(0) as usize;
                if levels.len() <= level {
                    levels.resize(level + 1, Level::default());
                }
                if let Some(slot) = levels.get_mut(level) {
                    slot.files += 1;
                    slot.bytes += (self.api.livefiles_size)(files, at) as u64;
                }
            }
            (self.api.livefiles_destroy)(files);
        }
        levels
    }
}
