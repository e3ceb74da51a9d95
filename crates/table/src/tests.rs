//! Races that only show when a thread is stopped at a certain point.

mod checkpoints;
mod free_list;
mod publish;
mod split;
mod views;

use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, MemFs, SeededRng};

use crate::row::{Order, Type};
use crate::schema::{ColumnDef, KeyColumn, TableDef};
use crate::{Database, Options};

fn database() -> Database {
    database_of(8 << 10)
}

fn database_of(page_size: usize) -> Database {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut options = Options::default();
    options.store.page_size = page_size;
    options.store.frames = 256;
    options.store.background = false;
    options.checkpoint_bytes = 16 << 10;
    Database::open_seeded(&fs, Path::new("test.db"), &options, &mut SeededRng::new(7)).unwrap()
}

fn on(column: usize) -> Vec<KeyColumn> {
    vec![KeyColumn { column, order: Order::default() }]
}

/// Defines a table of two integers, the first of which is the key.
fn def(name: &str) -> TableDef {
    let column = |name: &str| ColumnDef {
        name: name.to_owned(),
        kind: Type::Int.into(),
        nullable: true,
        default: None,
        identity: None,
    };
    TableDef {
        schema: "public".to_owned(),
        name: name.to_owned(),
        columns: vec![column("id"), column("v")],
        primary_key: on(0),
        ..TableDef::default()
    }
}
