//! Keys and values as bytes, and their compressibility by the codecs.

use std::collections::BTreeMap;

use cairn_codec::compress::{Compression, Compressor, Decompressor, Format};
use cairn_codec::lz4::{self, Lz4Compressor};
use cairn_sim::hardware::Codec;
use cairn_sim::{Config, layout};
use cairn_vfs::{Clock, SystemClock};
use cairn_vfs::{Rng, SeededRng};

use crate::core::error::{Error, Result};

/// Values are taken from a buffer of this many bytes.
const STRETCH_BYTES: usize = 4 << 20;

/// Compressible values consist of pieces of this many bytes. The first half of a piece is random,
/// and the second half repeats it.
const PIECE_BYTES: usize = 100;

/// Number of blocks on which a codec is measured.
const TRIED_BLOCKS: usize = 400;

/// Makes keys and values.
#[derive(Debug, Clone)]
pub struct Data {
    stretch: Vec<u8>,
    value_bytes: usize,
    key_bytes: usize,
    next: usize,
}

impl Data {
    /// Creates the data for a configuration: decimal keys, random values without compression, and
    /// values that compress to about half with compression.
    pub fn new(config: &Config) -> Result<Data> {
        let (key_bytes, value_bytes) =
            (config.workload.key_bytes as usize, config.workload.value_bytes as usize);
        if !(12..=255).contains(&key_bytes) || config.workload.key_radix != 10 {
            return Err(Error::invalid("validation takes decimal keys of 12 to 255 bytes".to_owned()));
        }
        let options = &config.options;
        let compresses = options.compression != cairn_sim::options::Compression::None
            || !options.compression_per_level.is_empty();
        let mut rng = SeededRng::new(0xda7a);
        let mut stretch = Vec::with_capacity(STRETCH_BYTES + value_bytes);
        while stretch.len() < STRETCH_BYTES + value_bytes {
            let from = stretch.len();
            let random = if compresses { PIECE_BYTES / 2 } else { PIECE_BYTES };
            while stretch.len() < from + random {
                stretch.extend_from_slice(&rng.next_u64().to_le_bytes());
            }
            stretch.truncate(from + random);
            if compresses {
                stretch.extend_from_within(from..from + random);
            }
        }
        Ok(Data { stretch, value_bytes, key_bytes, next: 0 })
    }

    /// Writes the key of an id to `out`.
    pub fn key(&self, id: u32, out: &mut Vec<u8>) {
        use std::io::Write;
        out.clear();
        // Writing to memory cannot fail.
        let _ = write!(out, "{id:0width$}", width = self.key_bytes);
    }

    /// Returns the next value. Values differ from each other, like those of a real workload.
    pub fn value(&mut self) -> &[u8] {
        let from = self.next % STRETCH_BYTES;
        self.next += self.value_bytes + 7;
        self.stretch.get(from..from + self.value_bytes).unwrap_or(&[])
    }
}

/// Returns data blocks as in a table of this workload.
fn blocks(config: &Config, data: &Data) -> Vec<Vec<u8>> {
    let bytes = layout::entry_bytes(&config.workload, &config.options, 1.0, 0.0);
    let mut data = data.clone();
    let mut key = Vec::new();
    let mut id = 0;
    (0..TRIED_BLOCKS)
        .map(|_| {
            let mut block = Vec::new();
            for at in 0..bytes.per_block as u32 {
                data.key(id, &mut key);
                id += 1;
                // The form after prefix compression: the first key in full, only the end of the
                // others; sequence number and lengths.
                let from = if at % 16 == 0 { 0 } else { key.len() - 2 };
                block.extend_from_slice(&[from as u8, 10, 0xe8]);
                block.extend_from_slice(key.get(from..).unwrap_or(&[]));
                block.extend_from_slice(&((u64::from(id) * 77) << 8).to_le_bytes());
                block.extend_from_slice(data.value());
                // Neighbours in a table were written far apart, so no piece continues from one to
                // the next.
                data.next += 37 * data.value_bytes;
            }
            block
        })
        .collect()
}

/// A codec with both directions.
enum Tool {
    Lz4(Lz4Compressor),
    Other(Compressor, Box<Decompressor>),
}

impl Tool {
    fn all() -> cairn_codec::Result<[(&'static str, Tool); 3]> {
        let other = |compression| {
            cairn_codec::Result::Ok(Tool::Other(Compressor::new(compression)?, Box::new(Decompressor::new())))
        };
        Ok([
            ("snappy", other(Compression::Snappy)?),
            ("lz4", Tool::Lz4(Lz4Compressor::new())),
            ("zstd", other(Compression::Zstd { level: 3 })?),
        ])
    }

    fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> cairn_codec::Result<usize> {
        match self {
            Tool::Lz4(compressor) => compressor.compress(input, out),
            Tool::Other(compressor, _) => compressor.compress(input, out),
        }
    }

    fn decompress(&mut self, input: &[u8], out: &mut [u8]) -> cairn_codec::Result<usize> {
        match self {
            Tool::Lz4(_) => lz4::decompress(input, out),
            Tool::Other(compressor, decompressor) => {
                let format: Format = compressor.format();
                decompressor.decompress(format, input, out)
            }
        }
    }
}

/// Returns the configured codecs with their ratios measured on the blocks of this workload. Speeds
/// stay as configured.
pub(super) fn codec_ratios(config: &Config, data: &Data) -> Result<BTreeMap<String, Codec>> {
    let mut known = config.hardware.codecs.clone();
    for (name, codec) in measure_codecs(config, data)? {
        known.entry(name).and_modify(|known| known.ratio = codec.ratio).or_insert(codec);
    }
    Ok(known)
}

/// Measures ratios and speeds of the codecs on the blocks of this workload, on one core of this
/// machine.
pub fn measure_codecs(config: &Config, data: &Data) -> Result<BTreeMap<String, Codec>> {
    let blocks = blocks(config, data);
    let fail = |error: cairn_codec::Error| Error::invalid(format!("a codec failed: {error}"));
    let clock = SystemClock::new();
    let mut measured = BTreeMap::new();
    for (name, mut tool) in Tool::all().map_err(fail)? {
        let (mut before, mut after, mut packed) = (0usize, 0usize, Vec::new());
        let mut pieces = Vec::new();
        let start = clock.now();
        for block in &blocks {
            let length = tool.compress(block, &mut packed).map_err(fail)?;
            before += block.len();
            after += length;
            pieces.push(length);
        }
        let packing = (clock.now() - start).as_secs_f64();
        let mut plain = vec![0; blocks.iter().map(Vec::len).max().unwrap_or(0)];
        let (start, mut from) = (clock.now(), 0);
        for (block, length) in blocks.iter().zip(&pieces) {
            let (input, output) = (packed.get(from..from + length), plain.get_mut(..block.len()));
            if let (Some(input), Some(output)) = (input, output) {
                tool.decompress(input, output).map_err(fail)?;
            }
            from += length;
        }
        let unpacking = (clock.now() - start).as_secs_f64();
        let speed = |secs: f64| (before as f64 / secs.max(1e-9) / 1e6).clamp(0.01, 1e6);
        let ratio = (after as f64 / before.max(1) as f64).clamp(0.01, 2.0);
        let codec =
            Codec { ratio, compress_mb_per_sec: speed(packing), decompress_mb_per_sec: speed(unpacking) };
        measured.insert(name.to_owned(), codec);
    }
    Ok(measured)
}
