use cairn_vfs::{CrashImage, FaultFs, FaultOptions, MemFs};

use super::*;
use crate::reader::{Ending, Trace};

fn header(keys: KeyForm, timed: bool) -> Header {
    Header { keys, timed, started_ns: 1, file_id: 2, sample: 1, adaptive: None, source: "test".to_owned() }
}

fn put(time_ns: u64, key: &[u8]) -> Event<'_> {
    let key_bytes = key.len() as u32;
    Event { time_ns, lane: 9, joined: false, keyspace: 0, key, key_bytes, detail: Detail::Put(8) }
}

/// Goal: a reader returns the events that an importer added, over many blocks. Method: 40,000
/// events, some with times that go back.
#[test]
fn events_come_back() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let path = Path::new("/t");
    let mut writer = Writer::create(&fs, path, &header(KeyForm::Raw, true)).unwrap();
    let keys: Vec<String> = (0..40_000).map(|number| format!("key {}", number * 7 % 1000)).collect();
    for (number, key) in keys.iter().enumerate() {
        let jump = if number == 20_000 { 0 } else { 10 };
        writer.add(&put(number as u64 * jump, key.as_bytes())).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), 40_000);
    let trace = Trace::open(&*fs, path).unwrap();
    assert_eq!(
        (trace.records(), trace.lanes(), trace.ending()),
        (40_000, 1, Ending::Complete { dropped: 0 })
    );
    let mut before = 0;
    for (number, event) in trace.events().enumerate() {
        let event = event.unwrap();
        assert_eq!(event.key, keys[number].as_bytes());
        assert!(event.time_ns >= before && (number == 20_000 || event.time_ns == number as u64 * 10));
        before = event.time_ns;
    }
    assert!(Writer::create(&fs, path, &header(KeyForm::Raw, true)).is_err(), "the file is there");
}

/// Goal: without times events are numbered; keys in the wrong form are refused.
#[test]
fn times_are_ordered_and_bad_keys_refused() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut writer = Writer::create(&fs, Path::new("/a"), &header(KeyForm::Hashed, false)).unwrap();
    let error = writer.add(&put(0, b"nine byte")).unwrap_err().to_string();
    assert!(error.contains("9 bytes"), "{error}");
    writer.add(&put(77, b"8 bytes.")).unwrap();
    writer.add(&put(77, b"8 bytes.")).unwrap();
    writer.finish().unwrap();
    let trace = Trace::open(&*fs, Path::new("/a")).unwrap();
    let times: Vec<u64> = trace.events().map(|event| event.unwrap().time_ns).collect();
    assert_eq!((times, trace.header().timed), (vec![0, 1], false));
    let mut writer = Writer::create(&fs, Path::new("/b"), &header(KeyForm::Raw, true)).unwrap();
    assert!(writer.add(&put(0, &vec![0; KEY_BYTES_MAX + 1])).is_err());
    writer.add(&put(0, &vec![0; KEY_BYTES_MAX])).unwrap();
    writer.finish().unwrap();
    assert_eq!(Trace::open(&*fs, Path::new("/b")).unwrap().events().count(), 1);
}

/// Goal: a finished trace survives a power loss with its name; an unfinished one need not. Method:
/// a crash image with only the data that is guaranteed to be on disk.
#[test]
fn finished_traces_are_durable() {
    let faults = FaultFs::new(FaultOptions::seeded(1));
    let fs: Arc<dyn Fs> = Arc::new(faults.clone());
    let mut writer = Writer::create(&fs, Path::new("/t"), &header(KeyForm::Raw, true)).unwrap();
    writer.add(&put(1, b"a key")).unwrap();
    assert!(!faults.crash_point().image(CrashImage::None).exists(Path::new("/t")).unwrap());
    writer.finish().unwrap();
    let trace = Trace::open(&faults.crash(CrashImage::None), Path::new("/t")).unwrap();
    assert_eq!((trace.records(), trace.ending()), (1, Ending::Complete { dropped: 0 }));
}

/// Goal: a full disk is an error. Method: a quota after the first block.
#[test]
fn full_disk_is_an_error() {
    let faults = FaultFs::new(FaultOptions::seeded(1));
    faults.set_quota(Some(100_000));
    let fs: Arc<dyn Fs> = Arc::new(faults);
    let mut writer = Writer::create(&fs, Path::new("/t"), &header(KeyForm::Raw, true)).unwrap();
    let error = (0..100_000).find_map(|number| writer.add(&put(number, b"a key")).err());
    assert!(error.unwrap().is_full());
    drop(writer);
    let trace = Trace::open(&*fs, Path::new("/t")).unwrap();
    assert!(matches!(trace.ending(), Ending::Cut { .. }) && trace.records() > 5_000);
}
