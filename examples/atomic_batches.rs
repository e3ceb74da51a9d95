//! Writes that belong together: orders in one keyspace, an index of them by customer in another,
//! and batches that keep both consistent, whatever happens.
//!
//! Run it with `cargo run --example atomic_batches`.

use std::error::Error;

use cairn_kv::{Compression, Db, Durability, Keyspace, KeyspaceOptions, Operation, Range, WriteBatch};

/// Two keyspaces of one store. A keyspace is an ordered map with its own options, which RocksDB
/// calls a column family.
struct Shop {
    db: Db,
    /// From order numbers, big-endian so that bytes sort like numbers, to the ordered goods.
    orders: Keyspace,
    /// From `customer/number` to the order number.
    by_customer: Keyspace,
}

impl Shop {
    fn open(path: &std::path::Path) -> Result<Shop, Box<dyn Error>> {
        let small = KeyspaceOptions { compression: vec![Compression::None], ..KeyspaceOptions::default() };
        let db = Db::builder(path)
            .keyspace("orders", KeyspaceOptions::default())
            .keyspace("by customer", small)
            .open()?;
        let orders = db.keyspace("orders").ok_or("no orders")?;
        let by_customer = db.keyspace("by customer").ok_or("no index")?;
        Ok(Shop { db, orders, by_customer })
    }

    /// Writes both entries or none, for readers and after a crash.
    fn place(&self, number: u64, customer: &str, what: &str) -> cairn_kv::Result<()> {
        let (number, index) = (number.to_be_bytes(), index_key(customer, number));
        let mut batch = WriteBatch::new();
        batch.add(self.orders.id(), Operation::Put { key: &number, value: what.as_bytes() })?;
        batch.add(self.by_customer.id(), Operation::Put { key: &index, value: &number })?;
        self.db.write_with(&batch, Durability::Sync) // one sync for the whole batch
    }

    fn cancel(&self, number: u64, customer: &str) -> cairn_kv::Result<()> {
        let mut batch = WriteBatch::new();
        batch.add(self.orders.id(), Operation::Delete { key: &number.to_be_bytes() })?;
        batch.add(self.by_customer.id(), Operation::Delete { key: &index_key(customer, number) })?;
        self.db.write_with(&batch, Durability::Sync)
    }

    fn orders_of(&self, customer: &str) -> cairn_kv::Result<Vec<String>> {
        let index = self.by_customer.prefix(format!("{customer}/"));
        let numbers = index.map(|entry| Ok(entry?.1)).collect::<cairn_kv::Result<Vec<_>>>()?;
        let orders = self.orders.multi_get(&numbers)?;
        Ok(orders.iter().flatten().map(|what| String::from_utf8_lossy(what).into_owned()).collect())
    }
}

fn index_key(customer: &str, number: u64) -> Vec<u8> {
    [customer.as_bytes(), b"/", &number.to_be_bytes()].concat()
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let path = dir.path().join("shop");

    let shop = Shop::open(&path)?;
    shop.place(1, "ada", "an engine")?;
    shop.place(2, "grace", "a compiler")?;
    shop.place(3, "ada", "punched cards")?;
    shop.place(4, "ada", "a loom")?;
    shop.cancel(3, "ada")?;
    drop(shop);

    // The options of a keyspace are passed at each open. Those on which its data depends are
    // checked.
    let shop = Shop::open(&path)?;
    for customer in ["ada", "grace", "alan"] {
        println!("{customer} has ordered {:?}", shop.orders_of(customer)?);
    }
    for keyspace in shop.db.keyspaces() {
        println!("keyspace {:?} has {} entries", keyspace.name(), count(keyspace.iter())?);
    }
    Ok(())
}

fn count(entries: Range) -> cairn_kv::Result<u64> {
    entries.map(|entry| entry.map(|_| 1)).sum()
}
