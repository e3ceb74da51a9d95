/** One configuration: its stream, its tree, its figures and charts. */
import { Chart } from "../../shared/chart";
import { ask, SILENT } from "../../shared/ask";
import { bytes, micros, percent, svg } from "../../shared/dom";
import type { Config, Frame, Results } from "./types";

interface Figures { title: string; names: string[]; of: (frame: Frame) => number[] }

const CHARTS: Figures[] = [
  { title: "MB/s: user, flush, compaction", names: ["user", "flush", "compaction"], of: (it) => [it.point.user_mb, it.point.flush_mb, it.point.compact_mb] },
  { title: "Amplification: write, space", names: ["write", "space"], of: (it) => [it.point.write_amp, it.point.space_amp] },
  { title: "Use, %: cores, disk reads, disk writes", names: ["cores", "reads", "writes"], of: (it) => [it.point.cpu * 100, it.point.disk_read * 100, it.point.disk_write * 100] },
  { title: "Stalled, %; debt, GB", names: ["stalled", "debt"], of: (it) => [it.point.stalled * 100, it.point.debt_bytes / 1e9] },
  { title: "p99, µs: put, get", names: ["put", "get"], of: (it) => [it.point.put_us[1], it.point.get_us[1]] },
];

/** Why a run ended early. */
const ENDED: Record<string, string> = {
  out_of_memory: "Writes came faster than this store can take them.",
  stuck: "Writes are stopped, and no flush or compaction remains that could resume them.",
  too_many_events: "It needs more flushes and compactions than a run may have; a shorter time or larger memtables need fewer.",
};

/** The maximum number of runs of a level, and of jobs, that are shown individually. */
const RUNS_MAX = 10, JOBS_MAX = 2;

export class Side {
  readonly element = document.createElement("section");
  frames: Frame[] = [];
  results: Results | null = null;
  private source: EventSource | null = null;
  private readonly keys = document.createElement("dl");
  private readonly tree = document.createElement("div");
  private readonly why = document.createElement("p");
  private readonly jobs = document.createElement("ul");
  private readonly charts = CHARTS.map(({ title, names }) => new Chart({ title, names, height: 108 }));
  private drawn: Frame | null = null;
  private drawnResults: Results | null = null;

  constructor(readonly name: string, private readonly changed: () => void, private readonly failed: (what: string) => void) {
    this.element.className = "side";
    this.element.setAttribute("aria-label", `Configuration ${name}`);
    this.keys.className = "keys";
    this.tree.className = "tree";
    this.why.className = "why";
    this.why.setAttribute("aria-live", "polite");
    this.jobs.className = "jobs";
    const charts = document.createElement("div");
    charts.className = "charts";
    this.element.append(this.keys, this.tree, this.why, this.jobs, charts);
    charts.append(...this.charts.map((chart) => chart.element));
  }

  /** Restarts with a configuration. */
  run(config: Config): void {
    this.source?.close();
    this.frames = [];
    this.results = null;
    this.drawn = null;
    const source = new EventSource(`api/stream?config=${encodeURIComponent(JSON.stringify(config))}`);
    this.source = source;
    source.addEventListener("frame", (event) => {
      this.frames.push(JSON.parse((event as MessageEvent<string>).data) as Frame);
      this.changed();
    });
    source.addEventListener("done", (event) => {
      this.results = JSON.parse((event as MessageEvent<string>).data) as Results;
      source.close();
      this.changed();
    });
    source.addEventListener("failed", (event) => {
      source.close();
      this.fail((JSON.parse((event as MessageEvent<string>).data) as { error: string }).error);
    });
    source.onerror = () => {
      const isRefused = source.readyState === EventSource.CLOSED;
      // A reconnect would start the whole run again.
      source.close();
      if (!isRefused) this.fail(this.frames.length ? "the connection was lost: the run is shown as far as it came" : SILENT);
      // The stream does not show why it was refused; asking again does.
      else void ask(source.url).catch((error: Error) => this.source === source && this.fail(error.message));
    };
  }

