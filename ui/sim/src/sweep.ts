/** Heat map and Pareto chart over two settings. */
import { ask } from "../../shared/ask";
import { by } from "../../shared/dom";
import { get, withCodec, withRate } from "./config";
import type { Config, Json } from "./types";

const AXES: Record<string, string> = {
  "options.write_buffer_size": "16777216,33554432,67108864,134217728,268435456",
  "options.max_bytes_for_level_multiplier": "4,6,8,10,12",
  "options.max_background_jobs": "1,2,4,8",
  "options.level0_file_num_compaction_trigger": "2,4,8,16",
  "options.compression": "none,snappy,lz4,zstd",
  "options.compaction_style": "leveled,universal",
  "workload.traffic.mb_per_sec": "5,10,20,40,80,160",
  "options.max_subcompactions": "1,2,4",
};

const FIGURES = ["write_amp", "space_amp", "user_mb_per_sec", "stall_secs", "put_p99_us", "get_p99_us", "memory_bytes", "cpu", "disk_write"];

interface Row { values: Json[]; outcome: string; flushes: number; figures: Record<string, number> }
interface Answer { axes: string[]; rows: Row[] }

/** Returns why the figures of a run are not conclusive; empty if they are. */
const flaw = (row: Row): string => row.outcome !== "done" ? row.outcome.replaceAll("_", " ") : row.flushes > 0 ? "" : "never flushed";

export function prepare(config: () => Config, failed: (what: string) => void): void {
  const [x, y, figure] = [by<HTMLSelectElement>("axisX"), by<HTMLSelectElement>("axisY"), by<HTMLSelectElement>("figure")];
  for (const axis of Object.keys(AXES)) {
    x.add(new Option(axis, axis));
    y.add(new Option(axis, axis));
  }
  y.selectedIndex = 1;
  for (const name of FIGURES) figure.add(new Option(name, name));
  const dialog = by<HTMLDialogElement>("sweep");
  by("sweepOpen").onclick = () => dialog.showModal();
  by("sweepClose").onclick = () => dialog.close();
  let last: Answer | null = null;
  const draw = () => { if (last) { heat(last, figure.value); pareto(last); } };
  figure.onchange = draw;
  by<HTMLFormElement>("sweepForm").onsubmit = (event) => {
    event.preventDefault();
    const axes = x.value === y.value ? [x.value] : [x.value, y.value];
    by("heat").textContent = "running…";
    let base = axes.includes("options.compression") ? withCodec(config(), get(config(), "options.compression")) : config();
    // Other kinds of traffic have no rate.
    if (axes.includes("workload.traffic.mb_per_sec")) base = withRate(base, 0);
    const body = { config: base, vary: axes.map((axis) => `${axis}=${AXES[axis]}`) };
    ask<Answer>("api/sweep", body).then((got) => {
      last = got;
      draw();
    }).catch((error: Error) => { by("heat").textContent = error.message; failed(error.message); });
  };
}

function heat(answer: Answer, figure: string): void {
  const xs = [...new Set(answer.rows.map((row) => String(row.values[0])))];
  const ys = [...new Set(answer.rows.map((row) => String(row.values[1] ?? "")))];
  const values = answer.rows.filter((row) => !flaw(row)).map((row) => row.figures[figure] ?? 0);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const table = document.createElement("table");
  const caption = table.createCaption();
  caption.textContent = `${figure}: ${answer.axes[0]} across${answer.axes[1] ? `, ${answer.axes[1]} down` : ""}`;
  const head = table.createTHead().insertRow();
  for (const text of ["", ...xs]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    head.append(cell);
  }
  for (const y of ys) {
    const line = table.insertRow();
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = y;
    line.append(name);
    for (const x of xs) {
      const row = answer.rows.find((it) => String(it.values[0]) === x && String(it.values[1] ?? "") === y);
      const cell = line.insertCell();
      const value = row?.figures[figure] ?? NaN;
      const why = row ? flaw(row) : "";
      cell.textContent = why || (Number.isFinite(value) ? value.toPrecision(4) : "–");
      if (why) continue;
      const share = high > low ? (value - low) / (high - low) : 0;
      cell.style.background = `color-mix(in srgb, var(--busy) ${Math.round(share * 60)}%, transparent)`;
    }
  }
  by("heat").replaceChildren(table);
}

/** Write against space amplification. Points of the Pareto front are filled; inconclusive runs are left out. */
function pareto(answer: Answer): void {
  const rows = answer.rows.filter((row) => !flaw(row));
  const left = answer.rows.length - rows.length;
  if (!rows.length) {
    by("pareto").textContent = "No run completed with flushed data.";
    return;
  }
  const points = rows.map((row) => ({ x: row.figures["write_amp"] ?? 0, y: row.figures["space_amp"] ?? 0, name: row.values.join(", ") }));
  const best = points.filter((a) => !points.some((b) => b.x <= a.x && b.y <= a.y && (b.x < a.x || b.y < a.y)));
  const range = (values: number[]): [number, number] => [Math.min(...values) * 0.97, Math.max(...values) * 1.03];
  const [x0, x1] = range(points.map((it) => it.x)), [y0, y1] = range(points.map((it) => it.y));
  const place = (it: { x: number; y: number }) => [50 + (it.x - x0) / (x1 - x0 || 1) * 560, 170 - (it.y - y0) / (y1 - y0 || 1) * 150];
  const dots = points.map((it) => {
    const [x, y] = place(it);
    const fill = best.includes(it) ? "var(--accent)" : "none";
    const text = new Option(it.name).innerHTML;
    return `<circle cx="${x}" cy="${y}" r="4" fill="${fill}" stroke="var(--accent)"><title>${text}: write ${it.x.toFixed(2)}, space ${it.y.toFixed(3)}</title></circle>`;
  });
  by("pareto").innerHTML = `<svg viewBox="0 0 640 200" role="img" aria-label="Pareto front of write and space amplification"><text x="330" y="194" text-anchor="middle">write amplification ${x0.toFixed(1)} to ${x1.toFixed(1)}; filled: nothing is better in both${left ? `; ${left} left out` : ""}</text><text x="12" y="100" transform="rotate(-90 12 100)" text-anchor="middle">space ${y0.toFixed(2)} to ${y1.toFixed(2)}</text><path d="M50 20V170H610" fill="none" stroke="var(--line)"/>${dots.join("")}</svg>`;
}
