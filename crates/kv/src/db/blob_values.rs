//! The values in the blob files of a version.

use std::path::PathBuf;

use cairn_vfs::sync::Arc;

use crate::blob::{BlobReader, BlobRef};
use crate::iter::visible::BlobSource;
use crate::open_files::OpenFiles;
use crate::version::{BlobFile, FileName, Version};
use crate::{Error, Result};

/// The blob files of a version.
#[derive(Debug, Clone)]
pub(crate) struct BlobValues {
    pub files: Arc<OpenFiles>,
    pub path: Arc<PathBuf>,
    pub version: Arc<Version>,
}

impl BlobValues {
    fn reader<'a>(&self, file: &'a BlobFile) -> Result<&'a BlobReader> {
        if let Some(reader) = file.reader.get() {
            return Ok(reader);
        }
        let reader = BlobReader::open_shared(&self.files, &self.path, &file.meta)?;
        Ok(file.reader.get_or_init(|| reader))
    }
}

impl BlobSource for BlobValues {
    fn load(&self, reference: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let decoded = BlobRef::decode(reference).ok_or_else(|| {
            Error::corruption(&self.path, 0, "a table's reference to a blob file cannot be read")
        })?;
        if decoded.bytes == 0 {
            out.clear();
            return Ok(());
        }
        let Some(blob) = self.version.blob(decoded.number) else {
            let path = FileName::Blob(decoded.number).path(&self.path);
            return Err(Error::corruption(
                &path,
                decoded.offset,
                "a table refers to it, but the manifest does not",
            ));
        };
        debug_assert_eq!(blob.file.meta.number, decoded.number, "the version found another blob file");
        self.reader(&blob.file)?.load(decoded, out)
    }
}
