//! Opening databases.

use std::path::Path;
use std::sync::Arc;

use cairn_sql::Database;
use cairn_vfs::{Fs, MemFs};

use crate::args::shell::OpenArgs;
use crate::error::Result;
use crate::place;

/// Opens or creates a database file; without a path, creates a database in memory.
pub fn open(fs: &Arc<dyn Fs>, path: Option<&Path>, args: &OpenArgs) -> Result<Database> {
    let own: Arc<dyn Fs> = if path.is_some() { Arc::clone(fs) } else { Arc::new(MemFs::new()) };
    let mut builder = Database::builder()
        .fs(own)
        // Files that a database in memory exports are on the disk.
        .files(Arc::clone(fs))
        .cache_bytes(args.cache_size)
        .read_only(args.read_only)
        .statement_timeout(args.statement_timeout)
        .durability(args.durability.into());
    if let Some(threads) = args.threads {
        builder = builder.threads(threads.into());
    }
    let Some(path) = path else {
        let memory = Path::new("memory.db");
        if args.read_only {
            // A database must exist before it can be opened read-only.
            let _ = builder.clone().read_only(false).open(memory)?;
        }
        return Ok(builder.open(memory)?);
    };
    Ok(builder.open(path)?)
}

/// Opens an existing database file. Refuses an empty file, which would be initialized as a new
/// database.
pub fn open_existing(fs: &Arc<dyn Fs>, path: &Path) -> Result<Database> {
    place::expect_file(fs, path)?;
    Ok(Database::builder().fs(Arc::clone(fs)).create(false).open(path)?)
}
