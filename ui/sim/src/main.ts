/** The page: two sides on one clock. */
import { ask, askText } from "../../shared/ask";
import { by } from "../../shared/dom";
import { build } from "./config";
import { Side } from "./side";
import { prepare } from "./sweep";
import type { Config, Imported, Start } from "./types";

/** Frames a second at speed 1. */
const FRAMES_PER_SEC = 12;

/** Returns the configurations in the address; `null` if there are none. Throws if they cannot be read. */
function linked(): Config[] | null {
  if (location.hash.length < 2) return null;
  const found = JSON.parse(decodeURIComponent(location.hash.slice(1))) as Config[];
  if (!Array.isArray(found) || found.length < 1 || found.length > 2 || !found.every((it) => it instanceof Object)) throw new Error("no configurations");
  return found;
}

function tell(what: string): void {
  by("message").textContent = what;
  by("message").hidden = false;
}

class Page {
  private configs: Config[];
  private readonly fill: ReturnType<typeof build>;
  private readonly sides: Side[] = [];
  private chosen = 0;
  private at = 0;
  private isPlaying = true;
  private due = 0;

  constructor(start: Start) {
    this.configs = [structuredClone(start.config)];
    this.fill = build(by<HTMLFormElement>("controls"), start, {
      choose: (side) => this.choose(side),
      change: (config) => this.change(config),
      openFile: () => this.open(),
    });
    by("badge").textContent = start.badge ? `validated${start.badge}` : "";
    this.wire();
    this.follow();
    prepare(() => this.configs[this.chosen]!, tell);
    let before = performance.now();
    const tick = (now: number) => {
      this.due += (now - before) / 1000 * FRAMES_PER_SEC * Number(by<HTMLSelectElement>("speed").value);
      before = now;
      const steps = Math.floor(this.due);
      this.due -= steps;
      if (this.isPlaying && steps > 0) this.go(this.at + steps);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  private wire(): void {
    by("play").onclick = () => this.play(!this.isPlaying);
    by("step").onclick = () => { this.play(false); this.go(this.at + 1); };
    by<HTMLInputElement>("scrub").oninput = () => { this.play(false); this.go(Number(by<HTMLInputElement>("scrub").value)); };
    by<HTMLInputElement>("compare").onchange = () => {
      this.configs = by<HTMLInputElement>("compare").checked ? [this.configs[0]!, structuredClone(this.configs[0]!)] : [this.configs[0]!];
      this.chosen = this.configs.length - 1;
      this.layOut();
    };
    by("share").onclick = () => {
      location.hash = encodeURIComponent(JSON.stringify(this.configs));
      void navigator.clipboard?.writeText(location.href).catch(() => undefined);
      by("share").textContent = "Link is in the address bar";
    };
    by("save").onclick = () => void this.save().catch((error: Error) => tell(error.message));
    addEventListener("hashchange", () => this.follow());
    document.addEventListener("keydown", (event) => {
      const tag = (event.target as HTMLElement).tagName;
      if (["INPUT", "SELECT", "BUTTON", "TEXTAREA"].includes(tag) || by<HTMLDialogElement>("sweep").open) return;
      if (event.key === " ") { event.preventDefault(); this.play(!this.isPlaying); }
      if (event.key === "ArrowRight") { this.play(false); this.go(this.at + 1); }
      if (event.key === "ArrowLeft") { this.play(false); this.go(this.at - 1); }
    });
  }

  /** Shows the configurations in the address, if they differ from the current ones. The button "Link" writes them there. */
  private follow(): void {
    const before = JSON.stringify(this.configs);
    let wrong = "";
    try { this.configs = linked() ?? this.configs; } catch { wrong = "the link's configuration cannot be read, so it is not shown"; }
    by<HTMLInputElement>("compare").checked = this.configs.length === 2;
    if (!this.sides.length || JSON.stringify(this.configs) !== before) this.layOut();
    if (wrong) tell(wrong);
  }

  /** Rebuilds the sides, one for each configuration. */
  private layOut(): void {
    this.sides.splice(0).forEach((side) => side.stop());
    const box = by("sides");
    box.className = this.configs.length === 2 ? "two" : "";
    this.configs.forEach((_, at) => this.sides.push(new Side(at ? "B" : "A", () => this.changed(), tell)));
    box.replaceChildren(...this.sides.map((side, at) => {
      side.element.onclick = () => this.choose(at);
      return side.element;
    }));
    this.choose(Math.min(this.chosen, this.configs.length - 1));
    this.at = 0;
    this.configs.forEach((_, at) => this.run(at));
  }

  private choose(at: number): void {
    this.chosen = at;
    this.fill(this.configs[at]!, at, this.configs.length);
  }

  /** Replaces the configuration of the chosen side. */
  private change(config: Config): void {
    this.configs[this.chosen] = config;
    this.choose(this.chosen);
    this.at = 0;
    this.play(true);
    this.run(this.chosen);
  }

  private run(at: number): void {
    by("message").hidden = true;
    this.sides[at]!.run(this.configs[at]!);
  }

  private open(): void {
    const file = document.createElement("input");
    file.type = "file";
    file.onchange = async () => {
      const text = await file.files?.[0]?.text();
      if (text === undefined) return;
      const got = await ask<Imported>("api/import", text).catch((error: Error) => tell(error.message));
      if (!got) return;
      this.change({ ...this.configs[this.chosen]!, options: got.options });
      const notes = [...(got.ignored ? [`${got.ignored} options of the file have no model and are left out`] : []), ...got.notes];
      if (notes.length) tell(notes.join("; "));
    };
    file.click();
  }

  /** Figures as CSV, and the options of what is chosen. */
  private async save(): Promise<void> {
    const give = (name: string, text: string) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text]));
      link.download = name;
      link.click();
      URL.revokeObjectURL(link.href);
    };
    give("figures.csv", this.sides.map((side, at) => side.csv(at === 0)).join(""));
    give("OPTIONS", await askText("api/export", { config: this.configs[this.chosen] }));
  }

  private play(yes: boolean): void {
    this.isPlaying = yes;
    this.due = 0;
    by("play").textContent = yes ? "Pause" : "Play";
  }

  private changed(): void {
    const count = Math.max(...this.sides.map((side) => side.frames.length));
    by<HTMLInputElement>("scrub").max = String(Math.max(0, count - 1));
    if (this.at === 0 || !this.isPlaying) this.go(this.at);
  }

  /** Moves to a point in time, on both sides. */
  private go(to: number): void {
    const count = Math.max(0, ...this.sides.map((side) => side.frames.length));
    this.at = Math.max(0, Math.min(to, count - 1));
    by<HTMLInputElement>("scrub").value = String(this.at);
    const point = this.sides[0]?.frames[this.at]?.point ?? this.sides[0]?.frames.at(-1)?.point;
    by("clock").textContent = point && !point.secs && point.writes ? `${point.writes.toFixed(0)} writes` : `${(point?.secs ?? 0).toFixed(0)} s`;
    this.sides.forEach((side) => side.show(this.at));
  }
}

// Below the lab's page there is a way back to it.
if (location.pathname !== "/") by("home").hidden = false;
ask<Start>("api/start").then((start) => new Page(start)).catch((error: Error) => tell(error.message));