  /** Shows an error. If the run has no frames, clears the view, which is that of the run before. */
  private fail(what: string): void {
    if (!this.frames.length) {
      for (const part of [this.keys, this.tree, this.why, this.jobs]) part.replaceChildren();
      this.charts.forEach((chart, at) => chart.draw([], CHARTS[at]!.names.map(() => [])));
      this.changed();
    }
    this.failed(what);
  }

  stop(): void { this.source?.close(); }

  /** Shows the moment at an index. */
  show(at: number): void {
    const frame = this.frames[Math.min(at, this.frames.length - 1)];
    // Elements are kept, so that they can be hovered over and selected.
    if (!frame || (this.drawn === frame && this.drawnResults === this.results)) return;
    this.drawn = frame;
    this.drawnResults = this.results;
    this.showKeys(frame);
    this.showTree(frame);
    const stall = frame.point.stall;
    const over = this.results !== null && frame === this.frames[this.frames.length - 1] && this.results.outcome !== "done" ? this.results.outcome.replaceAll("_", " ") : null;
    this.why.textContent = over ? `The run ended early: ${over}. ${ENDED[this.results!.outcome] ?? ""}` : stall.state === "none" || !frame.explain ? "" : `Writes are ${stall.state}. ${frame.explain}`;
    const more = frame.jobs.length - JOBS_MAX;
    this.jobs.replaceChildren(...frame.jobs.slice(0, JOBS_MAX).map((job, at) => {
      const line = document.createElement("li");
      const others = more > 0 && at === JOBS_MAX - 1 ? `, and ${more} more` : "";
      line.textContent = `${percent(job.done)} ${job.text} (${job.is_cpu_bound ? "CPU" : "I/O"}-bound)${others}`;
      return line;
    }));
    const until = this.frames.slice(0, at + 1);
    // In paced mode, time stands still.
    const secs = until.map((it) => it.point.secs || it.point.writes);
    CHARTS.forEach((chart, index) => {
      const lines = chart.names.map((_, line) => until.map((it) => chart.of(it)[line] ?? 0));
      this.charts[index]!.draw(secs, lines);
    });
  }

  private showKeys(frame: Frame): void {
    const { point } = frame;
    const isOver = this.results !== null && frame === this.frames[this.frames.length - 1];
    const ended = isOver && this.results!.outcome !== "done" ? this.results!.outcome.replaceAll("_", " ") : null;
    const bound = point.bottleneck;
    // Totals of the run once it has ended, before that those of the moment.
    const whole = isOver ? this.results!.counters : null;
    const [cpu, all] = whole ? [whole.cpu_bound_jobs, whole.cpu_bound_jobs + whole.io_bound_jobs] : [frame.jobs.filter((job) => job.is_cpu_bound).length, frame.jobs.length];
    const rows: [string, string, string][] = [
      ["Throughput", `${point.user_mb.toFixed(1)} MB/s`, ""],
      ["Write amp", point.write_amp.toFixed(2), ""],
      ["Space amp", point.space_amp.toFixed(3), ""],
      ["Sorted runs", String(point.read_runs), ""],
      ["Stall", ended ?? point.stall.state, ended || point.stall.state !== "none" ? "warn" : "ok"],
      ["Debt", bytes(point.debt_bytes), ""],
      ["Put p99", micros(point.put_us[1]), ""],
      ["Get p99", micros(point.get_us[1]), ""],
      ["Background", all === 0 ? (whole ? "nothing merged" : "idle") : cpu * 2 > all ? "CPU-bound" : "I/O-bound", ""],
      ["Bottleneck", bound.kind === "nothing" ? "none" : (bound.what ?? bound.kind).replaceAll("_", " "), bound.kind === "nothing" ? "ok" : "warn"],
    ];
    this.keys.replaceChildren(...rows.map(([name, value, kind]) => {
      const row = document.createElement("div");
      row.className = kind;
      const term = document.createElement("dt");
      term.textContent = name;
      const figure = document.createElement("dd");
      figure.textContent = value;
      row.append(term, figure);
      return row;
    }));
  }

