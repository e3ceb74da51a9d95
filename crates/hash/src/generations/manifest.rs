//! The manifest: the list of the files that make up a store with deltas.
//!
//! Each delta names the generation below it, so deltas of different chains cannot be mixed. The
//! chain alone does not reveal that its newest delta is missing, or that the base was replaced by
//! an older one without deltas. A store that was ever appended to therefore has a manifest, which
//! lists its generations by their random ids.
//!
//! ```text
//!   0  magic "CAIRNGEN"       8 version u32 = 1
//!  12  kind u32 of the pending generation: 0 none, 1 a delta, 2 a base
//!  16  the pending generation: generation u64, id u64; zeros when there is none
//!  32  the generations, the base first: generation u64, id u64 each
//!      xxh3-64 of the bytes before, u64
//! ```
//!
//! A generation is published in three steps: the manifest names it as pending; its file is renamed
//! to its final name; the manifest lists it. After a power loss between these steps, the files show
//! whether the pending generation was published.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64;
use cairn_vfs::{AtomicFile, ErrorKind, Fs, OpenOptions, ensure};

use crate::table::{word32, word64};
use crate::{Error, Result, names};

const MAGIC: [u8; 8] = *b"CAIRNGEN";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 32;
const ENTRY_BYTES: usize = 16;
const SUM_BYTES: usize = 8;
const _: () = assert!(HEAD_BYTES == 16 + ENTRY_BYTES, "the pending generation is the first entry");
/// Bound on the size of a manifest. No store is left to gather so many deltas, because each costs
/// every lookup a cache miss.
const BYTES_MAX: u64 = 1 << 20;
/// The most generations that a manifest can list, before its checksum.
const LISTED_MAX: usize = (BYTES_MAX as usize - HEAD_BYTES - SUM_BYTES) / ENTRY_BYTES;

/// The identity of a file of a store, as its header states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Generation {
    pub number: u64,
    pub id: u64,
}

/// The pending generation: about to be published, or published but not listed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    /// A delta over the listed generations.
    Delta(Generation),
    /// A base that replaces all listed generations.
    Base(Generation),
}

/// The manifest of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The base comes first. Empty while a new base replaces a store whose manifest is damaged.
    pub listed: Vec<Generation>,
    pub next: Next,
}

