//! Where an export goes: a file that appears as a whole, or standard output.

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{AppendWriter, Fs, OutputFile};

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::output::{Output, is_stdout};

/// Bytes that are written at once.
pub const BUFFER_BYTES: usize = 1 << 18;

/// Takes an export from front to back.
#[derive(Debug)]
pub enum Target {
    /// A file that appears as a whole, or a device.
    File {
        /// What it is until then.
        file: OutputFile,
        /// Writes it.
        writer: AppendWriter,
        /// Ctrl-C, until which half a file would stay.
        interrupt: Interrupt,
    },
    /// Standard output: there is nothing to put away, and Ctrl-C may end it as it ends any command.
    Output(Output),
}

/// The file among the places where an export may go; `-` is standard output, as for inputs it is standard input.
pub fn file_of(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !is_stdout(path))
}

/// Errors: what was exported is asked for as JSON on standard output, which has the export.
pub fn refuse_json_of_stdout(json: bool, file: Option<&Path>) -> Result<()> {
    if json && file.is_none() {
        return Err(Error::usage("--json says what was written to a file; standard output has the export"));
    }
    Ok(())
}

impl Target {
    /// Begins an export. Once in a process.
    pub fn open(fs: &Arc<dyn Fs>, path: Option<&Path>) -> Result<Target> {
        let Some(path) = file_of(path) else { return Ok(Target::Output(Output::new())) };
        let interrupt = Interrupt::catch()?;
        let file = OutputFile::create(fs, path)?;
        let writer = AppendWriter::new(Arc::clone(file.file()), 0, BUFFER_BYTES);
        Ok(Target::File { file, writer, interrupt })
    }

    /// Writes bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Target::File { writer, interrupt, .. } => {
                interrupt.check(|| "nothing is written".to_owned())?;
                Ok(writer.write_all(bytes)?)
            }
            Target::Output(out) => out.bytes(bytes),
        }
    }

    /// Publishes a file, durably.
    pub fn finish(self) -> Result<()> {
        match self {
            Target::File { file, mut writer, .. } => {
                writer.flush()?;
                Ok(file.commit()?)
            }
            Target::Output(out) => out.finish(),
        }
    }
}
