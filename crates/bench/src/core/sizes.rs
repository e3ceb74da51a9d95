//! The size of the store in which a lookup was measured.

use crate::core::results::{Case, Measurement, Run};

/// The metric of a store's size, keys and values included.
pub(crate) const BYTES_PER_ENTRY: &str = "bytes per entry";

/// Returns the size of the store that `reader` read, if it was measured and verified. If builders
/// and readers are separate contenders, it is the size of the builder whose name is a prefix of the
/// reader's, or else of the first builder of its family.
pub(crate) fn size_of_store<'a>(run: &'a Run, reader: &Measurement) -> Option<&'a Measurement> {
    let family = family(run, &reader.contender)?;
    let related = || {
        run.measurements.iter().filter(|size| {
            size.metric == BYTES_PER_ENTRY
                && size.verified
                && is_of_store(&size.case, &reader.case)
                && self::family(run, &size.contender) == Some(family)
        })
    };
    let same = related().find(|size| size.contender == reader.contender);
    let prefix = related()
        .filter(|size| reader.contender.starts_with(size.contender.as_str()))
        .max_by_key(|size| size.contender.len());
    same.or(prefix).or_else(|| related().next())
}

fn family<'a>(run: &'a Run, contender: &str) -> Option<&'a str> {
    let found = run.contenders.iter().find(|known| known.name == contender);
    found.map(|known| known.family.as_str())
}

/// Returns true if both cases have stores of the same records in the same compression.
fn is_of_store(a: &Case, b: &Case) -> bool {
    let store = |case: &Case| (case.entries, case.value_bytes);
    a.dataset == b.dataset && a.compression == b.compression && store(a) == store(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::results::Contender;
    use crate::core::testing::{BYTES, THROUGHPUT, case, measurement, sample_run};

    /// Goal: a reader is matched with the store that it read, and no other. Method: builders with
    /// names that share a prefix, one with another name in the family, and sizes of other records,
    /// of another compression and unverified ones.
    #[test]
    fn readers_are_matched_with_their_store() {
        let mut run = sample_run();
        let contender = |name: &str, family: &str| Contender {
            name: name.to_owned(),
            family: family.to_owned(),
            ..run.contenders[0].clone()
        };
        run.contenders = vec![
            contender("a", "a"),
            contender("a b", "a"),
            contender("a b mmap", "a"),
            contender("a mmap", "a"),
            contender("java build", "java"),
            contender("JAVA READER", "java"),
        ];
        let (size, get) = (case("size", "", 0), case("get", "present", 1));
        let sized = |name: &str, case: &Case, bytes: f64| measurement(name, case, BYTES, &[bytes]);
        let other_size = Case { entries: 7, ..size.clone() };
        let compressed = Case { compression: "zstd".to_owned(), ..size.clone() };
        let unchecked = Measurement { verified: false, ..sized("java build", &size, 4.0) };
        run.measurements = vec![
            sized("a", &other_size, 1.0),
            sized("a", &compressed, 2.0),
            unchecked,
            sized("a", &size, 10.0),
            sized("a b", &size, 20.0),
        ];
        let bytes = |run: &Run, reader: &str| {
            size_of_store(run, &measurement(reader, &get, THROUGHPUT, &[1.0])).map(|size| size.median)
        };
        assert_eq!((bytes(&run, "a mmap"), bytes(&run, "a b mmap")), (Some(10.0), Some(20.0)));
        assert_eq!(
            (bytes(&run, "a"), bytes(&run, "JAVA READER"), bytes(&run, "b")),
            (Some(10.0), None, None)
        );
        run.measurements.push(sized("java build", &size, 30.0));
        assert_eq!(bytes(&run, "JAVA READER"), Some(30.0));
    }
}
