//! Sorting records by their keys.

/// Records, to be put in order. In memory: some 24 bytes for each besides its own.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// The first bytes of the key, as a number that sorts as they do.
    head: u64,
    start: usize,
    key: u32,
    value: u32,
}

fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}

impl Sorter {
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend(key);
        self.bytes.extend(value);
        // Records are parts of a page.
        self.places.push(Place { head: head(key), start, key: key.len() as u32, value: value.len() as u32 });
    }

    fn key(&self, place: &Place) -> &[u8] {
        self.bytes.get(place.start..place.start + place.key as usize).unwrap_or_default()
    }

    /// Puts them in order.
    pub(crate) fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| self.key(a).cmp(self.key(b))));
        self.places = places;
    }

    /// Keys and values, in the order that they are in.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.places.iter().map(|place| {
            let end = place.start + place.key as usize;
            let value = self.bytes.get(end..end + place.value as usize).unwrap_or_default();
            (self.key(place), value)
        })
    }
}
