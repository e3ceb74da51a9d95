/** The stores that were named on the command line. */
import { ask } from "../../shared/ask";
import { count, h } from "../../shared/dom";
import type { View } from "./main";
import { alert } from "./parts";
import type { Place, StoreKind } from "./types";

const KINDS: Record<StoreKind, string> = { kv: "key-value store", hash: "constant store", sparkey: "Sparkey pair", sql: "database", folder: "folder", other: "not a store", missing: "missing" };

export const link = (place: number, entry?: string): string => `#/stores/${place}${entry === undefined ? "" : `/${encodeURIComponent(entry)}`}`;

const kind = (kind: StoreKind): HTMLElement => h("span", { class: "tag" }, KINDS[kind]);

export function links(places: Place[]): HTMLElement {
  return h("ul", { class: "plain" }, places.map((place) => {
    if (place.error) return h("li", {}, h("code", {}, place.path), " ", h("span", { class: "dim" }, place.error));
    const isStore = place.kind && !["folder", "other", "missing"].includes(place.kind);
    const name = isStore ? h("a", { href: link(place.place) }, place.path) : h("code", {}, place.path);
    return h("li", {}, name, " ", place.kind ? kind(place.kind) : "", place.entries
      ? place.entries.length ? [h("ul", {}, place.entries.map((it) => h("li", {}, h("a", { href: link(place.place, it.entry) }, it.entry), " ", kind(it.kind)))), place.more && h("p", { class: "dim" }, `The first ${count(place.entries.length)}: there are more.`)] : h("p", { class: "dim" }, "It contains no store directly.") : null);
  }));
}

export const stores: View = (box) => {
  const body = h("div", {}, h("p", { class: "dim" }, "Looking…"));
  box.append(h("section", { class: "card" }, h("h2", {}, "Stores"), body,
    h("p", { class: "dim" }, "Each view opens the store read-only and closes it again.")));
  ask<Place[]>("api/places").then((places) => body.replaceChildren(places.length ? links(places)
    : h("p", {}, "No store was named: ", h("code", {}, "cairn ui places users.cairn app.db"), " shows some."))).catch((error: unknown) => body.replaceChildren(alert(error)));
};
