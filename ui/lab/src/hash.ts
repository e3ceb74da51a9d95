/** A constant store: generations, the fill of their indexes, the space of records. */
import { bytes, count, h, percent } from "../../shared/dom";
import { bars, facts } from "./parts";
import { entries, type Ask } from "./store";
import type { Generation, HashStore, Pair } from "./types";

export function hash(box: HTMLElement, store: HashStore, of: Ask): void {
  box.append(...(store.generations ?? []).map(generation), ...(store.pair ? [pair(store.pair)] : []), entries(of, false));
}

function generation(it: Generation): HTMLElement {
  const lines = it.fill.lines_by_slots, most = lines.length - 1;
  const layout = it.fixed_width ? "fixed width" : it.compression === "none" ? "plain" : it.compression;
  return h("section", { class: "card" }, h("h3", {}, it.delta ? `Delta ${it.generation}` : "Base"), h("p", {}, h("code", {}, it.file)),
    facts([
      ["Entries", count(it.entries)], ["Tombstones", count(it.tombstones)], ["File", bytes(it.file_bytes)], ["Records", `${bytes(it.data_bytes)}, ${layout}`], ["Large values", bytes(it.blob_bytes)],
      ["Keys", `${bytes(it.key_bytes)}, longest ${count(it.key_bytes_max)} B`], ["Values", `${bytes(it.value_bytes)}, longest ${count(it.value_bytes_max)} B`],
      ["Index", `${bytes(it.index_bytes)}, ${it.index_bytes_per_entry.toFixed(2)} B an entry`], ["Fill", percent(it.fill.share)], ["Partitions", count(it.fill.partitions)],
      ["Lines", `${count(it.fill.home_lines)} + ${count(it.fill.tail_lines)}`], ["Passed on", percent(it.fill.passed_on / Math.max(1, it.fill.home_lines + it.fill.tail_lines))], ["Dictionary", bytes(it.dictionary_bytes)],
    ]),
    h("details", { open: true }, h("summary", {}, `Lines of the index by used slots, of ${most}`),
      bars("Lines by used slots", lines.map((value, slots) => [String(slots), value, count(value)] as [string, number, string]).filter(([, value]) => value > 0))),
    bars("Where the file's bytes are", [["Records", it.data_bytes, bytes(it.data_bytes)], ["Large values", it.blob_bytes, bytes(it.blob_bytes)], ["Index", it.index_bytes, bytes(it.index_bytes)], ["Dictionary", it.dictionary_bytes, bytes(it.dictionary_bytes)]]));
}

function pair(it: Pair): HTMLElement {
  return h("section", { class: "card" }, h("h3", {}, "Sparkey pair"), h("p", {}, h("code", {}, it.index), " over ", h("code", {}, it.log)), facts([
    ["Entries", count(it.entries)], ["Puts, deletes", `${count(it.records)}, ${count(it.deletes)}`], ["Log", `${bytes(it.log_bytes)}, ${it.compression}`], ["Blocks", it.block_bytes ? bytes(it.block_bytes) : "none"],
    ["Index", `${bytes(it.index_bytes)}, ${it.index_bytes_per_entry.toFixed(2)} B an entry`], ["Slots", `${count(it.slots)} of ${it.hash_bits} + ${it.address_bits} bits`], ["Fill", percent(it.fill)],
    ["From home", `${it.displacement_mean.toFixed(2)} slots, most ${count(it.displacement_max)}`], ["Garbage", bytes(it.garbage_bytes)],
  ]));
}
