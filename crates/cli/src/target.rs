//! Where an export goes: a file that appears as a whole, or standard output.

use std::path::{Path, PathBuf};
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
        unfinished: Unfinished,
    },
    /// Standard output: there is nothing to put away, and Ctrl-C may end it as it ends any command.
    Output(Output),
}

/// The file among the places where an export may go; `-` is standard output, as for inputs it is
/// standard input.
pub fn file_of(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !is_stdout(path))
}

/// Errors: what was exported is asked for as JSON on standard output, which has the export.
pub fn refuse_json_of_stdout(json: bool, file: Option<&Path>) -> Result<()> {
    if json && file.is_none() {
        return Err(Error::usage("--json needs an output file: standard output has the export"));
    }
    Ok(())
}

/// Creates a file at `path` that appears as a whole. Where the command is ended from outside, its
/// temporary file is removed; a device has none.
pub fn create_file(fs: &Arc<dyn Fs>, path: &Path) -> Result<(OutputFile, Unfinished)> {
    interrupt::begin(|| {
        let file = OutputFile::create(fs, path)?;
        let undo = match file {
            OutputFile::Whole(_) => remove_temporaries(fs, &[path])?,
            OutputFile::Through(_) => remove_temporaries(fs, &[])?,
        };
        Ok((file, undo))
    })
}

/// The same for files that somebody else builds, in the way that [`cairn_vfs::AtomicFile`] builds
/// all: beside where each of `paths` leads, with `.tmp` behind its name. They must exist when
/// `make` has succeeded, so that nobody else's are meant.
pub fn create_with<T>(
    fs: &Arc<dyn Fs>,
    paths: &[&Path],
    make: impl FnOnce() -> Result<T>,
) -> Result<(T, Unfinished)> {
    interrupt::begin(|| Ok((make()?, remove_temporaries(fs, paths)?)))
}

fn remove_temporaries(fs: &Arc<dyn Fs>, paths: &[&Path]) -> Result<impl FnOnce() + Send + 'static + use<>> {
    let mut temporaries = Vec::new();
    for path in paths {
        if let Some(target) = fs.follow(path)? {
            let mut temporary = target.into_os_string();
            temporary.push(".tmp");
            temporaries.push(PathBuf::from(temporary));
        }
    }
    let fs = Arc::clone(fs);
    Ok(move || temporaries.iter().for_each(|temporary| _ = fs.remove(temporary)))
}

impl Target {
    /// Begins an export. Once in a process.
    pub fn open(fs: &Arc<dyn Fs>, path: Option<&Path>) -> Result<Target> {
        let Some(path) = file_of(path) else { return Ok(Target::Output(Output::new())) };
        let interrupt = Interrupt::catch()?;
        let (file, unfinished) = create_file(fs, path)?;
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
