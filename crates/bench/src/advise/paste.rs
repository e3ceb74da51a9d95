//! Settings as they are pasted into a program.

use super::candidate::Candidate;
use super::question::Workload;
use super::verify::durability_name;
use crate::suite_kv::catalog;
use crate::workload::Durability;

/// The candidate's settings in its own language: Rust, an OPTIONS file, pragmas.
pub(super) fn settings(candidate: &Candidate, workload: &Workload) -> String {
    let settings = &candidate.settings;
    let (cache, buffer) = (settings.cache_bytes, settings.write_buffer_bytes);
    let (block, bits) = (settings.block_bytes, settings.filter_bits);
    let durability = settings.durability;
    let waits = durability == Durability::Sync;
    match candidate.store.as_str() {
        "cairn" => format!(
            "let keyspace = cairn_kv::KeyspaceOptions {{\n    memtable_bytes: {buffer},\n    block_bytes: {block},\n    filter_bits_per_key: {bits:.1},\n    \
             compression: vec![cairn_kv::Compression::None],\n    ..Default::default()\n}};\nlet db = cairn_kv::Db::builder(\"store\")\n    .cache_bytes({cache})\n    \
             .durability(cairn_kv::Durability::{})\n    .default_keyspace(keyspace)\n    .open()?;\n",
            durability_name(durability)
        ),
        catalog::CONSTANT => "let mut builder = cairn_hash::table::Builder::create(\"store.cairn\", cairn_hash::table::BuildOptions::default())?;\n\
             // builder.put(key, value)? for each entry, then\nbuilder.finish()?;\n\
             let reader = cairn_hash::table::Reader::open(\"store.cairn\", cairn_hash::table::ReaderOptions::default())?;\n"
            .to_owned(),
        "rocksdb" => format!(
            "[DBOptions]\n  max_background_jobs=2\n  max_open_files=-1\n[CFOptions \"default\"]\n  write_buffer_size={buffer}\n  compression=kNoCompression\n\
             [TableOptions/BlockBasedTable \"default\"]\n  block_size={block}\n  filter_policy=bloomfilter:{bits:.0}:false\n  data_block_index_type=kDataBlockBinaryAndHash\n\
             # block cache, in code: HyperClockCache of {cache} bytes\n# each write: {}\n",
            match durability {
                Durability::Sync => "WriteOptions::sync = true",
                Durability::Buffered => "WriteOptions::sync = false",
                Durability::Memory => "WriteOptions::disableWAL = true",
            }
        ),
        "leveldb" => format!(
            "options.write_buffer_size = {buffer};\noptions.block_cache = leveldb::NewLRUCache({cache});\noptions.block_size = {block};\n\
             options.filter_policy = leveldb::NewBloomFilterPolicy({bits:.0});\noptions.compression = leveldb::kNoCompression;\nwrite_options.sync = {waits};\n"
        ),
        "sqlite" => format!(
            "PRAGMA journal_mode = WAL;\nPRAGMA synchronous = {};\nPRAGMA cache_size = -{};\nCREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;\n",
            match durability {
                Durability::Sync => "FULL",
                Durability::Buffered => "NORMAL",
                Durability::Memory => "OFF",
            },
            cache / 1024
        ),
        "lmdb" => format!(
            "mdb_env_set_mapsize(env, {}UL);\nmdb_env_open(env, \"store\", MDB_NOTLS | MDB_NORDAHEAD{}, 0644);\n",
            settings.map_bytes,
            if waits { "" } else { " | MDB_NOSYNC" }
        ),
        "redb" => format!(
            "let db = redb::Database::builder().set_cache_size({cache}).create(\"store.redb\")?;\n// each write transaction: set_durability(redb::Durability::{})\n",
            if waits { "Immediate" } else { "None" }
        ),
        "fjall" => format!(
            "let db = fjall::Database::builder(\"store\").cache_size({cache}).open()?;\nlet entries = db.keyspace(\"entries\", || fjall::KeyspaceCreateOptions::default().max_memtable_size({buffer}))?;\n{}",
            if waits { "// after each write: db.persist(fjall::PersistMode::SyncData)?\n" } else { "" }
        ),
        "sled" => format!(
            "let db = sled::Config::new().path(\"store\").cache_capacity({cache}).mode(sled::Mode::HighThroughput).open()?;\n{}",
            if waits { "// after each write: db.flush()?\n" } else { "" }
        ),
        other => format!("{other}: {} bytes of cache, {} entries\n", cache, workload.records),
    }
}
