//! A [`cairn_hash`] table whose lookups are recorded. [`TracedReader`] has the methods of
//! [`Reader`] and dereferences to it.
//!
//! Not recorded: [`Reader::scan`], [`Reader::verify`] and all other operations that read the whole
//! table.

use std::borrow::Cow;
use std::ops::Deref;

use cairn_hash::Result;
use cairn_hash::table::{Reader, ValueReader};

use crate::event::Detail;
use crate::recorder::Recorder;

/// A [`Reader`] whose lookups are recorded. Without a recorder, a lookup costs one extra branch.
#[derive(Debug)]
pub struct TracedReader {
    reader: Reader,
    recorder: Option<Recorder>,
}

impl TracedReader {
    /// Wraps a reader so that lookups through the returned handle are recorded. If `recorder` is
    /// `None`, nothing is recorded.
    pub fn new(reader: Reader, recorder: Option<Recorder>) -> TracedReader {
        TracedReader { reader, recorder }
    }

    /// Like [`Reader::get`].
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        let value = self.reader.get(key)?;
        self.record(key, value.as_ref().map(|value| value.len()));
        Ok(value)
    }

    /// Like [`Reader::get_into`].
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.reader.get_into(key, value)?;
        self.record(key, found.then_some(value.len()));
        Ok(found)
    }

    /// Like [`Reader::contains`]. Recorded as a lookup; the length of a value that exists is
    /// unknown.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        let found = self.reader.contains(key)?;
        if let Some(recorder) = &self.recorder {
            recorder.record(0, key, Detail::Get(if found { None } else { Some(None) }));
        }
        Ok(found)
    }

    /// Like [`Reader::get_reader`]. Recorded as one lookup, however much of the value is read.
    pub fn get_reader(&self, key: &[u8]) -> Result<Option<ValueReader<'_>>> {
        let value = self.reader.get_reader(key)?;
        self.record(key, value.as_ref().map(|value| value.remaining() as usize));
        Ok(value)
    }

    /// Like [`Reader::get_many`]. The lookups are recorded as one batch.
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut found: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        let Some(recorder) = &self.recorder else { return self.reader.get_many(keys, found) };
        let mut lengths = vec![None; keys.len()];
        self.reader.get_many(keys, |position, value| {
            if let Some(length) = lengths.get_mut(position) {
                *length = value.map(|value| value.len() as u64);
            }
            found(position, value);
        })?;
        recorder.batch(|records| {
            for (key, length) in keys.iter().zip(&lengths) {
                records.record(0, key.as_ref(), Detail::Get(Some(*length)));
            }
        });
        Ok(())
    }

    #[inline]
    fn record(&self, key: &[u8], found: Option<usize>) {
        if let Some(recorder) = &self.recorder {
            recorder.get(0, key, found);
        }
    }
}

impl Deref for TracedReader {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use cairn_hash::table::{BuildOptions, Builder, ReaderOptions};
    use cairn_vfs::{Fs, MemFs};

    use super::*;
    use crate::{Options, Trace};

    /// Goal: lookups are recorded with their outcomes. Method: every lookup method, on present and
    /// on absent keys.
    #[test]
    fn lookups_are_recorded() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let path = Path::new("/store.cairn");
        let mut builder =
            Builder::create_in(&fs, path, BuildOptions::default(), &mut cairn_vfs::SeededRng::new(1))
                .unwrap();
        builder.put(b"a", b"one").unwrap();
        builder.put(b"b", b"four").unwrap();
        builder.finish().unwrap();
        let recorder = Recorder::create_in(&fs, Path::new("/t"), Options::default()).unwrap();
        let reader = Reader::open_in(&fs, path, ReaderOptions::default()).unwrap();
        let reader = TracedReader::new(reader, Some(recorder.clone()));
        assert_eq!(reader.get(b"a").unwrap().as_deref(), Some(&b"one"[..]));
        assert!(!reader.get_into(b"x", &mut Vec::new()).unwrap());
        let mut found = 0;
        reader.get_many(&[b"b", b"y"], |_, value| found += usize::from(value.is_some())).unwrap();
        assert_eq!((found, reader.len()), (1, 2));
        assert!(reader.contains(b"a").unwrap() && !reader.contains(b"x").unwrap());
        assert_eq!(reader.get_reader(b"b").unwrap().unwrap().remaining(), 4);
        assert!(reader.get_reader(b"x").unwrap().is_none());
        recorder.finish().unwrap();
        let trace = Trace::open(&*fs, Path::new("/t")).unwrap();
        let seen: Vec<(Detail<'_>, bool)> =
            trace.events().map(|event| event.unwrap()).map(|event| (event.detail, event.joined)).collect();
        let get = |found: Option<u64>| Detail::Get(Some(found));
        assert_eq!(
            seen,
            [
                (get(Some(3)), false),
                (get(None), false),
                (get(Some(4)), false),
                (get(None), true),
                (Detail::Get(None), false),
                (get(None), false),
                (get(Some(4)), false),
                (get(None), false),
            ]
        );
    }
}
