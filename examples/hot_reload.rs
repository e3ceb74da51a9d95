//! Changes a constant store with a delta, lets running readers see it, and compacts the store.
//!
//! Run it with `cargo run --example hot_reload`.

use std::error::Error;

use cairn_hash::generations::{Generations, Live, StoreBuilder, compact};
use cairn_hash::table::{BuildOptions, ReaderOptions};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let path = dir.path().join("prices.cairn");

    let mut base = StoreBuilder::create(&path, BuildOptions::default())?;
    base.put(b"apple", b"1.20")?;
    base.put(b"pear", b"1.50")?;
    base.finish()?;

    // Threads get the current store from here, without a lock.
    let opened = path.clone();
    let live = Live::new(move || Generations::open(&opened, ReaderOptions::default()))?;
    let before = live.load_full();

    let mut delta = StoreBuilder::append(&path, BuildOptions::default())?;
    delta.put(b"apple", b"1.30")?;
    delta.delete(b"pear")?;
    delta.finish()?;
    live.reload()?;
    println!("{} generations after a change", live.load().tables().len());

    // Readers that hold the older generations keep them.
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
