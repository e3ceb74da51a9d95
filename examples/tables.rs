//! Tables without SQL: a schema, rows, an index, a transaction that is retried after a conflict, a
//! savepoint, a backup.
//!
//! `cargo run --example tables`

use std::error::Error;
use std::ops::Bound;
use std::sync::Arc;

use cairn_table::row::{Order, Type, Value};
use cairn_table::schema::{ColumnDef, IndexDef, KeyColumn, TableDef};
use cairn_table::{Database, Direction, Durability, Isolation, Options, RowBuf, Table};
use cairn_vfs::{Fs, StdFs};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let db = Database::open(&fs, &dir.path().join("bank.db"), &Options::default())?;

    let mut transaction = db.begin(Isolation::ReadCommitted)?;
    let accounts = transaction.create_table(accounts())?;
    for (id, owner, balance) in [(1, "ann", 100), (2, "bob", 50), (3, "ann", 7)] {
        transaction.insert(&accounts, &[Value::Int(id), Value::Text(owner), Value::BigInt(balance)])?;
    }
    transaction.commit(Durability::Sync)?;

    // A serializable transaction may conflict with another one, and must then be retried.
    while let Err(error) = transfer(&db, &accounts, 1, 2, 30) {
        if !matches!(error, cairn_table::Error::SerializationFailure { .. }) {
            return Err(error.into());
        }
    }

    // Changes after a savepoint can be rolled back separately.
    let mut transaction = db.begin(Isolation::ReadCommitted)?;
    let savepoint = transaction.savepoint();
    transaction.delete(&accounts, &key(&accounts, 1))?;
    transaction.rollback_to(savepoint)?;
    transaction.commit(Durability::Sync)?;

    println!("accounts of ann, by the index:");
    let mut start = Vec::new();
    let format = accounts.index_key_format(0).ok_or("there is an index")?;
    assert!(format.encode(&[Value::Text("ann")], &mut start));
    let transaction = db.begin(Isolation::Snapshot)?;
    let range = (Bound::Included(&start[..]), Bound::Unbounded);
    let mut scan = transaction.view().scan(&accounts, Some(0), range, Direction::Forward)?;
    while let Some(row) = scan.next()?.filter(|row| row.get(1) == Value::Text("ann")) {
        println!("  account {}: {}", row.get(0), row.get(2));
    }
    drop(scan);
    transaction.rollback()?;

    db.backup(&fs, &dir.path().join("copy.db"))?;
    // Checks everything, exclusively: it waits for running transactions, so there must be none
    // here.
    println!("{:?}", db.check()?);
    Ok(())
}

fn accounts() -> TableDef {
    let column = |name: &str, kind: Type| ColumnDef {
        name: name.to_owned(),
        kind: kind.into(),
        nullable: false,
        default: None,
        identity: None,
    };
    let by = |column| vec![KeyColumn { column, order: Order::default() }];
    TableDef {
        schema: cairn_table::PUBLIC.to_owned(),
        name: "accounts".to_owned(),
        columns: vec![column("id", Type::Int), column("owner", Type::Text), column("balance", Type::BigInt)],
        primary_key: by(0),
        // Includes the balance, so that a query by owner does not have to read the table.
        indexes: vec![IndexDef {
            name: "accounts_owner".to_owned(),
            columns: by(1),
            include: vec![2],
            unique: false,
            is_constraint: false,
        }],
        ..TableDef::default()
    }
}

fn key(table: &Table, id: i32) -> Vec<u8> {
    let mut key = Vec::new();
    let is_key = table.key_format().encode(&[Value::Int(id)], &mut key);
    assert!(is_key, "the primary key is an int");
    key
}

fn transfer(
    db: &Database,
    accounts: &Arc<Table>,
    from: i32,
    to: i32,
    amount: i64,
) -> cairn_table::Result<()> {
    let mut transaction = db.begin(Isolation::Serializable)?;
    let mut row = RowBuf::default();
    for (id, change) in [(from, -amount), (to, amount)] {
        let key = key(accounts, id);
        if !transaction.lock(accounts, &key, &mut row)? {
            return transaction.rollback();
        }
        let (owner, balance) = match (row.row(accounts).get(1), row.row(accounts).get(2)) {
            (Value::Text(owner), Value::BigInt(balance)) => (owner, balance),
            _ => return transaction.rollback(),
        };
        let values = [Value::Int(id), Value::Text(owner), Value::BigInt(balance + change)];
        transaction.update(accounts, &key, &values)?;
    }
    transaction.commit(Durability::Sync)
}
