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

/** Sets one codec for all levels, and drops the codecs of single levels, which would take precedence. */
export function withCodec(config: Config, codec: Json): Config {
  return set(set(set(config, "options.compression", codec), "options.compression_per_level", []), "options.bottommost_compression", null);
}

/** Sets a constant rate of writes, in MB/s. */
export function withRate(config: Config, rate: Json): Config {
  return set(config, "workload.traffic", { kind: "constant", mb_per_sec: rate });
}

type Kind = "bytes" | "number" | "truth" | string[];
interface Field { path: string; label: string; kind: Kind; help: string }

const field = (path: string, label: string, kind: Kind, help: string): Field => ({ path, label, kind, help });

/** The settings in the form. All others come from the configuration in the link. */
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

function input(one: Field): HTMLInputElement | HTMLSelectElement {
  if (Array.isArray(one.kind)) {
    const select = document.createElement("select");
    for (const word of one.kind) select.add(new Option(word, word));
    return select;
  }
  const input = document.createElement("input");
  if (one.kind === "truth") input.type = "checkbox";
  else {
    input.type = "number";
    input.step = "any";
    input.min = "0";
  }
  return input;
}

function write(one: Field, element: HTMLInputElement | HTMLSelectElement, value: Json): void {
  if (one.kind === "truth") (element as HTMLInputElement).checked = value === true;
  else element.value = value === null ? "" : String(one.kind === "bytes" ? Number(value) / MIB : value);
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

/** The choice between the two configurations. */
function sides(choose: (side: number) => void): [HTMLFieldSetElement, HTMLInputElement[]] {
  const set = document.createElement("fieldset");
  set.className = "which";
  const legend = document.createElement("legend");
  legend.textContent = "Configuration";
  set.append(legend);
  const buttons = ["A", "B"].map((name, side) => {
    const label = document.createElement("label");
    const button = document.createElement("input");
    button.type = "radio";
    button.name = "side";
    button.onchange = () => choose(side);
    label.append(button, name);
    set.append(label);
    return button;
  });
  return [set, buttons];
}

const same = (a: Json | undefined, b: Json): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Callbacks of the form. `change` gets the configuration after each change. */
interface Told { choose: (side: number) => void; change: (config: Config) => void; openFile: () => void }

/** Builds the form. The returned function fills it with the configuration of a side; fields are kept, so that the focus is too. */
export function build(form: HTMLFormElement, start: Start, { choose, change, openFile }: Told): (config: Config, side: number, count: number) => void {
  let config = start.config;
  const [which, buttons] = sides(choose);
  const title = document.createElement("h2");
  title.textContent = "Configuration";
  const [machine, machines] = select("Machine", "hardware", start.hardware.map((it) => [it.id, String(it.profile.hardware["name"])]));
  const machineOf = () => start.hardware.find((it) => it.id === machines.value);
  machines.onchange = () => {
    const found = machineOf();
    if (!found) return;
    let next = set(config, "hardware", found.profile.hardware);
    if (found.profile.compression) next = withCodec(next, found.profile.compression);
    change(next);
  };
  const [profile, profiles] = select("Workload profile", "workload", start.workloads.map((it) => [it.id, it.profile.name]));
  const profileOf = () => start.workloads.find((it) => it.id === profiles.value);
  profiles.onchange = () => {
    const found = profileOf();
    if (found) change(set(config, "workload", found.profile.workload));
  };
  const open = document.createElement("button");
  open.type = "button";
  open.id = "open";
  open.textContent = "Open OPTIONS file";
  open.onclick = openFile;
  form.append(title, which, profile, machine, open);
  const fill: (() => void)[] = [];
  for (const [legend, fields] of FIELDS) {
    const set_ = document.createElement("fieldset");
    const name = document.createElement("legend");
    name.textContent = legend;
    set_.append(name);
    for (const one of fields) {
      const label = document.createElement("label");
      label.textContent = one.label;
      label.title = one.help;
      const element = input(one);
      element.name = one.path;
      fill.push(() => write(one, element, get(config, one.path)));
      element.onchange = () => {
        let next = set(config, one.path, read(one, element));
        if (one.path === "workload.traffic.mb_per_sec") next = withRate(config, read(one, element));
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
  return (next, side, count) => {
    config = next;
    title.hidden = count > 1;
    which.hidden = count < 2;
    buttons[side]!.checked = true;
    fill.forEach((it) => it());
    // The lists show a profile as long as the configuration equals it.
    if (!same(machineOf()?.profile.hardware, config["hardware"]!)) machines.value = "";
    if (!same(profileOf()?.profile.workload, config["workload"]!)) profiles.value = "";
  };
}