impl Manifest {
    /// Reads the manifest of the store at `target`; `None` if there is none. Errors:
    /// [`Error::Corruption`].
    pub fn read(fs: &dyn Fs, target: &Path) -> Result<Option<Manifest>> {
        let path = names::manifest(target);
        let file = match fs.open(&path, OpenOptions::read()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let len = file.len()?;
        if len > BYTES_MAX {
            let detail = format!("a manifest of {len} bytes, expected at most {BYTES_MAX}");
            return Err(Error::corruption(&path, 0, detail));
        }
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Manifest::decode(&path, &bytes).map(Some)
    }

    /// Writes the manifest of the store at `target` atomically and durably.
    ///
    /// Errors: [`Error::Invalid`] for more deltas than a manifest can list.
    pub fn write(&self, fs: &Arc<dyn Fs>, target: &Path) -> Result<()> {
        // A pending delta will be listed later, when it is too late to refuse it.
        let pending = usize::from(matches!(self.next, Next::Delta(_)));
        if self.listed.len() + pending > LISTED_MAX {
            return Err(Error::invalid(format!(
                "{} has as many deltas as a store can have: merge them into a new base first",
                target.display()
            )));
        }
        let problem = self.problem();
        ensure!(problem.is_none(), "a manifest with {problem:?}");
        let path = names::manifest(target);
        debug_assert_eq!(Manifest::decode(&path, &self.encode()).ok().as_ref(), Some(self));
        let file = AtomicFile::create(fs, &path)?;
        // The manifest gets the access rights of the store.
        file.file().take_mode(target);
        file.file().write_all_at(&self.encode(), 0)?;
        Ok(file.commit()?)
    }

    /// Returns the offset and the description of a contradiction in the manifest. The writer and
    /// the reader have the same rules.
    fn problem(&self) -> Option<(usize, String)> {
        if let Some(number) = self.listed.windows(2).position(|pair| pair[0].number >= pair[1].number) {
            return Some((HEAD_BYTES + ENTRY_BYTES * number, "generations out of order".to_owned()));
        }
        if let Some(number) = self.listed.iter().position(|listed| listed.id == 0) {
            let detail = "a generation with id 0, which none has".to_owned();
            return Some((HEAD_BYTES + ENTRY_BYTES * number, detail));
        }
        let last = self.listed.last();
        let (next, is_next) = match self.next {
            Next::Nothing => return None,
            // Readers find a new delta by its number, without a list of the directory.
            Next::Delta(next) => {
                (next, last.is_some_and(|last| last.number.checked_add(1) == Some(next.number)))
            }
            // The number of a base says that the deltas up to it are superseded.
            Next::Base(next) => (next, last.is_none_or(|last| last.number <= next.number)),
        };
        if is_next && next.id != 0 {
            return None;
        }
        Some((16, format!("the next generation is {next:?}, the last listed one {last:?}")))
    }

    fn encode(&self) -> Vec<u8> {
        let (kind, next) = match self.next {
            Next::Nothing => (0u32, Generation::default()),
            Next::Delta(next) => (1, next),
            Next::Base(next) => (2, next),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&kind.to_le_bytes());
        for generation in std::iter::once(&next).chain(&self.listed) {
            bytes.extend_from_slice(&generation.number.to_le_bytes());
            bytes.extend_from_slice(&generation.id.to_le_bytes());
        }
        debug_assert_eq!(bytes.len(), HEAD_BYTES + self.listed.len() * ENTRY_BYTES);
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    pub(super) fn decode(path: &Path, bytes: &[u8]) -> Result<Manifest> {
        let wrong = |offset: usize, detail: String| Err(Error::corruption(path, offset as u64, detail));
        let entries = bytes.len().checked_sub(HEAD_BYTES + SUM_BYTES);
        let Some(end) = entries.filter(|bytes| bytes % ENTRY_BYTES == 0).map(|_| bytes.len() - SUM_BYTES)
        else {
            return wrong(0, format!("{} bytes cannot be a manifest", bytes.len()));
        };
        let (found, expected) = (word64(bytes, end), xxh3_64(&bytes[..end]));
        if bytes[..MAGIC.len()] != MAGIC || found != expected {
            let detail = format!("not a manifest: checksum {found:016x}, expected {expected:016x}");
            return wrong(end, detail);
        }
        match word32(bytes, 8) {
            VERSION => Manifest::decode_v1(path, &bytes[..end]),
            version => {
                let detail = format!("version {version} of a manifest; this build reads version {VERSION}");
                Err(Error::Unsupported { file: path.to_owned(), detail })
            }
        }
    }

    /// Decodes the manifest without its checksum, which was verified.
    fn decode_v1(path: &Path, bytes: &[u8]) -> Result<Manifest> {
        let wrong = |offset: usize, detail: String| Err(Error::corruption(path, offset as u64, detail));
        debug_assert!((bytes.len() - HEAD_BYTES).is_multiple_of(ENTRY_BYTES), "checked by `decode`");
        let at = |at: usize| Generation { number: word64(bytes, at), id: word64(bytes, at + 8) };
        let next = match word32(bytes, 12) {
            0 => Next::Nothing,
            1 => Next::Delta(at(16)),
            2 => Next::Base(at(16)),
            kind => return wrong(12, format!("kind {kind} of the next generation, expected 0, 1 or 2")),
        };
        let listed: Vec<Generation> = (HEAD_BYTES..bytes.len()).step_by(ENTRY_BYTES).map(at).collect();
        let manifest = Manifest { listed, next };
        match manifest.problem() {
            Some((offset, detail)) => wrong(offset, detail),
            None => Ok(manifest),
        }
    }

    /// Returns the highest generation number in the manifest, the pending generation included.
    pub fn newest(&self) -> u64 {
        let next = match self.next {
            Next::Nothing => 0,
            Next::Delta(next) | Next::Base(next) => next.number,
        };
        let newest = self.listed.last().map_or(0, |last| last.number).max(next);
        debug_assert!(self.listed.iter().all(|listed| listed.number <= newest), "{newest} of {self:?}");
        newest
    }

    /// Returns the generations that should exist, the base first. `base` is the base that was found
    /// and `deltas` are the numbers of the deltas that were found. The pending generation is
    /// included if it was published.
    pub fn expected(&self, base: Generation, deltas: &[u64]) -> Vec<Generation> {
        let expected: Vec<Generation> = match self.next {
            Next::Base(next) if next == base => vec![next],
            Next::Delta(next) if deltas.contains(&next.number) => {
                self.listed.iter().copied().chain([next]).collect()
            }
            _ => self.listed.clone(),
        };
        debug_assert!(expected.is_sorted_by(|a, b| a.number < b.number), "{expected:?} out of order");
        expected
    }
}

/// Makes the error for a listed file of the store at `target` that holds `found` instead of the
/// expected generation.
pub(super) fn wrong_generation(
    file: &Path,
    target: &Path,
    expected: Option<&Generation>,
    found: Generation,
) -> Error {
    let Generation { number, id } = found;
    let expected = match expected {
        Some(Generation { number, id }) => format!("has generation {number} with id {id:016x} in its place"),
        None => "lists no such generation".to_owned(),
    };
    Error::Mismatch {
        file: file.to_owned(),
        other: names::manifest(target),
        detail: format!("it is generation {number} with id {id:016x}, but the manifest {expected}"),
    }
}

/// Makes the error for a listed file of the store at `target` that does not exist.
pub(super) fn missing_generation(file: PathBuf, target: &Path, generation: u64) -> Error {
    let list = names::manifest(target);
    let detail = format!("it holds generation {generation}, which {} lists", list.display());
    Error::Missing { file, detail }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::MemFs;

    use super::*;

    fn list() -> Manifest {
        let generation = |number| Generation { number, id: 100 + number };
        Manifest {
            listed: vec![generation(0), generation(1), generation(4)],
            next: Next::Delta(generation(5)),
        }
    }

    /// Goal: a manifest is decoded as it was encoded, and its bytes follow the format. Method: each
    /// kind of pending generation; the first words are compared with handwritten values.
    #[test]
    fn round_trip() {
        for next in [Next::Nothing, list().next, Next::Base(Generation { number: 9, id: 1 })] {
            let written = Manifest { next, ..list() };
            let bytes = written.encode();
            assert_eq!(Manifest::decode(Path::new("m"), &bytes).unwrap(), written);
            assert_eq!(bytes.len(), 32 + 3 * 16 + 8);
        }
        let bytes = list().encode();
        assert_eq!(bytes[..16], *b"CAIRNGEN\x01\0\0\0\x01\0\0\0");
        assert_eq!(bytes[16..48], [5u64, 105, 0, 100].map(u64::to_le_bytes).concat());
    }

    /// Goal: a manifest that could not be read is not written. Method: the longest one, pending
    /// delta included, and one more.
    #[test]
    fn longest_manifest() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        fs.create_dir_all(Path::new("/s")).unwrap();
        let target = Path::new("/s/store.cairn");
        let generation = |number: usize| Generation { number: number as u64, id: 1 };
        let listed = |count: usize| (0..count).map(generation).collect::<Vec<_>>();
        let full = Manifest { listed: listed(LISTED_MAX), next: Next::Nothing };
        full.write(&fs, target).unwrap();
        assert_eq!(Manifest::read(&*fs, target).unwrap(), Some(full));
        for refused in [
            Manifest { listed: listed(LISTED_MAX + 1), next: Next::Nothing },
            Manifest { listed: listed(LISTED_MAX), next: Next::Delta(generation(LISTED_MAX)) },
        ] {
            assert!(matches!(refused.write(&fs, target), Err(Error::Invalid { .. })));
        }
    }

    /// Goal: all damage is detected. Method: each single bit flipped, the bytes cut at every
    /// length, the manifest repeated twice, and contradictions with a right checksum: numbers
    /// that do not ascend, an id of 0, a pending generation that cannot follow.
    #[test]
    fn damage_is_found() {
        let bytes = list().encode();
        let decode = |bytes: &[u8]| Manifest::decode(Path::new("m"), bytes);
        for at in 0..bytes.len() {
            assert!(decode(&bytes[..at]).is_err(), "{at} bytes");
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert!(decode(&changed).is_err(), "bit {bit} of byte {at}");
            }
        }
        assert!(decode(&bytes.repeat(2)).is_err());
        let generation = |number, id| Generation { number, id };
        let changes: [fn(&mut Manifest); 5] = [
            |manifest| manifest.listed.swap(0, 1),
            |manifest| manifest.listed[1].id = 0,
            |manifest| manifest.next = Next::Delta(Generation { number: 6, id: 1 }),
            |manifest| manifest.next = Next::Delta(Generation { number: 5, id: 0 }),
            |manifest| manifest.next = Next::Base(Generation { number: 3, id: 1 }),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut forged = list();
            change(&mut forged);
            assert!(decode(&forged.encode()).is_err(), "{number}");
        }
        let compacted = Manifest { next: Next::Base(generation(4, 1)), ..list() };
        assert_eq!(decode(&compacted.encode()).unwrap(), compacted);
    }
}
