/** Figures over time: a chart for each metric of a case, a line for each contender. */
import { ask } from "../../shared/ask";
import { Chart, short } from "../../shared/chart";
import { h } from "../../shared/dom";
import type { View } from "./main";
import { alert, table, when } from "./parts";
import type { History, Point } from "./types";

type Lines = { contender: string; points: Point[] }[];

/** The case with its metric, and the contender, of `suite::case/contender: metric`. */
function parts(name: string): [string, string] {
  const metric = name.lastIndexOf(": "), rest = metric < 0 ? name : name.slice(0, metric);
  const slash = rest.lastIndexOf("/");
  return [(slash < 0 ? rest : rest.slice(0, slash)) + (metric < 0 ? "" : name.slice(metric)), slash < 0 ? rest : rest.slice(slash + 1)];
}

export const history: View = (box, start, [asked = ""]) => {
  const words = h("input", { type: "search", id: "words", value: asked, placeholder: "such as: kv get throughput" });
  const form = h("form", { class: "row", role: "search" }, h("label", {}, "Names containing all of these words ", words), h("button", { type: "submit" }, "Show"),
    h("a", { href: `trends?words=${encodeURIComponent(asked)}` }, "As one page"));
  form.onsubmit = (event) => {
    event.preventDefault();
    location.hash = `#/history/${encodeURIComponent(words.value.trim())}`;
  };
  const found = h("div", {}, h("p", { class: "dim" }, "Reading…"));
  box.append(h("section", { class: "card" }, h("h2", {}, "History"), form), found);
  ask<History>(`api/history?words=${encodeURIComponent(asked)}`).then(({ series, told_apart, count }) => {
    // Another view is shown by now. Charts that never reach the page would never be destroyed.
    if (!found.isConnected) return;
    if (!series.length) {
      found.replaceChildren(h("p", { class: "note" }, `No figures${asked ? " with these words" : ""} in ${start.history}. `, h("code", {}, "cairn bench record RUN.json"), " adds runs."));
      return;
    }
    const charts = new Map<string, Lines>();
    series.forEach(({ name, points }, at) => {
      const [title, contender] = parts(name), told = told_apart[at];
      charts.set(title, [...charts.get(title) ?? [], { contender: told ? `${contender}, ${told}` : contender, points }]);
    });
    found.replaceChildren(
      ...(count > series.length ? [h("p", { class: "dim" }, `${series.length} of ${count} series; more words show fewer.`)] : []),
      h("div", { class: "charts" }, [...charts].map(([title, lines]) => figure(title, lines))));
  }).catch((error: unknown) => found.replaceChildren(alert(error)));
};

function figure(title: string, lines: Lines): HTMLElement {
  const starts = [...new Set(lines.flatMap((line) => line.points.map((point) => point.started)))].sort();
  const first = lines.flatMap((line) => line.points)[0];
  const chart = new Chart({ title: `${title}, ${first?.unit ?? ""}`, names: lines.map((line) => line.contender), height: 170, isTime: true, points: true });
  chart.draw(starts.map((started) => Date.parse(started) / 1000), lines.map((line) => starts.map((started) => line.points.find((point) => point.started === started)?.value ?? null)));
  const rows = lines.flatMap((line) => line.points.map((point) => [line.contender, when(point.started), short(point.value), `${short(point.low)} to ${short(point.high)}`, point.commit.slice(0, 12), point.machine]));
  return h("figure", { class: "card" }, chart.element, chart.legend(), h("p", { class: "dim" }, first?.higher_is_better ? "Higher is better." : "Lower is better."),
    h("details", {}, h("summary", {}, "Figures"), table(title, [["Contender", ""], ["Run (UTC)", ""], ["Median", "n"], ["Interval", "n"], ["Commit", ""], ["Machine", "long"]], rows)));
}
