//! Keys kept in memory for as long as other transactions need information about their rows.

use std::ops::Deref;

use cairn_vfs::sync::Arc;

/// Number of bytes stored inline. This fits the keys of most tables, and the keys of most indexes
/// with the primary key appended. A [`Key`] takes 24 bytes.
const SHORT: usize = 22;

/// The length of a short key is a byte.
const _: () = assert!(SHORT <= u8::MAX as usize);
/// Five lists hold the key of a changed row.
const _: () = assert!(size_of::<Key>() == 24);

/// A key. A short one is stored inline; a long one is shared.
///
/// The key of a changed row is in five lists. Separate memory for each key would have to be
/// allocated and freed, its references counted, and every comparison would follow a pointer to it.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Arc<[u8]>),
}

impl Key {
    #[inline]
    pub(crate) fn new(key: &[u8]) -> Key {
        let mut bytes = [0; SHORT];
        let made = match bytes.get_mut(..key.len()) {
            Some(place) => {
                place.copy_from_slice(key);
                Key::Short { len: key.len() as u8, bytes }
            }
            None => Key::Long(key.into()),
        };
        debug_assert!(*made == *key, "a key of {} bytes became one of {}", key.len(), made.len());
        made
    }
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            // The length never exceeds the array.
            Key::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Key::Long(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        **self == **other
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: keys of all lengths around the inline limit equal the bytes they were made from, and
    /// sort like them.
    #[test]
    fn keys_equal_their_bytes() {
        let bytes: Vec<u8> = (0..60).map(|at| if at < 5 { 200 } else { at }).collect();
        let (zeros, lens) = ([0; 30], 0..30_usize);
        let mut keys: Vec<&[u8]> = lens.clone().map(|len| &bytes[..len]).collect();
        keys.extend(lens.map(|len| &zeros[..len]));
        keys.extend([&bytes[10..], &bytes[35..40], &bytes[3..11]]);
        assert_eq!(size_of::<Key>(), 24);
        for a in &keys {
            assert_eq!(*Key::new(a), **a);
            assert_eq!(*Key::new(a).clone(), **a);
            for b in &keys {
                assert_eq!(Key::new(a).cmp(&Key::new(b)), a.cmp(b));
                assert_eq!(Key::new(a) == Key::new(b), a == b);
            }
        }
    }
}
