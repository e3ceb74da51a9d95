/** The page: two sides on one clock. */
import { ask, send } from "../../shared/ask";
import { by } from "../../shared/dom";
import { build } from "./config";
import { Side } from "./side";
import { prepare } from "./sweep";
import type { Config, Start } from "./types";

/** Frames a second at speed 1. */
const FRAMES_PER_SEC = 12;

class Page {
  private configs: Config[];
  private readonly sides: Side[] = [];
  private chosen = 0;
  private at = 0;
  private isPlaying = true;
  private due = 0;

  constructor(private readonly start: Start) {
    this.configs = [structuredClone(start.config)];
    try {
      const shared = location.hash.length > 1 ? JSON.parse(decodeURIComponent(location.hash.slice(1))) as Config[] : null;
      if (Array.isArray(shared) && shared.length >= 1 && shared.length <= 2) this.configs = shared;
    } catch {
      this.fail("the link's configuration cannot be read; the defaults are shown");
    }
    by<HTMLInputElement>("compare").checked = this.configs.length === 2;
    by("badge").textContent = start.badge ? `validated${start.badge}` : "";
    this.wire();
    this.layOut();
    prepare(() => this.configs[this.chosen]!, (what) => this.fail(what));
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
    by("save").onclick = () => void this.save();
    document.addEventListener("keydown", (event) => {
      const tag = (event.target as HTMLElement).tagName;
      if (["INPUT", "SELECT", "BUTTON", "TEXTAREA"].includes(tag) || by<HTMLDialogElement>("sweep").open) return;
      if (event.key === " ") { event.preventDefault(); this.play(!this.isPlaying); }
      if (event.key === "ArrowRight") { this.play(false); this.go(this.at + 1); }
      if (event.key === "ArrowLeft") { this.play(false); this.go(this.at - 1); }
    });
  }

  /** Sides anew, one for each configuration. */
  private layOut(): void {
    this.sides.splice(0).forEach((side) => side.stop());
    const box = by("sides");
    box.className = this.configs.length === 2 ? "two" : "";
    this.configs.forEach((_, at) => this.sides.push(new Side(at ? "B" : "A", () => this.changed(), (what) => this.fail(what))));
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
    const side = this.configs.length === 2 ? `Configuration ${at ? "B" : "A"} (click a side to choose)` : "Configuration";
    build(by<HTMLFormElement>("controls"), this.start, this.configs[at]!, side, (config) => {
      this.configs[this.chosen] = config;
      this.choose(this.chosen);
      this.at = 0;
      this.play(true);
      this.run(this.chosen);
    }, () => this.open());
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
      const got = await ask<{ options: Config }>("api/import", text).catch((error: Error) => this.fail(error.message));
      if (!got) return;
      this.configs[this.chosen] = { ...this.configs[this.chosen]!, options: got.options };
      this.choose(this.chosen);
      this.at = 0;
      this.run(this.chosen);
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
    give("figures.csv", this.sides.map((side) => side.csv()).join(""));
    const answer = await send("api/export", { config: this.configs[this.chosen] });
    if (answer.ok) give("OPTIONS", await answer.text());
    else this.fail((await answer.json() as { error: string }).error);
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

  /** To a point; both sides show the same. */
  private go(to: number): void {
    const count = Math.max(0, ...this.sides.map((side) => side.frames.length));
    this.at = Math.max(0, Math.min(to, count - 1));
    by<HTMLInputElement>("scrub").value = String(this.at);
    const point = this.sides[0]?.frames[this.at]?.point ?? this.sides[0]?.frames.at(-1)?.point;
    by("clock").textContent = point && !point.secs && point.writes ? `${point.writes.toFixed(0)} writes` : `${(point?.secs ?? 0).toFixed(0)} s`;
    this.sides.forEach((side) => side.show(this.at));
  }

  private fail(what: string): void {
    by("message").textContent = what;
    by("message").hidden = false;
  }
}

// Below the lab's page there is a way back to it.
if (location.pathname !== "/") by("home").hidden = false;
void ask<Start>("api/start").then((start) => new Page(start));
