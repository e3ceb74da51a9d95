/** Line charts in the page's colours, as wide as their box. */
import uPlot from "uplot";
import { h } from "./dom";

export const COLOURS = ["#1f7ab8", "#c2661a", "#4b8b5a", "#a4508b", "#8a7a1f", "#5a6acf", "#b04a4a", "#3b8f8f"];

const colour = (name: string) => () => getComputedStyle(document.documentElement).getPropertyValue(name);

/** Formats a figure briefly, with three digits. */
export function short(value: number): string {
  const size = Math.abs(value);
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) if (size >= unit) return `${Number((value / unit).toPrecision(3))}${name}`;
  return size >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString();
}

/** The plots that are on the page. */
const shown = new Set<uPlot>();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.forEach((plot) => plot.redraw()));

export interface Look { title: string; names: string[]; height: number; isTime?: boolean; points?: boolean }

/** A chart in a box. It is destroyed when it leaves the page. */
export class Chart {
  readonly element: HTMLElement;
  private readonly plot: uPlot;

  constructor(private readonly look: Look) {
    this.element = h("div", { class: "chart", role: "img", "aria-label": look.title }, h("h3", {}, look.title));
    const series = look.names.map((label, at) => ({ label, stroke: COLOURS[at % COLOURS.length]!, width: 1.5, points: { show: look.points ?? false, size: 5 }, spanGaps: true }));
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "10px system-ui" };
    const left = { ...axis, size: 44, values: (_: uPlot, values: number[]) => values.map(short) };
    this.plot = new uPlot({
      width: 230, height: look.height, scales: { x: { time: look.isTime ?? false } }, series: [{}, ...series],
      axes: [{ ...axis, size: 28 }, left], cursor: { show: false },
    }, [[], ...look.names.map(() => [])] as unknown as uPlot.AlignedData, this.element);
    const sizes = new ResizeObserver(() => {
      // An element that leaves the page loses its size, which calls this observer.
      if (!this.element.isConnected) {
        sizes.disconnect();
        shown.delete(this.plot);
        this.plot.destroy();
        return;
      }
      shown.add(this.plot);
      const width = this.element.clientWidth - 12;
      if (width > 60 && width !== this.plot.width) this.plot.setSize({ width, height: look.height });
    });
    sizes.observe(this.element);
  }

  /** Draws lines over the values of the horizontal axis. */
  draw(below: number[], lines: (number | null)[][]): void {
    this.plot.setData([below, ...lines] as uPlot.AlignedData);
  }

  /** The names with their colours. */
  legend(): HTMLElement {
    return h("ul", { class: "legend" }, this.look.names.map((name, at) => {
      const mark = h("span", { class: "mark" });
      mark.style.background = COLOURS[at % COLOURS.length]!;
      return h("li", {}, mark, name);
    }));
  }
}
