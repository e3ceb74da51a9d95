//! First steps with the key-value store: open it, write, read, iterate in key order, and open it
//! again later.
//!
//! Run it with `cargo run --example first_steps`.

use std::error::Error;

use cairn_kv::{Db, Durability};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let path = dir.path().join("capitals");

    let db = Db::open(&path)?; // created if it does not exist
    for (country, capital) in [
        ("Iceland", "Reykjavik"),
        ("Andorra", "Andorra la Vella"),
        ("Mongolia", "Ulan Bator"),
        ("Atlantis", "Poseidonis"),
        ("Ecuador", "Quito"),
    ] {
        db.put(country, capital)?;
    }
    db.put("Mongolia", "Ulaanbaatar")?; // replaces the first value
    db.delete("Atlantis")?;

    // Keys and values are bytes; their meaning is up to you.
    match db.get("Iceland")? {
        Some(capital) => println!("Iceland: {}", text(&capital)),
        None => println!("Iceland has no capital"),
    }
    println!("Atlantis: {:?}", db.get("Atlantis")?);
    // as of one moment, and faster than one by one
    let found = db.multi_get(&["Andorra", "Mongolia", "Utopia"])?;
    println!("{} of 3 are there", found.iter().flatten().count());

    println!("from B to before J:");
    for entry in db.range("B".."J") {
        let (country, capital) = entry?;
        println!("  {} {}", text(&country), text(&capital));
    }
    if let Some(last) = db.iter().next_back() {
        println!("the last one is {}", text(&last?.0));
    }

    // This write is on the disk when the call returns. The earlier ones survive a crash of the
    // process, but perhaps not a power loss.
    db.put_with("Bhutan", "Thimphu", Durability::Sync)?;

    drop(db); // the last handle closes the store
    let db = Db::open(&path)?;
    println!("after it was opened again:");
    for entry in db.iter() {
        println!("  {}", text(&entry?.0));
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
