//! Where results go: standard output, or a file.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{AppendWriter, Fs, OutputFile};

use crate::error::{Error, Result};
use crate::interrupt::Unfinished;
use crate::target::{Target, create_file};

const BUFFER_BYTES: usize = 1 << 16;

/// Takes results.
#[derive(Debug)]
pub enum Sink {
    /// Standard output.
    Stdout(BufWriter<io::Stdout>),
    /// A file that appears as a whole when it is finished, or a device.
    File {
        /// What it is until then.
        file: Box<OutputFile>,
        /// Writes it.
        writer: AppendWriter,
        /// Why it cannot be written any more.
        failure: Option<String>,
        /// What to do with it where the command is ended from outside.
        unfinished: Unfinished,
    },
    /// What appears as a whole.
    Export(Target),
}

impl Sink {
    /// Standard output.
    pub fn stdout() -> Sink {
        Sink::Stdout(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()))
    }

    /// A file, which takes the place of what is there when it is finished; or a pipe or another
    /// device.
    pub fn file(fs: &Arc<dyn Fs>, path: &Path) -> Result<Sink> {
        let (file, unfinished) = create_file(fs, path)?;
        let writer = AppendWriter::new(Arc::clone(file.file()), 0, BUFFER_BYTES);
        Ok(Sink::File { file: Box::new(file), writer, failure: None, unfinished })
    }

    /// Writes bytes. After an error of a file each write has that error again.
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

    /// Hands everything on. Whoever wrote what failed has been told.
    pub fn flush(&mut self) -> Result<()> {
        match self {
            Sink::Stdout(out) => out.flush().map_err(Error::Output),
            Sink::File { failure: Some(_), .. } => Ok(()),
            Sink::File { writer, failure, .. } => noted(writer.flush(), failure),
            // There is nothing to be seen of it before its end.
            Sink::Export(_) => Ok(()),
        }
    }

    /// Hands everything on and ends: a file gets its name. One that could not be written is left
    /// out, and what it was to replace stays. Dropped without this, it is left out as well.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        match self {
            Sink::Export(target) => target.finish(),
            // Whoever wrote what failed has been told.
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
