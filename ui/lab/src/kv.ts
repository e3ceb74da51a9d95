/** A key-value store: its tree, its tables, their blocks. */
import { bytes, count, h, percent, svg } from "../../shared/dom";
import { alert, button, facts, shown, table } from "./parts";
import { entries, type Ask } from "./store";
import type { Block, Keyspace, KvStore, KvTable, Shown } from "./types";

export function kv(box: HTMLElement, store: KvStore, of: Ask): void {
  if (store.open_elsewhere) {
    box.append(h("p", { class: "note" }, h("strong", {}, "In use: "), "another process has this store open for writing. The view shows the state at the time it was read; open it again for a newer one."));
  }
  const inside = h("div", {});
  inside.style.display = "contents";
  const show = (keyspace: Keyspace) => inside.replaceChildren(...view(keyspace, of));
  if (store.keyspaces.length > 1) {
    const choice = h("select", { id: "keyspace" }, store.keyspaces.map((it) => h("option", { value: it.name }, it.name)));
    choice.onchange = () => show(store.keyspaces.find((it) => it.name === choice.value)!);
    box.append(h("p", { class: "row" }, h("label", {}, "Keyspace ", choice)));
  }
  box.append(inside);
  if (store.keyspaces[0]) show(store.keyspaces[0]);
}

const share = (part: number, whole: number): string => whole > 0 ? percent(part / whole) : "–";

function view(keyspace: Keyspace, of: Ask): Node[] {
  const { files } = keyspace;
  const sum = (figure: (file: KvTable) => number) => files.reduce((total, file) => total + figure(file), 0);
  const parts: [string, string | number][] = [
    ["Tables", `${count(keyspace.tables)}, ${bytes(keyspace.table_bytes)}`], ["Entries in tables", count(keyspace.table_entries)],
    ["In memory, from the log", bytes(keyspace.memtable_bytes)], ["Tombstones", count(sum((it) => it.tombstones + it.range_tombstones))],
    ["Data blocks", bytes(sum((it) => it.data_bytes))], ["Filters", bytes(sum((it) => it.filter_bytes))], ["Indexes", bytes(sum((it) => it.index_bytes))],
    ["Of keys and values", share(keyspace.table_bytes, sum((it) => it.raw_bytes))], ["To compact", bytes(keyspace.pending_compaction_bytes)],
  ];
  if (keyspace.blob_bytes) parts.push(["Large values", `${bytes(keyspace.blob_bytes)}, ${share(keyspace.blob_garbage_bytes, keyspace.blob_bytes)} garbage`]);
  if (keyspace.ttl_secs !== null) parts.push(["Entries live", `${count(keyspace.ttl_secs)} s`]);
  if (keyspace.merge_operator) parts.push(["Merges", keyspace.merge_operator]);
  const detail = h("div", {});
  detail.style.display = "contents";
  const choose = (file: KvTable) => {
    for (const mark of document.querySelectorAll("[data-table]")) mark.classList.toggle(mark.tagName === "TR" ? "chosen" : "on", mark.getAttribute("data-table") === String(file.number));
    const card = one(file, keyspace, of);
    detail.replaceChildren(card);
    card.scrollIntoView({ block: "nearest" });
  };
  const levels = keyspace.levels.filter((it) => it.tables > 0).map((it) => {
    const here = files.filter((file) => file.level === it.level);
    const of_ = (figure: (file: KvTable) => number) => here.reduce((total, file) => total + figure(file), 0);
    return [`Level ${it.level}`, it.runs, it.tables, bytes(it.bytes), count(it.entries), share(of_((file) => file.tombstones), it.entries), share(it.bytes, of_((file) => file.raw_bytes))];
  });
  return [
    h("section", { class: "card" }, h("h3", {}, `Keyspace ${keyspace.name}`), facts(parts)),
    ...(files.length ? [
      h("section", { class: "card" }, h("h3", {}, "The tree"), h("p", { class: "dim" }, "A row for each sorted run, the newest first; a bar for each table, from its first key to its last. Widths are shares of the tables' bounds, not of keys. Select one to see its blocks."), tree(files, choose),
        table("Levels", [["Level", ""], ["Runs", "n"], ["Tables", "n"], ["Bytes", "n"], ["Entries", "n"], ["Tombstones", "n"], ["Of keys and values", "n"]], levels)),
      detail,
      h("section", { class: "card" }, h("h3", {}, "Tables"), tables(files, keyspace.tables, choose)),
    ] : [h("p", { class: "note" }, "There are no tables yet: all data is in the log.")]),
    entries(of, true, { space: keyspace.name }),
  ];
}

