/** The lab's page: the part of the address behind `#` says which view. */
import { ask } from "../../shared/ask";
import { by, h } from "../../shared/dom";
import { history } from "./history";
import { job } from "./job";
import { overview } from "./overview";
import { alert } from "./parts";
import { runs } from "./runs";
import { store } from "./store";
import { stores } from "./stores";
import type { Start } from "./types";

/** Shows itself in a box. What it gives is called when another view comes. */
export type View = (box: HTMLElement, start: Start, rest: string[]) => void | (() => void);

const VIEWS = new Map<string, { title: string; view: View }>([
  ["", { title: "Overview", view: overview }],
  ["runs", { title: "Runs", view: runs }],
  ["job", { title: "A run", view: job }],
  ["history", { title: "History", view: history }],
  ["stores", { title: "Stores", view: (box, start, rest) => rest.length ? store(box, start, rest) : stores(box, start, rest) }],
]);

/** A part of the address; as it stands there where it is none that a page of ours makes. */
function decoded(part: string): string {
  try { return decodeURIComponent(part); } catch { return part; }
}

let leave: void | (() => void);

function show(start: Start): void {
  const [name = "", ...rest] = location.hash.replace(/^#\//, "").split("/").map(decoded);
  const found = VIEWS.get(name);
  leave?.();
  leave = undefined;
  const main = by("main");
  main.replaceChildren();
  document.title = `${found?.title ?? "Not there"} – Cairn lab`;
  for (const link of document.querySelectorAll<HTMLAnchorElement>("nav a")) {
    const is = link.getAttribute("href") === `#/${name === "job" ? "runs" : name}`;
    if (is) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (found) leave = found.view(main, start, rest);
  else main.append(alert("There is no such view."), h("p", {}, h("a", { href: "#/" }, "Overview")));
}

// The token has become a cookie: it need not stand where others see it.
if (location.search) window.history.replaceState(null, "", location.pathname + location.hash);
ask<Start>("api/start").then((start) => {
  by("where").textContent = `version ${start.version}, ${start.may_run ? "benchmarks may be started" : "read-only"}`;
  addEventListener("hashchange", () => {
    show(start);
    by("main").focus({ preventScroll: true });
  });
  show(start);
}).catch((error: unknown) => by("main").append(alert(error)));
