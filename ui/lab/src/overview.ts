/** The overview: stores, runs and jobs. */
import { ask } from "../../shared/ask";
import { h } from "../../shared/dom";
import type { View } from "./main";
import { alert, when } from "./parts";
import { jobLine } from "./runs";
import { links } from "./stores";
import type { Job, Place, Runs } from "./types";

/** The maximum number of runs and jobs in a list. */
const RUNS = 6;

export const overview: View = (box, start) => {
  const card = (title: string, link: string, what: string) => {
    const body = h("div", {}, h("p", { class: "dim" }, "…"));
    box.lastElementChild!.append(h("section", { class: "card" }, h("h2", {}, h("a", { href: link }, title)), body, h("p", { class: "dim" }, what)));
    return body;
  };
  box.append(h("div", { class: "cards" }));
  const fill = <T>(body: HTMLElement, path: string, make: (found: T) => (Node | string)[]) =>
    void ask<T>(path).then((found) => body.replaceChildren(...make(found))).catch((error: unknown) => body.replaceChildren(alert(error)));

  fill<Place[]>(card("Stores", "#/stores", "Levels, pages, fill, keys and encodings of the stores that were named on the command line."), "api/places", (places) =>
    places.length ? [links(places)] : [h("p", {}, "No store was named. ", h("code", {}, "cairn ui STORE…"), " shows some.")]);
  fill<Runs>(card("Runs", "#/runs", `Results in ${start.results}, each with its report.`), "api/runs", ({ runs }) =>
    runs.length ? [h("ul", { class: "plain" }, runs.slice(0, RUNS).map((run) => h("li", {}, run.error ? `${run.run}: ${run.error}` : [
      h("a", { href: `report?run=${encodeURIComponent(run.run)}` }, `${run.suite}, ${when(run.started)}`), ` ${run.mode}, ${run.figures} figures`])))]
      : [h("p", {}, "No run is stored yet.")]);
  fill<Job[]>(card("In progress", "#/runs", start.may_run ? "Benchmarks can be started from this page, one at a time." : "This page is read-only: --allow-run lets it start benchmarks."), "api/jobs", (jobs) =>
    jobs.length ? [h("ul", { class: "plain" }, jobs.slice(0, RUNS).map((job) => h("li", {}, jobLine(job))))] : [h("p", {}, "Nothing is running.")]);
  card("History", "#/history", `Figures over time, from ${start.history}.`).replaceChildren(h("p", {}, "Trends of every case, as ", h("code", {}, "cairn bench record"), " has kept them."));
  card("Simulator", "sim/", "What RocksDB or cairn kv would do with a workload, options and a machine.").replaceChildren(h("p", {}, "The tree as it moves, two configurations on one clock, sweeps."));
};
