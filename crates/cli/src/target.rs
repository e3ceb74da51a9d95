//! Where an export goes: a file that appears as a whole, or standard output.

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{AppendWriter, Fs, OutputFile};

use crate::error::{Error, Result};
use crate::interrupt::{self, Interrupt, Unfinished};
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
        /// What to do where that comes too late.
        unfinished: Option<Unfinished>,
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

/// Has the temporary file of `path` removed where the command is ended from outside; a device has none. The file must be under construction, so that nobody else's is
/// meant.
pub fn unfinished(fs: &Arc<dyn Fs>, path: &Path, file: &OutputFile) -> Result<Option<Unfinished>> {
    match file {
        OutputFile::Whole(_) => unfinished_at(fs, path),
        OutputFile::Through(_) => Ok(None),
    }
}

/// The same for a file that is built by somebody else, in the way that [`cairn_vfs::AtomicFile`] builds all: beside where `path` leads, with `.tmp` behind its name.
pub fn unfinished_at(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<Unfinished>> {
    let Some(target) = fs.follow(path)? else { return Ok(None) };
    let mut temporary = target.into_os_string();
    temporary.push(".tmp");
    let fs = Arc::clone(fs);
    interrupt::unfinished(move || _ = fs.remove(temporary.as_ref())).map(Some)
}

impl Target {
    /// Begins an export. Once in a process.
    pub fn open(fs: &Arc<dyn Fs>, path: Option<&Path>) -> Result<Target> {
        let Some(path) = file_of(path) else { return Ok(Target::Output(Output::new())) };
        let interrupt = Interrupt::catch()?;
        let file = OutputFile::create(fs, path)?;
        let unfinished = unfinished(fs, path, &file)?;
        let writer = AppendWriter::new(Arc::clone(file.file()), 0, BUFFER_BYTES);
        Ok(Target::File { file, writer, interrupt, unfinished })
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
            Target::File { file, mut writer, unfinished, .. } => {
                writer.flush()?;
                file.commit()?;
                drop(unfinished);
                Ok(())
            }
            Target::Output(out) => out.finish(),
        }
    }
}
