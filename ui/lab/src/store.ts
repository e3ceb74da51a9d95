/** One store: its structure, its entries, its verification. */
import { ask } from "../../shared/ask";
import { h } from "../../shared/dom";
import { hash } from "./hash";
import { kv } from "./kv";
import type { View } from "./main";
import { alert, button, shown, table } from "./parts";
import { sql } from "./sql";
import type { Entries, Shown, Store, Verified } from "./types";

/** Sends a request about the store. */
export type Ask = <T>(what: string, more?: Record<string, string>) => Promise<T>;

export const store: View = (box, _start, [place = "", entry]) => {
  const at = { place, ...(entry === undefined ? {} : { entry }) };
  const of: Ask = (what, more = {}) => ask(`api/inspect${what}?${new URLSearchParams({ ...at, ...more })}`);
  const title = h("h2", {}, "Opening…"), head = h("section", { class: "card" }, h("p", {}, h("a", { href: "#/stores" }, "Stores")), title), body = h("div", {});
  body.style.display = "contents";
  box.append(head, body);
  const checked = h("div", { "aria-live": "polite" });
  const verify = button("Read and check everything", async () => {
    checked.replaceChildren(h("p", { class: "dim" }, "Reading…"));
    checked.replaceChildren(...await of<Verified>("/verify").then(report).catch((error: unknown) => [alert(error)]));
  });
  head.append(h("div", { class: "row" }, verify), checked);
  of<Store>("").then((found) => {
    title.textContent = found.path;
    if (found.kind === "kv") kv(body, found, of);
    else if (found.kind === "sql") sql(body, found, of);
    else hash(body, found, of);
  }).catch((error: unknown) => {
    title.textContent = entry ?? "This store cannot be shown";
    body.replaceChildren(alert(error));
  });
};

function report(found: Verified): Node[] {
  if (found.sound) return [h("p", { class: "good" }, `Sound: ${found.what}`)];
  const inUse = found.open_elsewhere ? [h("p", { class: "note" }, h("strong", {}, "In use: "), "another process has this store open for writing. What looks missing or damaged may be a file that it has just replaced: check again.")] : [];
  return [h("p", {}, found.what), ...inUse, ...found.damage.map((it) => alert(new Error(it.error)))];
}

/** Lists entries page by page from a key on, and looks keys up. */
export function entries(of: Ask, isOrdered: boolean, space: Record<string, string> = {}): HTMLElement {
  const list = h("div", { "aria-live": "polite" });
  const key = h("input", { type: "text", autocomplete: "off", "aria-label": "A key" });
  const isHex = h("input", { type: "checkbox" });
  const typed = (): Record<string, string> => key.value ? isHex.checked ? { hex: key.value } : { key: key.value } : {};
  const load = async (from: Record<string, string>) => {
    const found = await of<Entries>("/entries", { ...space, ...from }).catch((error: unknown) => { list.replaceChildren(alert(error)); });
    if (!found) return;
    const rows = found.entries.map((it) => [shown(it.key), shown(it.value)]);
    list.replaceChildren(rows.length ? table("Entries", [["Key", "long"], ["Value", "long"]], rows) : h("p", {}, "No entries here."),
      ...(found.next ? [h("p", {}, button("Next", () => load({ hex: found.next! })))] : found.more ? [h("p", { class: "dim" }, "There are more.")] : []));
  };
  const get = async () => {
    const found = await of<{ key: Shown; value: Shown | null }>("/get", { ...space, ...typed() }).catch((error: unknown) => { list.replaceChildren(alert(error)); });
    if (found) list.replaceChildren(found.value ? table("Found", [["Key", "long"], ["Value", "long"]], [[shown(found.key), shown(found.value)]]) : h("p", {}, "There is no such key."));
  };
  const form = h("form", { class: "row", "aria-label": "Keys" }, h("label", {}, "Key ", key), h("label", {}, isHex, " hexadecimal"), button("Look up", get),
    button(isOrdered ? "List from here" : "List", () => load(isOrdered ? typed() : {})));
  form.onsubmit = (event) => { event.preventDefault(); void get(); };
  return h("section", { class: "card" }, h("h3", {}, "Keys and values"), form, list);
}
