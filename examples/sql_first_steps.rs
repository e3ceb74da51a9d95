//! SQL in a file: tables, parameters, prepared statements, a transaction that is retried after a
//! conflict, rows by column, a backup.
//!
//! `cargo run --example sql_first_steps`

use std::error::Error;

use cairn_sql::{Connection, Database, Datum};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    // can be shared between threads; each opens a connection
    let db = Database::open(dir.path().join("bank.db"))?;
    let mut connection = db.connect();
    connection.batch(
        "create table accounts (
             id integer primary key,
             owner text not null,
             balance numeric(12, 2) not null check (balance >= 0)
         );
         create index on accounts (owner) include (balance);",
    )?;

    // One transaction for many rows waits for the disk only once.
    connection.execute("begin", &[])?;
    let insert = connection.prepare("insert into accounts values ($1, $2, $3)")?;
    for (id, owner, cents) in [(1, "ann", 10_000), (2, "bob", 5_000), (3, "ann", 750)] {
        let balance = Datum::Decimal { unscaled: cents, scale: 2 };
        connection.run(&insert, &[id.into(), owner.into(), balance])?;
    }
    connection.execute("commit", &[])?;

    // A serializable transaction may conflict with another one, and must then be retried.
    while let Err(error) = transfer(&mut connection, 1, 2, "30.25") {
        connection.execute("rollback", &[])?;
        if !error.is_retryable() {
            return Err(error.into());
        }
    }
    // A transaction that fails has no effect.
    if let Err(refused) = transfer(&mut connection, 3, 1, "1000") {
        connection.execute("rollback", &[])?;
        println!("refused: {refused}");
    }

    let mut rows =
        connection.query("select id, balance from accounts where owner = $1 order by id", &["ann".into()])?;
    while let Some(row) = rows.next()? {
        println!("account {} has {}", row.get(0), row.get(1));
    }
    drop(rows);

    // Whole columns, in Arrow's format.
    let mut rows =
        connection.query("select owner, sum(balance) from accounts group by owner order by owner", &[])?;
    while let Some(batch) = rows.next_batch()? {
        println!("{} owners in columns of {}", batch.num_rows(), batch.schema().field(1).data_type());
    }
    drop(rows);

    db.backup(&dir.path().join("copy.db"))?;
    println!("{:?}", Database::open(dir.path().join("copy.db"))?.check()?);
    Ok(())
}

fn transfer(connection: &mut Connection, from: i32, to: i32, amount: &str) -> cairn_sql::Result<()> {
    connection.execute("begin isolation level serializable", &[])?;
    connection
        .execute("update accounts set balance = balance - $1 where id = $2", &[amount.into(), from.into()])?;
    connection
        .execute("update accounts set balance = balance + $1 where id = $2", &[amount.into(), to.into()])?;
    connection.execute("commit", &[])?;
    Ok(())
}
