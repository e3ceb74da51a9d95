//! Sparkey's files. They have no checksums, so a wrong value is no finding; a panic or a hang is.

use std::io::Read;
use std::sync::{Arc, OnceLock};

use cairn_hash::sparkey::{
    Compression, Construction, IndexOptions, LogOptions, LogReader, LogWriter, Mode, ReaderOptions,
    SparkeyReader, build_index_in,
};
use cairn_vfs::{Fs, MemFs};

use super::disk;

const LOG: &str = "x.spl";
const INDEX: &str = "x.spi";
/// Bytes after which a stream is cut off: a value may claim any length without having it.
const STREAM_BYTES_MAX: u64 = 1 << 20;

/// An index, over a valid log that it may or may not belong to.
pub fn sparkey_index(data: &[u8]) {
    exercise(&disk(&[(LOG, sound_log()), (INDEX, data)]));
}

/// A log: scanned, indexed in both ways, read through its index.
pub fn sparkey_log(data: &[u8]) {
    let fs = disk(&[(LOG, data)]);
    scan_log(&fs);
    for construction in [Construction::InMemory, Construction::Sorting { memory_bytes: 1 << 16 }] {
        if build_index_in(&fs, LOG, &IndexOptions::default().seed(1).construction(construction)).is_ok() {
            exercise(&fs);
        }
    }
}

/// `length of the log u32 | log | index`.
pub fn sparkey_pair(data: &[u8]) {
    let Some((length, files)) = data.split_first_chunk() else { return };
    let (log, index) = files.split_at(files.len().min(u32::from_le_bytes(*length) as usize));
    exercise(&disk(&[(LOG, log), (INDEX, index)]));
}

/// The log to which the indexes of the corpus belong.
pub fn sound_log() -> &'static [u8] {
    static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let written = (|| {
            let options = LogOptions::default().compression(Compression::None).identifier(7);
            let mut writer = LogWriter::create_in(&fs, LOG, &options)?;
            for n in 0..12 {
                writer.put(format!("key {n}").as_bytes(), format!("value {n}").as_bytes())?;
            }
            writer.delete(b"key 3")?;
            writer.close()?;
            Ok::<_, cairn_hash::Error>(fs.open(LOG.as_ref(), cairn_vfs::OpenOptions::read())?.map()?.to_vec())
        })();
        assert!(written.is_ok(), "a log in memory can be written");
        written.unwrap_or_default()
    })
}

fn scan_log(fs: &Arc<dyn Fs>) {
    let Ok(log) = LogReader::open_in(fs, LOG, Mode::Pread) else { return };
    let mut scan = log.scan();
    while let Ok(Some(mut entry)) = scan.next_entry() {
        let _ = entry.value().map(|value| value.len());
    }
}

/// Calls every operation on a pair of files.
fn exercise(fs: &Arc<dyn Fs>) {
    scan_log(fs);
    for (mode, cache) in [(Mode::Mmap, 1 << 16), (Mode::Pread, 0)] {
        let options = ReaderOptions::default().mode(mode).block_cache_bytes(cache);
        let Ok(reader) = SparkeyReader::open_in(fs, LOG, &options) else { continue };
        let keys: Vec<String> = (0..13).map(|n| format!("key {n}")).chain([String::new()]).collect();
        let mut buffer = Vec::new();
        for key in &keys {
            let found = reader.get(key.as_bytes()).map(|value| value.map(|value| value.into_owned()));
            if let (Ok(found), Ok(present)) = (&found, reader.get_into(key.as_bytes(), &mut buffer)) {
                assert_eq!(found.as_deref(), present.then_some(&buffer[..]), "two ways, one answer");
            }
            if let Ok(Some(stream)) = reader.value_reader(key.as_bytes()) {
                let _ = stream.take(STREAM_BYTES_MAX).read_to_end(&mut buffer);
            }
        }
        let _ = reader.get_many(&keys, |_, _| {});
        let mut scan = reader.scan();
        while let Ok(Some(_)) = scan.next_entry() {}
        let _ = reader.verify();
    }
}
