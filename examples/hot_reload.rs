//! Change a constant store by a delta, let running readers see it, and compact.
//!
//! Run it with `cargo run --example hot_reload`.

use std::error::Error;

use cairn_hash::generations::{Generations, Live, StoreBuilder, compact};
use cairn_hash::table::{BuildOptions, ReaderOptions};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // removed at the end; yours stays
    let path = dir.path().join("prices.cairn");

    let mut base = StoreBuilder::create(&path, BuildOptions::default())?;
    base.put(b"apple", b"1.20")?;
    base.put(b"pear", b"1.50")?;
    base.finish()?;

    // Threads take the current store from here; taking it needs no lock.
    let opened = path.clone();
    let live = Live::new(move || Generations::open(&opened, ReaderOptions::default()))?;
    let before = live.load_full();

    let mut delta = StoreBuilder::append(&path, BuildOptions::default())?;
    delta.put(b"apple", b"1.30")?;
    delta.delete(b"pear")?;
    delta.finish()?;
    live.reload()?;
    println!("{} generations after a change", live.load().tables().len());

    // Who holds the older ones keeps them.
    for (who, store) in [("before", before), ("now", live.load_full())] {
        let price = |fruit: &[u8]| -> cairn_hash::Result<String> {
            let price = store.get(fruit)?;
            Ok(price.map_or("not for sale".to_owned(), |price| String::from_utf8_lossy(&price).into_owned()))
        };
        println!("{who}: an apple {}, a pear {}", price(b"apple")?, price(b"pear")?);
    }

    compact(&path, BuildOptions::default())?;
    live.reload()?;
    println!("{} generation, {} entry", live.load().tables().len(), live.load().tables()[0].len());
    Ok(())
}
