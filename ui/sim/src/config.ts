/** Settings by their paths, and the form that shows them. */
import type { Config, Json, Start } from "./types";

export function get(config: Config, path: string): Json {
  return path.split(".").reduce<Json>((at, name) => (at && typeof at === "object" && !Array.isArray(at) ? at[name] ?? null : null), config);
}

export function set(config: Config, path: string, value: Json): Config {
  const copy = structuredClone(config);
  const names = path.split(".");
  const last = names.pop()!;
  let at = copy;
  for (const name of names) {
    if (typeof at[name] !== "object" || at[name] === null) at[name] = {};
    at = at[name] as Config;
  }
  at[last] = value;
  return copy;
}

/** With one codec everywhere: what is said of single levels would go before it. */
export function withCodec(config: Config, codec: Json): Config {
  return set(set(set(config, "options.compression", codec), "options.compression_per_level", []), "options.bottommost_compression", null);
}

type Kind = "bytes" | "number" | "truth" | string[];
interface Field { path: string; label: string; kind: Kind; help: string }

const field = (path: string, label: string, kind: Kind, help: string): Field => ({ path, label, kind, help });

/** What the page lets one change; everything else is in the shared link's configuration. */
export const FIELDS: [string, Field[]][] = [
  ["Workload", [
    field("workload.traffic.mb_per_sec", "Writes, MB/s", "number", "Keys and values that clients write in a second"),
    field("workload.keys", "Keys", "number", "Different keys"),
    field("workload.value_bytes", "Value bytes", "number", "Bytes of a value"),
    field("workload.deletes", "Deletes", "number", "Share of writes that delete"),
    field("workload.reads.gets_per_sec", "Lookups/s", "number", "Point lookups a second"),
    field("duration_secs", "Seconds", "number", "Virtual time of the run"),
  ]],
  ["Options", [
    field("options.engine", "Engine", ["rocksdb", "cairn_kv"], "Whose rules hold"),
    field("options.compaction_style", "Compaction", ["leveled", "universal", "fifo", "lazy_leveled"], "How files are merged; lazy_leveled is Cairn's"),
    field("options.level_compaction_dynamic_level_bytes", "Dynamic levels", "truth", "Level sizes follow the last level"),
    field("options.write_buffer_size", "Memtable, MiB", "bytes", "write_buffer_size"),
    field("options.max_write_buffer_number", "Memtables", "number", "max_write_buffer_number"),
    field("options.max_bytes_for_level_base", "Level base, MiB", "bytes", "max_bytes_for_level_base"),
    field("options.max_bytes_for_level_multiplier", "Multiplier", "number", "max_bytes_for_level_multiplier"),
    field("options.target_file_size_base", "File, MiB", "bytes", "target_file_size_base"),
    field("options.level0_file_num_compaction_trigger", "L0 trigger", "number", "level0_file_num_compaction_trigger"),
    field("options.max_background_jobs", "Jobs", "number", "max_background_jobs"),
    field("options.max_subcompactions", "Subcompactions", "number", "max_subcompactions"),
    field("options.compression", "Compression", ["none", "snappy", "lz4", "zstd"], "compression"),
    field("options.bloom_bits_per_key", "Filter bits", "number", "Bits of filter a key"),
    field("options.block_cache_size", "Cache, MiB", "bytes", "Size of the block cache"),
  ]],
  ["Machine", [
    field("hardware.cores", "Cores", "number", "Cores"),
    field("hardware.disk.read_mb_per_sec", "Reads, MB/s", "number", "Sequential reads"),
    field("hardware.disk.write_mb_per_sec", "Writes, MB/s", "number", "Sequential writes"),
    field("hardware.disk.read_latency_us", "Latency, µs", "number", "Of a small read"),
    field("hardware.cpu.put_us", "Put, µs", "number", "Processor time of a write"),
  ]],
];

const MIB = 1048576;

function input(one: Field, value: Json): HTMLInputElement | HTMLSelectElement {
  if (Array.isArray(one.kind)) {
    const select = document.createElement("select");
    for (const word of one.kind) select.add(new Option(word, word, false, word === value));
    return select;
  }
  const input = document.createElement("input");
  if (one.kind === "truth") {
    input.type = "checkbox";
    input.checked = value === true;
  } else {
    input.type = "number";
    input.step = "any";
    input.min = "0";
    input.value = value === null ? "" : String(one.kind === "bytes" ? Number(value) / MIB : value);
  }
  return input;
}

function read(one: Field, element: HTMLInputElement | HTMLSelectElement): Json {
  if (one.kind === "truth") return (element as HTMLInputElement).checked;
  if (Array.isArray(one.kind)) return element.value;
  const value = Number(element.value);
  return one.kind === "bytes" ? Math.round(value * MIB) : value;
}

function select(label: string, id: string, words: [string, string][]): [HTMLLabelElement, HTMLSelectElement] {
  const wrap = document.createElement("label");
  wrap.textContent = label;
  const list = document.createElement("select");
  list.id = id;
  list.add(new Option("(as it is)", ""));
  for (const [value, text] of words) list.add(new Option(text, value));
  wrap.append(list);
  return [wrap, list];
}

/** Fills the form. `change` gets the configuration after each change. */
export function build(form: HTMLFormElement, start: Start, config: Config, side: string, change: (config: Config) => void, openFile: () => void): void {
  form.replaceChildren();
  const title = document.createElement("h2");
  title.textContent = side;
  const [machine, machines] = select("Machine", "hardware", start.hardware.map((it) => [it.id, String(it.profile.hardware["name"])]));
  machines.onchange = () => {
    const found = start.hardware.find((it) => it.id === machines.value);
    if (!found) return;
    let next = set(config, "hardware", found.profile.hardware);
    if (found.profile.compression) next = withCodec(next, found.profile.compression);
    change(next);
  };
  const [profile, profiles] = select("Workload profile", "workload", start.workloads.map((it) => [it.id, it.profile.name]));
  profiles.onchange = () => {
    const found = start.workloads.find((it) => it.id === profiles.value);
    if (found) change(set(config, "workload", found.profile.workload));
  };
  const open = document.createElement("button");
  open.type = "button";
  open.id = "open";
  open.textContent = "Open OPTIONS file";
  open.onclick = openFile;
  form.append(title, profile, machine, open);
  for (const [legend, fields] of FIELDS) {
    const set_ = document.createElement("fieldset");
    const name = document.createElement("legend");
    name.textContent = legend;
    set_.append(name);
    for (const one of fields) {
      const label = document.createElement("label");
      label.textContent = one.label;
      label.title = one.help;
      const element = input(one, get(config, one.path));
      element.name = one.path;
      element.onchange = () => {
        let next = set(config, one.path, read(one, element));
        if (one.path === "workload.traffic.mb_per_sec") next = set(config, "workload.traffic", { kind: "constant", mb_per_sec: read(one, element) });
        if (one.path === "options.compression") next = withCodec(config, element.value);
        // Engines have defaults of their own.
        if (one.path === "options.engine") next = set(config, "options", element.value === "cairn_kv" ? start.kv : start.rocksdb);
        change(next);
      };
      label.append(element);
      set_.append(label);
    }
    form.append(set_);
  }
}
