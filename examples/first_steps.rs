//! First steps with the key-value store: open it, write, read, walk in key order, and find everything again later.
//!
//! Run it with `cargo run --example first_steps`.

use std::error::Error;

use cairn_kv::{Db, Durability};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // removed at the end; yours stays
    let path = dir.path().join("capitals");

    let db = Db::open(&path)?; // made when there is none
    for (country, capital) in [
        ("Iceland", "Reykjavik"),
        ("Andorra", "Andorra la Vella"),
        ("Mongolia", "Ulan Bator"),
        ("Atlantis", "Poseidonis"),
        ("Ecuador", "Quito"),
    ] {
        db.put(country, capital)?;
    }
    db.put("Mongolia", "Ulaanbaatar")?; // the last one counts
    db.delete("Atlantis")?;

    // Keys and values are bytes; what they mean is up to you.
    match db.get("Iceland")? {
        Some(capital) => println!("Iceland: {}", text(&capital)),
        None => println!("Iceland has no capital"),
    }
    println!("Atlantis: {:?}", db.get("Atlantis")?);
    let found = db.multi_get(&["Andorra", "Mongolia", "Utopia"])?; // as of one moment, and faster than one by one
    println!("{} of 3 are there", found.iter().flatten().count());

    println!("from B to before J:");
    for entry in db.range("B".."J") {
        let (country, capital) = entry?;
        println!("  {} {}", text(&country), text(&capital));
    }
    if let Some(last) = db.iter().next_back() {
        println!("the last one is {}", text(&last?.0));
    }

    // This one is on the disk when the call returns; the others so far survive the process, but maybe not a power loss.
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
