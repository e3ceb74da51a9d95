//! The destination of an export: a file that is published atomically, or standard output.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{AppendWriter, Fs, OutputFile};

use crate::error::{Error, Result};
use crate::interrupt::{self, Interrupt, Unfinished};
use crate::output::{Output, is_stdout};

/// The size of the write buffer.
pub const BUFFER_BYTES: usize = 1 << 18;

/// A destination that an export is written to sequentially.
#[derive(Debug)]
pub enum Target {
    /// A file that is published atomically, or a device.
    File {
        /// The temporary file, or the device.
        file: OutputFile,
        /// The writer.
        writer: AppendWriter,
        /// Checked for Ctrl-C, after which the temporary file is removed.
        interrupt: Interrupt,
        /// The cleanup that removes the temporary file if the process is ended at once.
        unfinished: Unfinished,
    },
    /// Standard output. It needs no cleanup, so Ctrl-C may end the process like any other.
    Output(Output),
}

/// Returns the path if it names a file. `-` is standard output, as it is standard input for inputs.
pub fn file_of(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !is_stdout(path))
}

/// Errors: a summary is requested as JSON on standard output, which already gets the export.
pub fn refuse_json_of_stdout(json: bool, file: Option<&Path>) -> Result<()> {
    if json && file.is_none() {
        return Err(Error::usage("--json needs an output file: standard output has the export"));
    }
    Ok(())
}

/// Creates a file at `path` that is published atomically. If a signal ends the command, its
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

/// The same for files that `make` builds like [`cairn_vfs::AtomicFile`]: next to the target of each
/// of `paths`, with `.tmp` appended to its name. They must exist when `make` succeeds, so that the
/// cleanup cannot remove files of another process.
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
    /// Begins an export. May be called once per process.
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

    /// Publishes the file durably.
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
