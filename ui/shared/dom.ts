/** Elements, and formatted figures. */

type Child = Node | string | number | null | undefined | false;
type Properties = { [name: string]: string | number | boolean | ((event: Event) => void) | undefined };

/** The element with an id. */
export const by = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

/** An element. Text goes in as text only, so nothing that comes from a store or a run is ever markup. */
export function h<K extends keyof HTMLElementTagNameMap>(name: K, properties: Properties = {}, ...children: (Child | Child[])[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) element.append(typeof child === "number" ? String(child) : child);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of a picture. */
export function svg(name: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** Bytes in powers of 1000. */
export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) { value /= 1000; at += 1; }
  return `${value.toFixed(at && value < 10 ? 1 : 0)} ${units[at]}`;
}

export const micros = (us: number): string => us <= 0 ? "–" : us < 1000 ? `${us.toFixed(1)} µs` : `${(us / 1000).toFixed(1)} ms`;
export const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;
/** A share as a CSS length, which has no space before the sign, unlike {@link percent}. */
export const cssPercent = (share: number): string => `${(Math.min(1, Math.max(0, share)) * 100).toFixed(2)}%`;
export const count = (value: number): string => value.toLocaleString("en-US");
