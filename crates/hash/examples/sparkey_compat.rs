//! Reads and writes Sparkey files for the compatibility suite, which runs it together with
//! Sparkey's own library.
//!
//! ```text
//! sparkey_compat write <base.spl> <none|snappy|zstd> <block> <hash 0|4|8> <seed>
//!                                                         operations in, log and index out
//! sparkey_compat append <base.spl>                        operations in, to the end of a log
//! sparkey_compat index <base.spl> <hash 0|4|8> <seed> <memory|sorting>
//!                                                         indexes an existing log
//! sparkey_compat dump <base.spi>                          live entries to standard output
//! sparkey_compat get <base.spi>                           keys in, values out
//! sparkey_compat verify <base.spi>                        verifies everything
//! ```
//!
//! An operation is `u8` 0 for put and 1 for delete, `u32` key length, `u32` value length, key,
//! value. A key is `u32` length and bytes. An answer is `u32` length and bytes, or 0xffffffff for
//! an absent key. All integers are little-endian. Hash 0 means the automatic width, and seed 0 a
//! random seed.

use std::error::Error;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};

use cairn_hash::sparkey::{
    Compression, Construction, HashWidth, IndexOptions, LogOptions, LogWriter, ReaderOptions, SparkeyReader,
    build_index,
};

type Outcome = Result<(), Box<dyn Error>>;

const USAGE: &str = "usage: sparkey_compat write <base.spl> <none|snappy|zstd> <block> <hash 0|4|8> <seed> \
                     | append <base.spl> | index <base.spl> <hash 0|4|8> <seed> <memory|sorting> \
                     | dump <base.spi> | get <base.spi> | verify <base.spi>";

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", path, compression, block, hash, seed] => {
            let log = log_options(compression)?.block_bytes(block.parse()?).replace(true);
            write(LogWriter::create(path, &log)?)?;
            build_index(path, &index_options(hash, seed)?)?;
            Ok(())
        }
        ["append", path] => write(LogWriter::append(path, &LogOptions::default())?),
        ["index", path, hash, seed, construction] => {
            let construction = match construction {
                "memory" => Construction::InMemory,
                // The minimum memory, so that more than a few thousand records go through a file.
                "sorting" => Construction::Sorting { memory_bytes: IndexOptions::MEMORY_BYTES_MIN },
                other => return Err(format!("unknown construction {other}; {USAGE}").into()),
            };
            build_index(path, &index_options(hash, seed)?.construction(construction))?;
            Ok(())
        }
        ["dump", path] => dump(path),
        ["get", path] => get(path),
        ["verify", path] => {
            SparkeyReader::open(path, &ReaderOptions::default())?.verify()?;
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

fn log_options(compression: &str) -> Result<LogOptions, Box<dyn Error>> {
    Ok(LogOptions::default().compression(match compression {
        "none" => Compression::None,
        "snappy" => Compression::Snappy,
        "zstd" => Compression::ZSTD,
        other => return Err(format!("unknown compression {other}; {USAGE}").into()),
    }))
}

fn index_options(hash: &str, seed: &str) -> Result<IndexOptions, Box<dyn Error>> {
    let options = IndexOptions::default().hash_width(match hash {
        "0" => HashWidth::Auto,
        "4" => HashWidth::Bits32,
        "8" => HashWidth::Bits64,
        other => return Err(format!("unknown hash size {other}; {USAGE}").into()),
    });
    Ok(match seed.parse::<i64>()? {
        0 => options,
        // Java's seeds are signed.
        seed => options.seed(seed as u32),
    })
}

fn write(mut writer: LogWriter) -> Outcome {
    let mut input = BufReader::with_capacity(1 << 20, io::stdin().lock());
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut kind = [0];
    while read_start(&mut input, &mut kind)? {
        let (key_bytes, value_bytes) = (read_u32(&mut input)?, read_u32(&mut input)?);
        read_bytes(&mut input, key_bytes, &mut key)?;
        read_bytes(&mut input, value_bytes, &mut value)?;
        match kind[0] {
            0 => writer.put(&key, &value)?,
            1 => _ = writer.delete(&key)?,
            other => return Err(format!("operation {other}, expected 0 or 1").into()),
        }
    }
    Ok(writer.close()?)
}

fn dump(path: &str) -> Outcome {
    let reader = SparkeyReader::open(path, &ReaderOptions::default())?;
    let mut output = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut scan = reader.scan();
    while let Some(mut entry) = scan.next_entry()? {
        let value = entry.value()?;
        output.write_all(&[0])?;
        output.write_all(&u32::try_from(entry.key().len())?.to_le_bytes())?;
        output.write_all(&u32::try_from(value.len())?.to_le_bytes())?;
        output.write_all(entry.key())?;
        output.write_all(&value)?;
    }
    Ok(output.flush()?)
}

fn get(path: &str) -> Outcome {
    let reader = SparkeyReader::open(path, &ReaderOptions::default())?;
    let mut input = BufReader::with_capacity(1 << 20, io::stdin().lock());
    let mut output = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut key = Vec::new();
    let mut length = [0; 4];
    while read_start(&mut input, &mut length)? {
        read_bytes(&mut input, u32::from_le_bytes(length), &mut key)?;
        match reader.get(&key)? {
            Some(value) => {
                output.write_all(&u32::try_from(value.len())?.to_le_bytes())?;
                output.write_all(&value)?;
            }
            None => output.write_all(&u32::MAX.to_le_bytes())?,
        }
    }
    Ok(output.flush()?)
}

/// Fills `bytes`. Returns false at the end of the input.
fn read_start(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    let (first, rest) = bytes.split_at_mut(1);
    loop {
        match input.read(first) {
            Ok(0) => return Ok(false),
            Ok(_) => return input.read_exact(rest).map(|()| true),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn read_u32(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn read_bytes(input: &mut impl Read, count: u32, out: &mut Vec<u8>) -> Outcome {
    out.clear();
    let read = input.by_ref().take(u64::from(count)).read_to_end(out)?;
    if read != count as usize {
        return Err(format!("the input ended {} bytes too early", count as usize - read).into());
    }
    Ok(())
}
