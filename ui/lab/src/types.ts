/** Messages of the server. */
export interface Start { version: string; results: string; history: string; may_run: boolean; suites: { suite: string; what: string }[] }

export type StoreKind = "kv" | "hash" | "sparkey" | "sql" | "folder" | "other" | "missing";
export interface Place { place: number; path: string; kind?: StoreKind; error?: string; entries?: { entry: string; kind: StoreKind }[]; more?: boolean }

export interface RunLine {
  run: string; error?: string; suite: string; started: string; mode: string; figures: number; contenders: string[];
  machine: string; commit: string | null; stopped: boolean;
}
export interface Runs { runs: RunLine[]; more: number }

export interface Job {
  id: number; title: string; started: string; ours: boolean; running: boolean; ok: boolean | null; how: string | null;
  progress: { at: number; of: number; name: string } | null;
}

export interface Point { started: string; value: number; low: number; high: number; machine: string; commit: string; unit: string; higher_is_better: boolean }
/** `told_apart` has, for each series, the words that distinguish it from others of its name; empty if there are none. */
export interface History { series: { name: string; points: Point[] }[]; told_apart: string[]; count: number }

/** Bytes of a key or value: as text, or in hexadecimal. */
export interface Shown { text?: string; hex?: string; bytes: number; cut: boolean }
/** `next` is the key to continue from; without one, `more` says whether there are more entries. */
export interface Entries { entries: { key: Shown; value: Shown }[]; next: string | null; more?: boolean }

export interface KvTable {
  number: number; file: string; level: number; run: number; bytes: number; raw_bytes: number; entries: number; tombstones: number;
  merges: number; range_tombstones: number; smallest: Shown; largest: Shown; first_write: number; last_write: number; blocks: number;
  data_bytes: number; filter_bytes: number; index_bytes: number; compression: string; filter: string | null;
}
export interface Keyspace {
  name: string; ttl_secs: number | null; merge_operator: string | null; memtable_bytes: number; tables: number; table_bytes: number;
  table_entries: number; levels: { level: number; runs: number; tables: number; bytes: number; entries: number }[]; blob_bytes: number;
  blob_garbage_bytes: number; pending_compaction_bytes: number; files: KvTable[];
}
export interface KvStore { kind: "kv"; path: string; open_elsewhere: boolean; last_write: number; keyspaces: Keyspace[] }
export interface Block { block: number; offset: number; bytes: number; raw_bytes: number; entries: number; tombstones: number; first: Shown; last: Shown }

export interface Generation {
  file: string; id: string; generation: number; delta: boolean; entries: number; tombstones: number; records: number; key_bytes: number; value_bytes: number;
  key_bytes_max: number; value_bytes_max: number; data_bytes: number; blob_bytes: number; index_bytes: number; index_bytes_per_entry: number;
  dictionary_bytes: number; file_bytes: number; compression: string; fixed_width: boolean;
  fill: { share: number; lines_by_slots: number[]; home_lines: number; tail_lines: number; passed_on: number; partitions: number };
}
export interface Pair {
  index: string; log: string; entries: number; records: number; deletes: number; compression: string; block_bytes: number; log_bytes: number; index_bytes: number;
  index_bytes_per_entry: number; hash_bits: number; address_bits: number; slots: number; displacement_max: number; displacement_mean: number; garbage_bytes: number; fill: number;
}
export interface HashStore { kind: "hash" | "sparkey"; path: string; generations?: Generation[]; pair?: Pair }

export interface Level { level: number; pages: number; packed_pages: number; records: number; bytes: number; free_bytes: number; fill: number[] }
export interface Tree {
  name: string; root: number; levels: Level[]; long_pages: number; forms: { form: string; columns: number }[];
  damage: { error: string; file: string | null; offset: number | null } | null;
}
export interface SqlTable {
  name: string; columns: { name: string; type: string; nullable: boolean }[]; primary_key: string[]; rows: Tree;
  indexes: { name: string; unique: boolean; columns: string[]; tree: Tree }[];
}
export interface SqlStore { kind: "sql"; path: string; page_size: number; pages: number; free_pages: number; catalog: Tree; tables: SqlTable[] }
export interface Rows { columns: string[]; rows: string[][]; more: boolean }
export interface Verified { sound: boolean; what: string; damage: { file: string; error: string }[]; open_elsewhere?: boolean }

export type Store = KvStore | HashStore | SqlStore;
