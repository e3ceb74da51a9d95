//! The reference engines and the engine under test.

use std::path::Path;

use cairn_vfs::{Fs, StdFs};

use crate::core::error::Result;
use crate::core::workload::Durability;
use crate::peers::sql::{postgres::Postgres, sqlite::Sqlite};
use crate::stores::sql::{SqlDb, SqlSession, SqlSettings, SqlStore};

fn open(store: &dyn SqlStore, dir: &Path) -> Result<Box<dyn SqlDb>> {
    StdFs::new().create_dir_all(dir)?;
    store.open(dir, &SqlSettings { durability: Durability::Memory, cache_bytes: 64 << 20, sessions: 4 })
}

/// Opens empty databases of PostgreSQL and SQLite in `dir` and calls `work` with a session of each.
/// Without PostgreSQL, there is only the session of SQLite, unless `needs_postgres`.
///
/// Errors: PostgreSQL is required but not installed, or an engine fails.
pub fn with_references(
    dir: &Path,
    needs_postgres: bool,
    work: &mut dyn FnMut(&mut [&mut dyn SqlSession]) -> Result<()>,
) -> Result<()> {
    let sqlite = open(&Sqlite, &dir.join("s"))?;
    sqlite.with_session(&mut |sqlite| {
        // Makes SQLite behave like PostgreSQL.
        sqlite.execute("PRAGMA foreign_keys = ON")?;
        sqlite.execute("PRAGMA case_sensitive_like = ON")?;
        match Postgres::find() {
            Err(error) if needs_postgres => Err(error),
            Err(_) => work(&mut [sqlite]),
            Ok(postgres) => open(&postgres, &dir.join("p"))?
                .with_session(&mut |postgres| work(&mut [&mut *postgres, &mut *sqlite])),
        }
    })
}

/// Tests Cairn, embedded, with about `count` statements drawn from `seed`, and collects up to
/// `most` differences.
///
/// Errors: as [`with_references`].
#[cfg(feature = "sql")]
pub fn test_cairn(
    seed: u64,
    count: usize,
    needs_postgres: bool,
    most: usize,
) -> Result<super::differ::Found> {
    use super::differ;
    let scratch = crate::core::scratch::Scratch::temporary("oracle")?;
    let cairn = open(&crate::stores::cairn_sql::CairnSql, &scratch.path().join("c"))?;
    let mut found = differ::Found::default();
    with_references(scratch.path(), needs_postgres, &mut |references| {
        cairn.with_session(&mut |cairn| {
            found = differ::run(seed, count, cairn, references, most)?;
            Ok(())
        })
    })?;
    Ok(found)
}

/// Tests Cairn against itself: the reference runs with `settings`, such as `cairn.optimizer = off`,
/// on a database of its own. Draws about `count` statements from `seed` and collects up to `most`
/// differences.
///
/// Errors: a setting is refused, or an engine fails.
#[cfg(feature = "sql")]
pub fn test_cairn_against_itself(
    seed: u64,
    count: usize,
    settings: &[&str],
    most: usize,
) -> Result<super::differ::Found> {
    use super::differ;
    let scratch = crate::core::scratch::Scratch::temporary("oracle")?;
    let tested = open(&crate::stores::cairn_sql::CairnSql, &scratch.path().join("c"))?;
    let reference = open(&crate::stores::cairn_sql::CairnSql, &scratch.path().join("r"))?;
    let mut found = differ::Found::default();
    reference.with_session(&mut |reference| {
        for setting in settings {
            reference.execute(&format!("SET {setting}"))?;
        }
        tested.with_session(&mut |tested| {
            found = differ::run(seed, count, tested, &mut [&mut *reference], most)?;
            Ok(())
        })
    })?;
    Ok(found)
}

/// Tests Cairn by queries that are assembled from partitions: see [`super::partition`].
///
/// Errors: the engine fails.
#[cfg(feature = "sql")]
pub fn test_cairn_by_parts(seed: u64, count: usize, most: usize) -> Result<super::differ::Found> {
    let scratch = crate::core::scratch::Scratch::temporary("oracle")?;
    let cairn = open(&crate::stores::cairn_sql::CairnSql, &scratch.path().join("c"))?;
    let mut found = super::differ::Found::default();
    cairn.with_session(&mut |cairn| {
        found = super::partition::run(seed, count, cairn, most)?;
        Ok(())
    })?;
    Ok(found)
}
