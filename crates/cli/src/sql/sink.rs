//! The destination of results: standard output, or a file.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{AppendWriter, Fs, OutputFile};

use crate::error::{Error, Result};
use crate::interrupt::Unfinished;
use crate::target::{Target, create_file};

const BUFFER_BYTES: usize = 1 << 16;

/// A destination of results.
#[derive(Debug)]
pub enum Sink {
    /// Standard output.
    Stdout(BufWriter<io::Stdout>),
    /// A file that is published atomically by `finish`, or a device.
    File {
        /// The temporary file, or the device.
        file: Box<OutputFile>,
        /// The writer.
        writer: AppendWriter,
        /// The error after which the file cannot be written any more.
        failure: Option<String>,
        /// The cleanup if a signal ends the command.
        unfinished: Unfinished,
    },
    /// A destination that is published atomically.
    Export(Target),
}

impl Sink {
    /// Creates a sink for standard output.
    pub fn stdout() -> Sink {
        Sink::Stdout(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()))
    }

    /// Creates a sink for a file, which replaces an existing one when it is finished, or for a pipe
    /// or another device.
    pub fn file(fs: &Arc<dyn Fs>, path: &Path) -> Result<Sink> {
        let (file, unfinished) = create_file(fs, path)?;
        let writer = AppendWriter::new(Arc::clone(file.file()), 0, BUFFER_BYTES);
        Ok(Sink::File { file: Box::new(file), writer, failure: None, unfinished })
    }

    /// Writes bytes. After an error of a file, each further write returns that error again.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Sink::Stdout(out) => out.write_all(bytes).map_err(Error::Output),
            Sink::File { failure: Some(why), .. } => Err(Error::usage(why.clone())),
            Sink::File { writer, failure, .. } => noted(writer.write_all(bytes), failure),
            Sink::Export(target) => target.write(bytes),
        }
    }

    /// Writes text.
    pub fn text(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())
    }

    /// Writes a line.
    pub fn line(&mut self, line: impl std::fmt::Display) -> Result<()> {
        self.text(&format!("{line}\n"))
    }

    /// Flushes the buffer. Returns no error if a write has failed before, because that one was
    /// reported.
    pub fn flush(&mut self) -> Result<()> {
        match self {
            Sink::Stdout(out) => out.flush().map_err(Error::Output),
            Sink::File { failure: Some(_), .. } => Ok(()),
            Sink::File { writer, failure, .. } => noted(writer.flush(), failure),
            // Nothing of it is visible before its end.
            Sink::Export(_) => Ok(()),
        }
    }

    /// Flushes the buffer and publishes a file. A file with a failed write is discarded, and the
    /// file that it should replace stays. The same happens on drop.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        match self {
            Sink::Export(target) => target.finish(),
            // The failed write was reported.
            Sink::File { failure: Some(_), .. } => Ok(()),
            Sink::File { file, unfinished, .. } => {
                file.commit()?;
                drop(unfinished);
                Ok(())
            }
            Sink::Stdout(_) => Ok(()),
        }
    }
}

fn noted(done: cairn_vfs::Result<()>, failure: &mut Option<String>) -> Result<()> {
    done.map_err(|error| {
        *failure = Some(error.to_string());
        error.into()
    })
}
