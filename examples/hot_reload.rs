//! Change a constant store by a delta, let running readers see it, and compact.

use cairn_hash::generations::{Generations, Live, StoreBuilder, compact};
use cairn_hash::table::{BuildOptions, ReaderOptions};
use cairn_vfs::{Fs, StdFs};

pub(crate) fn main() -> cairn_hash::Result<()> {
    let dir = std::env::temp_dir();
    let path = dir.join(format!("cairn-example-reload-{}.cairn", std::process::id()));

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

    assert_eq!(before.get(b"pear")?.as_deref(), Some(&b"1.50"[..]), "who has the old one keeps it");
    assert_eq!(live.load().get(b"apple")?.as_deref(), Some(&b"1.30"[..]));
    assert_eq!(live.load().get(b"pear")?, None);

    compact(&path, BuildOptions::default())?;
    live.reload()?;
    println!("{} generation, {} entry", live.load().tables().len(), live.load().tables()[0].len());

    // All files of a store begin with its name.
    let (fs, name) = (StdFs::new(), path.to_string_lossy().into_owned());
    let all = fs.read_dir(&dir)?;
    all.iter()
        .filter(|file| file.to_string_lossy().starts_with(&name))
        .try_for_each(|file| Ok(fs.remove(file)?))
}
