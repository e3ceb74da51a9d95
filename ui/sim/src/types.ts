/** Messages of the server. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Config = { [name: string]: Json };

export interface Point {
  secs: number; writes: number; user_mb: number; flush_mb: number; compact_mb: number; write_amp: number; space_amp: number;
  read_runs: number; levels: number[]; debt_bytes: number; sealed: number; stalled: number; cpu: number;
  disk_read: number; disk_write: number; jobs: number; put_us: [number, number]; get_us: [number, number];
  stall: { state: string; cause?: string }; bottleneck: { kind: string; what?: string };
}

/** Bounds in the key space, bytes, age in seconds, whether a job reads it, number of files. */
export type FileBar = [number, number, number, number, number, number];

export interface Job { id: number; from: number | null; to: number; text: string; done: number; is_cpu_bound: boolean }

export interface Frame {
  point: Point; levels: FileBar[][][]; jobs: Job[]; memtables: [number, number]; explain: string | null;
}

export interface Start {
  config: Config; kv: Config; rocksdb: Config; badge: string | null;
  hardware: { id: string; profile: { compression: string | null; hardware: Config } }[];
  workloads: { id: string; profile: { name: string; description: string; workload: Config } }[];
}

/** Options read from a file, the number of those without a model, and notes on the others. */
export interface Imported { options: Config; ignored: number; notes: string[] }

export interface Results { outcome: string; counters: { cpu_bound_jobs: number; io_bound_jobs: number; [name: string]: Json }; [name: string]: Json }