  /** Levels from the top; each run a row of bars over the key space, coloured by age. */
  private showTree(frame: Frame): void {
    const LEFT = 62, WIDE = 620, RIGHT = 92;
    const rows: { label: string; note: string; files: Frame["levels"][number][number]; level: number }[] = [];
    const [filled, sealed] = frame.memtables;
    frame.levels.forEach((runs, level) => {
      if (!runs.length) return;
      const total = runs.flat().reduce((sum, file) => sum + file[2], 0);
      const count = runs.flat().reduce((sum, file) => sum + file[5], 0);
      const more = runs.length - RUNS_MAX;
      const note = (at: number) => at === 0 ? `${bytes(total)}, ${count}` : more > 0 && at === RUNS_MAX - 1 ? `and ${more} more runs` : "";
      runs.slice(0, RUNS_MAX).forEach((files, at) => rows.push({ label: at ? "" : `level ${level}`, note: note(at), files, level }));
    });
    const rowHeight = rows.length > 12 ? 9 : 15;
    const height = 22 + rows.length * rowHeight + 4;
    const label = `Tree at ${frame.point.secs.toFixed(0)} s: ${frame.levels.map((runs, level) => runs.length ? `level ${level} ${bytes(frame.point.levels[level] ?? 0)}` : "").filter(Boolean).join(", ")}`;
    const picture = svg("svg", { viewBox: `0 0 ${LEFT + WIDE + RIGHT} ${Math.max(height, 150)}`, role: "img", "aria-label": label });
    const add = (name: string, attributes: Record<string, string | number>, text?: string) => {
      const element = svg(name, attributes, ...(text === undefined ? [] : [text]));
      picture.append(element);
      return element;
    };
    add("text", { x: LEFT - 6, y: 13, "text-anchor": "end" }, "memtable");
    add("rect", { x: LEFT, y: 4, width: WIDE, height: 11, fill: "none", stroke: "var(--line)" });
    add("rect", { x: LEFT, y: 4, width: WIDE * Math.min(filled, 1), height: 11, fill: "var(--accent)" });
    add("text", { x: LEFT + WIDE + 6, y: 13 }, sealed ? `${sealed} waiting` : "");
    const oldest = Math.max(1, frame.point.secs);
    rows.forEach((row, at) => {
      const y = 22 + at * rowHeight;
      add("text", { x: LEFT - 6, y: y + rowHeight - 4, "text-anchor": "end" }, row.label);
      add("text", { x: LEFT + WIDE + 6, y: y + rowHeight - 4 }, row.note);
      for (const [from, to, size, age, busy, files] of row.files) {
        const fresh = 1 - Math.min(1, age / oldest);
        const fill = busy ? "var(--busy)" : `color-mix(in srgb, var(--new) ${Math.round(fresh * 100)}%, var(--old))`;
        const bar = add("rect", { x: LEFT + from * WIDE, y: y + 1, width: Math.max(0.8, (to - from) * WIDE - 0.6), height: rowHeight - 3, fill });
        bar.append(svg("title", {}, `${files > 1 ? `${files} files, ` : ""}${bytes(size)}, newest data ${age.toFixed(0)} s old${busy ? ", being compacted" : ""}`));
      }
    });
    // Jobs: a line from the level that a job reads to the one that it writes.
    const middle = (level: number) => {
      const at = rows.findIndex((row) => row.level === level);
      return at < 0 ? null : 22 + at * rowHeight + rowHeight / 2;
    };
    for (const job of frame.jobs) {
      const from = job.from === null ? 10 : middle(job.from), to = middle(job.to);
      if (from !== null && to !== null && from !== to) add("path", { d: `M${LEFT - 2},${from} C${LEFT - 16},${from} ${LEFT - 16},${to} ${LEFT - 2},${to}`, fill: "none", stroke: "var(--busy)", "stroke-width": 1.5 });
    }
    this.tree.replaceChildren(picture);
  }

  /** All figures as lines of CSV, with the names before those of a first side. */
  csv(isFirst: boolean): string {
    const names = ["secs", "writes", "user_mb", "flush_mb", "compact_mb", "write_amp", "space_amp", "read_runs", "debt_bytes", "stalled", "cpu", "disk_read", "disk_write"] as const;
    const lines = this.frames.map((it) => [this.name, ...names.map((name) => it.point[name])].join(","));
    const head = isFirst ? [["configuration", ...names].join(",")] : [];
    return [...head, ...lines].map((line) => `${line}\n`).join("");
  }
}


