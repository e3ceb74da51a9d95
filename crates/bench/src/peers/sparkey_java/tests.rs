use super::*;
use crate::core::scratch::Scratch;
use crate::core::workload::{Dataset, Distribution, KeyShape, Lookup, ReadOrder, ValueShape};
use crate::stores::java::Api;
use crate::stores::java_frames::{write_keys, write_records};

/// Goal: Java builds a store, its readers answer correctly through both APIs, and a wrong
/// expectation is rejected. Method: a small store per compression and construction. Without jar or
/// JDK, the message names their expected places.
#[test]
fn java_builds_and_reads_or_says_what_is_missing() {
    let stop = Stop::default();
    let java = match SparkeyJava::find(&stop) {
        Ok(java) => java,
        Err(error) => {
            let text = error.to_string();
            assert!(std::env::var_os("CAIRN_REQUIRE_JAVA").is_none(), "{text}");
            return assert!(text.contains("CAIRN_SPARKEY_JAR") || text.contains("JDK"), "{text}");
        }
    };
    let choice = JavaChoice { apis: vec![Api::Entry, Api::Bytes], every_jdk: true };
    let scratch = Scratch::temporary("java").unwrap();
    let data = Dataset::synthetic(2_000, &KeyShape::default(), &ValueShape::Numbered { padding: 50 });
    let order = ReadOrder::new(&data, Distribution::Uniform, Lookup::Present, 3_000, 1);
    let (records, keys) = (scratch.path().join("records"), scratch.path().join("keys"));
    write_records(&records, &data).unwrap();
    let expected = write_keys(&keys, &order, usize::MAX).unwrap();
    assert_eq!(expected.found, 3_000);
    for (compression, construction) in
        [(Compression::None, Construction::InMemory), (Compression::Zstd, Construction::Sorting)]
    {
        let index = scratch.dir(&compression.to_string()).unwrap().join("data.spi");
        let built = java.build(&records, &index, compression, construction, &stop).unwrap();
        assert!(built.index_bytes.unwrap() > 16_000 && built.disk_bytes > built.index_bytes.unwrap());
        let readers = java.readers(&index, &choice, &stop).unwrap();
        assert!(readers.len() >= 2, "{readers:?}");
        let run = |expected| JavaRun {
            index: &index,
            keys: &keys,
            expected,
            threads: 2,
            warm_up: 0,
            iterations: 2,
            seconds: 0.01,
        };
        let reader = &readers[readers.len() - 1];
        assert_eq!(java.bench(reader, &run(expected), &stop).unwrap().len(), 2);
        let wrong = Outline { sum: expected.sum + 1, ..expected };
        let error = java.bench(reader, &run(wrong), &stop).unwrap_err();
        assert!(error.is_wrong_result() && error.to_string().contains("digest"), "{error}");
    }
}

/// Goal: frames have the documented format, and a limit takes whole chunks and returns the outline
/// of just those.
#[test]
fn frames_are_as_documented() {
    let scratch = Scratch::temporary("frames").unwrap();
    let path = scratch.path().join("file");
    let data = Dataset::synthetic(2, &KeyShape::default(), &ValueShape::default());
    write_records(&path, &data).unwrap();
    let bytes = StdFs::new().open(&path, OpenOptions::read()).unwrap().map().unwrap();
    let expected: &[u8] = b"\x05\0\0\0\x01\0\0\0key_00\x05\0\0\0\x01\0\0\0key_11";
    assert_eq!(&bytes[..], expected);

    let order = ReadOrder::new(&data, Distribution::Sequential, Lookup::Present, 5_000, 1);
    let outline = write_keys(&path, &order, 1_025).unwrap();
    let bytes = StdFs::new().open(&path, OpenOptions::read()).unwrap().map().unwrap();
    assert_eq!((outline.found, bytes.len()), (2_048, 2_048 * 9));
    assert_eq!(&bytes[..18], b"\x05\0\0\0key_0\x05\0\0\0key_1");
    // length + 31 * first + 17 * last, for the digits 0 and 1 in turn.
    assert_eq!(outline.sum, 1_024 * ((1 + 48 * 48) + (1 + 48 * 49)));
}

/// Goal: a reader is measured on every JDK, or on the newest that has it, through each selected
/// API.
#[test]
fn readers_are_chosen() {
    let jdk = |major: u32| Jdk {
        launcher: PathBuf::new(),
        major,
        description: format!("VM {major}"),
        label: major.to_string(),
    };
    let names = [("NEW".to_owned(), jdk(25)), ("OLD".to_owned(), jdk(25)), ("OLD".to_owned(), jdk(17))];
    let choose = |apis: &[Api], every_jdk| -> Vec<String> {
        let choice = JavaChoice { apis: apis.to_vec(), every_jdk };
        super::choose(&names, &choice).iter().map(JavaReader::contender).collect()
    };
    let newest = choose(&[Api::Entry], false);
    assert_eq!(newest, ["sparkey-java NEW entry (JDK 25)", "sparkey-java OLD entry (JDK 25)"]);
    let all = choose(&[Api::Entry, Api::Bytes], true);
    assert_eq!(all.len(), 6);
    assert!(all.contains(&"sparkey-java OLD bytes (JDK 17)".to_owned()));
}
