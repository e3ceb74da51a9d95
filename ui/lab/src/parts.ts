/** Elements that several views share. */
import { Refused } from "../../shared/ask";
import { h, cssPercent } from "../../shared/dom";
import type { Shown } from "./types";

const KINDS: Record<string, string> = { corruption: "Damaged", busy: "In use", missing: "Missing", unsupported: "Not supported", failure: "Failed" };

/** An error with its file and offset. */
export function alert(error: unknown): HTMLElement {
  const refused = error instanceof Refused ? error : null;
  const { kind, file, offset } = refused?.more ?? {};
  return h("div", { class: "alert", role: "alert" },
    kind && KINDS[kind] ? [h("strong", {}, KINDS[kind]!), " "] : [], error instanceof Error ? error.message : String(error),
    file !== undefined && h("p", { class: "dim" }, h("code", {}, file), offset !== undefined && ` at byte ${offset.toLocaleString("en-US")} (0x${offset.toString(16)})`));
}

export function facts(rows: [string, string | number][]): HTMLElement {
  return h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** A column: its name, and whether its values are figures. */
export type Column = [string, "n" | "long" | ""];

export function table(caption: string, columns: Column[], rows: (Node | string | number)[][]): HTMLElement {
  const head = h("tr", {}, columns.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)));
  const body = rows.map((row) => h("tr", {}, row.map((cell, at) => h("td", { class: columns[at]?.[1] ?? "" }, cell))));
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption }, h("table", { "aria-label": caption }, h("thead", {}, head), h("tbody", {}, body)));
}

/** Horizontal bars. */
export function bars(label: string, rows: [string, number, string][]): HTMLElement {
  const most = Math.max(1, ...rows.map(([, value]) => value));
  return h("dl", { class: "bars", "aria-label": label }, rows.flatMap(([name, value, shown]) => {
    const fill = h("i");
    fill.style.width = cssPercent(value / most);
    return [h("dt", {}, name), h("dd", { class: "bar", "aria-hidden": "true" }, fill), h("dd", { class: "v" }, shown)];
  }));
}

/** Bytes of a key or value. */
export function shown(bytes: Shown): HTMLElement {
  const length = `${bytes.bytes} bytes${bytes.cut ? ", the first are shown" : ""}`;
  const text = bytes.text !== undefined ? bytes.text : bytes.hex ?? "";
  const more = bytes.cut ? [h("span", { class: "cut" }, `… ${bytes.bytes} bytes`)] : [];
  return h("span", { class: bytes.text === undefined ? "bytes hex" : "bytes", title: bytes.text === undefined ? `hexadecimal, ${length}` : length }, bytes.text === undefined && bytes.bytes ? `0x${text}` : text, more);
}

/** A button that is disabled while its action runs. */
export function button(name: string, work: () => Promise<void>): HTMLButtonElement {
  const made = h("button", { type: "button" }, name);
  made.onclick = async () => {
    made.disabled = true;
    await work().finally(() => { made.disabled = false; });
  };
  return made;
}

/** Formats a time. */
export const when = (started: string): string => started.replace("T", " ").replace("Z", "");