function tree(files: KvTable[], choose: (file: KvTable) => void): HTMLElement {
  const LEFT = 66, WIDE = 640, RIGHT = 120, HIGH = 18;
  // Tables of a run ascend, and the hexadecimal forms of their bounds sort in the same order.
  const bounds = [...new Set(files.flatMap((file) => [hexOf(file.smallest), hexOf(file.largest)]))].sort();
  const place = (key: Shown) => bounds.indexOf(hexOf(key)) / Math.max(1, bounds.length - 1) * WIDE;
  const runs = new Map<string, KvTable[]>();
  for (const file of files) runs.set(`${file.level}/${file.run}`, [...runs.get(`${file.level}/${file.run}`) ?? [], file]);
  const rows = [...runs.values()];
  const label = `Tree of ${files.length} tables in ${rows.length} runs`;
  const picture = svg("svg", { viewBox: `0 0 ${LEFT + WIDE + RIGHT} ${rows.length * HIGH + 6}`, role: "group", "aria-label": label });
  let level = -1;
  rows.forEach((row, at) => {
    const y = 4 + at * HIGH, total = row.reduce((sum, file) => sum + file.bytes, 0);
    if (row[0]!.level !== level) picture.append(svg("text", { x: LEFT - 8, y: y + 11, "text-anchor": "end" }, `level ${row[0]!.level}`));
    level = row[0]!.level;
    picture.append(svg("text", { x: LEFT + WIDE + 8, y: y + 11 }, `${bytes(total)}, ${row.length}`));
    for (const file of row) {
      const x = LEFT + place(file.smallest), width = Math.max(3, place(file.largest) - place(file.smallest) - 1);
      const dead = file.entries ? file.tombstones / file.entries : 0;
      const bar = svg("rect", { x, y, width, height: HIGH - 5, rx: 2, fill: dead > 0.3 ? "var(--warn)" : level === 0 ? "var(--new)" : "var(--old)", "data-table": file.number, tabindex: 0, role: "button", "aria-label": `Table ${file.number}, level ${file.level}, ${bytes(file.bytes)}` },
        svg("title", {}, `${file.file}: ${bytes(file.bytes)}, ${count(file.entries)} entries`));
      const take = () => choose(file);
      bar.addEventListener("click", take);
      bar.addEventListener("keydown", (event) => { if (["Enter", " "].includes((event as KeyboardEvent).key)) { event.preventDefault(); take(); } });
      picture.append(bar);
    }
  });
  return h("div", { class: "picture" }, picture as unknown as Node);
}

/** Returns the hexadecimal form of a key, which sorts as the key does. */
function hexOf(key: Shown): string {
  if (key.hex !== undefined) return key.hex;
  return [...new TextEncoder().encode(key.text ?? "")].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function tables(files: KvTable[], all: number, choose: (file: KvTable) => void): HTMLElement {
  const rows = files.map((file) => {
    const open = h("button", { type: "button" }, file.file);
    open.onclick = () => choose(file);
    return [open, file.level, bytes(file.bytes), count(file.entries), file.compression, file.filter ?? "none", shown(file.smallest), shown(file.largest)];
  });
  const made = table("Tables", [["File", ""], ["Level", "n"], ["Bytes", "n"], ["Entries", "n"], ["Compression", ""], ["Filter", ""], ["First key", "long"], ["Last key", "long"]], rows);
  made.querySelectorAll("tbody tr").forEach((row, at) => row.setAttribute("data-table", String(files[at]!.number)));
  return h("div", {}, made, all > files.length && h("p", { class: "dim" }, `${files.length} of ${all} tables.`));
}

function one(file: KvTable, keyspace: Keyspace, of: Ask): HTMLElement {
  const blocks = h("div", { "aria-live": "polite" });
  const load = async (from: number) => {
    const found = await of<{ blocks: Block[]; more: boolean }>("/blocks", { space: keyspace.name, table: String(file.number), from: String(from) })
      .catch((error: unknown) => { blocks.replaceChildren(alert(error)); });
    if (!found) return;
    const rows = found.blocks.map((it) => [it.block, count(it.offset), count(it.bytes), count(it.raw_bytes), it.entries, it.tombstones, shown(it.first), shown(it.last)]);
    blocks.replaceChildren(table("Blocks", [["Block", "n"], ["Offset", "n"], ["Bytes", "n"], ["Unpacked", "n"], ["Entries", "n"], ["Tombstones", "n"], ["First key", "long"], ["Last key", "long"]], rows),
      ...(found.more ? [h("p", {}, button("Next blocks", () => load(from + found.blocks.length)))] : []));
  };
  const card = h("section", { class: "card", id: "table" }, h("h3", {}, `Table ${file.file}`), facts([
    ["Level, run", `${file.level}, ${file.run}`], ["Bytes", count(file.bytes)], ["Entries", count(file.entries)], ["Tombstones", count(file.tombstones)], ["Range tombstones", count(file.range_tombstones)],
    ["Merges", count(file.merges)], ["Writes", `${count(file.first_write)} to ${count(file.last_write)}`], ["Blocks", `${count(file.blocks)}, ${bytes(file.data_bytes)}`], ["Filters", bytes(file.filter_bytes)], ["Index", bytes(file.index_bytes)],
    ["Compression", file.compression], ["Of keys and values", share(file.bytes, file.raw_bytes)], ["Filter", file.filter ?? "none"],
  ]), blocks);
  void load(0);
  return card;
}
