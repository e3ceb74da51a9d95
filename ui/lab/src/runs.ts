/** Stored runs, and runs in progress. */
import { ask } from "../../shared/ask";
import { h } from "../../shared/dom";
import type { View } from "./main";
import { alert, table, when } from "./parts";
import type { Job, Runs, Start } from "./types";

export function jobLine(job: Job): (Node | string)[] {
  const state = job.running ? job.progress ? `${job.progress.at} of ${job.progress.of}: ${job.progress.name}` : job.ours ? "begun" : "watched" : job.how ?? "";
  return [h("a", { href: `#/job/${job.id}` }, job.title), " ", h("span", { class: job.running ? "tag" : job.ok ? "good" : "dim" }, state)];
}

export const runs: View = (box, start) => {
  const making = h("div", {}), stored = h("div", {}, h("p", { class: "dim" }, "Reading runs…"));
  box.append(
    h("section", { class: "card" }, h("h2", {}, "In progress"), making, start.may_run ? form(start, making)
      : h("p", { class: "dim" }, "This page is read-only. ", h("code", {}, "cairn ui --allow-run"), " lets it start benchmarks; ", h("code", {}, "--watch FILE"), " shows one that was started elsewhere.")),
    h("section", { class: "card" }, h("h2", {}, "Stored runs"), stored));
  ask<Job[]>("api/jobs").then((jobs) => making.replaceChildren(jobs.length
    ? h("ul", { class: "plain" }, jobs.map((job) => h("li", {}, jobLine(job)))) : h("p", {}, "Nothing is running."))).catch((error: unknown) => making.replaceChildren(alert(error)));
  ask<Runs>("api/runs").then((found) => stored.replaceChildren(...list(found, start))).catch((error: unknown) => stored.replaceChildren(alert(error)));
};

function form(start: Start, making: HTMLElement): HTMLElement {
  const suite = h("select", { id: "suite" }, start.suites.map((it) => h("option", { value: it.suite }, it.suite)));
  const what = h("p", { class: "dim", id: "what" });
  const word = h("input", { type: "text", id: "word", maxlength: 100, autocomplete: "off" });
  const seconds = h("input", { type: "number", id: "seconds", min: 1, max: 86400, placeholder: "none" });
  const begin = h("button", { type: "submit" }, "Start");
  suite.onchange = () => { what.textContent = start.suites.find((it) => it.suite === suite.value)?.what ?? ""; };
  suite.onchange(new Event("change"));
  const form = h("form", { class: "row", "aria-label": "Start a benchmark" },
    h("label", {}, "Suite ", suite), h("label", {}, "Only what contains ", word), h("label", {}, "Seconds at most ", seconds), begin);
  form.onsubmit = (event) => {
    event.preventDefault();
    begin.disabled = true;
    ask<Job>("api/jobs", { suite: suite.value, word: word.value, seconds: seconds.value ? Number(seconds.value) : null })
      .then((job) => { location.hash = `#/job/${job.id}`; })
      .catch((error: unknown) => making.replaceChildren(alert(error)))
      .finally(() => { begin.disabled = false; });
  };
  return h("div", {}, form, what);
}

function list({ runs, more }: Runs, start: Start): Node[] {
  if (!runs.length) return [h("p", {}, `There are no runs in ${start.results}.`)];
  const sound = runs.filter((run) => !run.error);
  const baseline = h("select", { id: "baseline" }, h("option", { value: "" }, "nothing"), sound.map((run) => h("option", { value: run.run }, `${run.suite}, ${when(run.started)}`)));
  const links: [HTMLAnchorElement, string, string][] = [];
  baseline.onchange = () => links.forEach(([link, run, suite]) => {
    const other = sound.find((it) => it.run === baseline.value);
    const against = other && other.suite === suite && other.run !== run ? `&baseline=${encodeURIComponent(other.run)}` : "";
    link.href = `report?run=${encodeURIComponent(run)}${against}`;
    link.textContent = against ? "Report, compared" : "Report";
  });
  const rows = sound.map((run) => {
    const link = h("a", { href: `report?run=${encodeURIComponent(run.run)}` }, "Report");
    links.push([link, run.run, run.suite]);
    const state = run.stopped ? [" ", h("span", { class: "tag" }, "ended early")] : [];
    return [link, when(run.started), h("span", {}, run.suite, state), run.mode, run.figures, run.contenders.join(", "), run.commit?.slice(0, 12) ?? "", h("code", {}, run.run)];
  });
  const broken = runs.filter((run) => run.error);
  return [
    h("p", { class: "row" }, h("label", {}, "Compare reports with ", baseline)),
    table("Stored runs", [["", ""], ["Started (UTC)", ""], ["Suite", ""], ["Mode", ""], ["Figures", "n"], ["Contenders", "long"], ["Commit", ""], ["File", "long"]], rows),
    ...(more ? [h("p", { class: "dim" }, `${more} older ones are not listed.`)] : []),
    ...(broken.length ? [h("details", {}, h("summary", {}, `${broken.length} files that are not runs`), h("ul", { class: "plain" }, broken.map((run) => h("li", {}, run.error!))))] : []),
  ];
}
