//! Offsets beyond 4 GiB, on a sparse file.

use cairn_vfs::StdFs;

use super::*;

/// Goal: logs, values and offsets beyond 4 GiB work, with addresses of 8 bytes. Method: a log on
/// the real file system with a forged value of 5 GiB that is a hole in the file, and records after
/// it; index, look up, scan, append, verify. Nothing reads the hole, because an uncompressed value
/// is skipped.
#[test]
fn offsets_beyond_four_gib() {
    const HOLE: u64 = 5 << 30;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.spl");
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let mut writer = LogWriter::create_in(&fs, &path, &LogOptions::default()).unwrap();
    apply(&mut writer, &[put("before", "1"), put("after", "old")]);
    writer.close().unwrap();

    let file = fs.open(&path, OpenOptions::write()).unwrap();
    let mut header = LogHeader::read(&*file).unwrap();
    let head = crate::sparkey::record::RecordHead::put(4, HOLE);
    let mut record = [0; 20];
    head.encode(&mut record);
    file.write_all_at(&record[..head.head_bytes], header.data_end).unwrap();
    file.write_all_at(b"hole", header.data_end + head.head_bytes as u64).unwrap();
    header.data_end += head.record_bytes();
    file.set_len(header.data_end).unwrap();
    header.puts += 1;
    header.put_bytes += head.record_bytes();
    header.value_bytes_max = HOLE;
    file.write_all_at(&header.encode(), 0).unwrap();
    drop(file);

    let mut writer = LogWriter::append_in(&fs, &path, &LogOptions::default()).unwrap();
    apply(&mut writer, &[put("after", "2")]);
    writer.close().unwrap();
    for construction in [Construction::InMemory, Construction::Sorting { memory_bytes: 1 << 20 }] {
        let summary =
            build_index_in(&fs, &path, &IndexOptions::default().construction(construction)).unwrap();
        assert_eq!((summary.header.address_bytes, summary.header.hash_bytes), (8, 4));
        assert!(summary.header.data_end > 4 << 30);
    }
    for mode in [Mode::Mmap, Mode::Pread] {
        let reader = SparkeyReader::open_in(&fs, &path, &ReaderOptions::default().mode(mode)).unwrap();
        assert_eq!(reader.get(b"before").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(reader.get(b"after").unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(reader.value_reader(b"hole").unwrap().unwrap().remaining(), HOLE);
        assert!(reader.contains(b"hole").unwrap());
        assert_eq!(reader.verify().unwrap().entries, 3);
        let mut scan = reader.scan();
        let mut keys = Vec::new();
        while let Some(entry) = scan.next_entry().unwrap() {
            keys.push((entry.key().to_vec(), entry.value_bytes()));
        }
        assert_eq!(keys, [(b"before".to_vec(), 1), (b"hole".to_vec(), HOLE), (b"after".to_vec(), 1)]);
    }
}
