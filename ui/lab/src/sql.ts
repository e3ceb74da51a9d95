/** A database: tables, trees level by level, the fill of pages, forms of columns, rows. */
import { bytes, count, h, percent, svg } from "../../shared/dom";
import { alert, bars, button, facts, table } from "./parts";
import type { Ask } from "./store";
import type { Level, Rows, SqlStore, SqlTable, Tree } from "./types";

export function sql(box: HTMLElement, store: SqlStore, of: Ask): void {
  const trees = [store.catalog, ...store.tables.flatMap((it) => [it.rows, ...it.indexes.map((index) => index.tree)])];
  const pages = (tree: Tree) => tree.levels.reduce((sum, level) => sum + level.pages, 0) + tree.long_pages;
  const rows = store.tables.reduce((sum, it) => sum + (it.rows.levels[0]?.records ?? 0), 0);
  const damaged = trees.filter((tree) => tree.damage);
  box.append(h("section", { class: "card" }, facts([
    ["Pages", `${count(store.pages)} of ${bytes(store.page_size)}`], ["File", bytes(store.pages * store.page_size)], ["Free pages", count(store.free_pages)], ["Tables", count(store.tables.length)],
    ["Records of tables", count(rows)], ["Pages of trees", count(trees.reduce((sum, tree) => sum + pages(tree), 0))],
  ]), damaged.length ? h("p", { class: "alert" }, h("strong", {}, "Damaged: "), `${damaged.length} of ${trees.length} trees; their figures cover the pages that were read before the damage.`) : null));
  for (const it of store.tables) box.append(one(it, of));
  box.append(h("section", { class: "card" }, h("h3", {}, "Catalog"), part(store.catalog, "Definitions of tables")));
}

function one(it: SqlTable, of: Ask): HTMLElement {
  const found = h("div", { "aria-live": "polite" });
  const load = async () => {
    const rows = await of<Rows>("/entries", { space: it.name }).catch((error: unknown) => { found.replaceChildren(alert(error)); });
    if (rows) found.replaceChildren(table(`Rows of ${it.name}`, rows.columns.map((name) => [name, "long"]), rows.rows), ...(rows.more ? [h("p", { class: "dim" }, "There are more.")] : []));
  };
  const columns = it.columns.map((column) => `${column.name} ${column.type}${column.nullable ? "" : " not null"}${it.primary_key.includes(column.name) ? ", key" : ""}`);
  return h("section", { class: "card" }, h("h3", {}, it.name), h("p", { class: "dim" }, columns.join("; ")),
    part(it.rows, "Rows"), it.indexes.map((index) => part(index.tree, `Index ${index.name} (${index.columns.join(", ")})${index.unique ? ", unique" : ""}`)),
    h("div", { class: "row" }, button("Show rows", load)), found);
}

function part(tree: Tree, name: string): HTMLElement {
  const leaves = tree.levels[0];
  const rows = [...tree.levels].reverse().map((level) => [level.level === 0 ? "leaves" : `inner ${level.level}`, count(level.pages), count(level.packed_pages), count(level.records), level.bytes ? percent(1 - level.free_bytes / level.bytes) : "–", spark(level)]);
  return h("div", {}, h("h4", { class: "tree-name" }, `${name}: page ${tree.root}, ${tree.levels.length} levels`), tree.damage && damage(tree.damage),
    table(name, [["Level", ""], ["Pages", "n"], ["Packed", "n"], ["Records", "n"], ["Full", "n"], ["Pages by tenths full", ""]], rows),
    tree.long_pages > 0 && h("p", { class: "dim" }, `${count(tree.long_pages)} pages of long rows.`),
    tree.forms.length > 0 && h("details", { open: true }, h("summary", {}, `Forms of columns in ${count(leaves?.packed_pages ?? 0)} packed leaves`),
      bars("Forms of columns", tree.forms.map((it) => [it.form, it.columns, count(it.columns)]))));
}

function damage(it: NonNullable<Tree["damage"]>): HTMLElement {
  return h("div", { class: "alert", role: "alert" }, h("strong", {}, "Damaged "), it.error,
    it.file !== null && it.offset !== null && h("p", { class: "dim" }, h("code", {}, it.file), ` at byte ${count(it.offset)}`));
}

/** Draws the number of pages by fill, in tenths. */
function spark(level: Level): Node {
  const most = Math.max(1, ...level.fill);
  const label = level.fill.map((pages, at) => pages ? `${pages} up to ${(at + 1) * 10} %` : "").filter(Boolean).join(", ");
  return svg("svg", { viewBox: "0 0 120 16", width: 120, height: 16, role: "img", "aria-label": label }, svg("title", {}, label),
    ...level.fill.map((pages, at) => svg("rect", { x: at * 12, y: 16 - (pages ? 2 + pages / most * 14 : 1), width: 10, height: pages ? 2 + pages / most * 14 : 1, fill: pages ? "var(--new)" : "var(--line)" })));
}
