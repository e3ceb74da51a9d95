/** The lab's page. The part of the address after `#` selects the view. */
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

/** Fills a box. The returned function is called when another view replaces it. */
export type View = (box: HTMLElement, start: Start, rest: string[]) => void | (() => void);

const VIEWS = new Map<string, { title: string; view: View }>([
  ["", { title: "Overview", view: overview }],
  ["runs", { title: "Runs", view: runs }],
  ["job", { title: "A run", view: job }],
  ["history", { title: "History", view: history }],
  ["stores", { title: "Stores", view: (box, start, rest) => rest.length ? store(box, start, rest) : stores(box, start, rest) }],
]);

/** Decodes a part of the address; returns it unchanged if it is malformed. */
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
  document.title = `${found?.title ?? "Not found"} – Cairn lab`;
  for (const link of document.querySelectorAll<HTMLAnchorElement>("nav a")) {
    const is = link.getAttribute("href") === `#/${name === "job" ? "runs" : name}`;
    if (is) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (found) leave = found.view(main, start, rest);
  else main.append(alert("There is no such view."), h("p", {}, h("a", { href: "#/" }, "Overview")));
}

// The token is a cookie by now, so it can leave the address bar.
if (location.search) window.history.replaceState(null, "", location.pathname + location.hash);
ask<Start>("api/start").then((start) => {
  by("where").textContent = `version ${start.version}, ${start.may_run ? "benchmarks may be started" : "read-only"}`;
  addEventListener("hashchange", () => {
    show(start);
    by("main").focus({ preventScroll: true });
  });
  show(start);
}).catch((error: unknown) => by("main").append(alert(error)));
