/** A lab to look at: stores and runs in a directory of its own, and the server over them. */
import { test as base, expect, type Page } from "@playwright/test";
import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { appendFileSync, copyFileSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../../..");
const CAIRN = resolve(process.env.CAIRN ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "debug/cairn"));

export class Lab {
  readonly dir = mkdtempSync(join(tmpdir(), "cairn-lab-"));
  url = "";
  private server: ChildProcess | null = null;

  cairn(...args: string[]): string {
    return execFileSync(CAIRN, args, { cwd: this.dir, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  /** Whether it was built with SQL; a database is there then. */
  hasSql = false;

  /** Stores of each kind, one damaged, runs and a history. */
  make(): this {
    const rows = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `user${String(from + at).padStart(6, "0")},value ${from + at} ${"x".repeat((from + at) % 50)}`);
    const csv = (name: string, lines: string[]) => writeFileSync(join(this.dir, name), ["key,value", ...lines].join("\n") + "\n");
    csv("a.csv", [...rows(0, 30_000), "<img src=x onerror=\"document.title='broken'\">,markup"]);
    csv("b.csv", rows(5_000, 9_000));
    this.cairn("kv", "load", "places", "a.csv", "--key", "key", "--value", "value", "--create");
    this.cairn("kv", "compact", "places");
    // What goes into no log goes to a table when the command ends.
    this.cairn("kv", "load", "places", "b.csv", "--key", "key", "--value", "value", "--durability", "memory");
    mkdirSync(join(this.dir, "stores"));
    this.cairn("hash", "build", "a.csv", "-o", "stores/users.cairn", "--key", "key", "--value", "value");
    this.cairn("hash", "build", "a.csv", "-o", "stores/users.spi", "--key", "key", "--value", "value");
    this.cairn("hash", "build", "a.csv", "-o", "stores/damaged.cairn", "--key", "key", "--value", "value");
    const file = openSync(join(this.dir, "stores/damaged.cairn"), "r+");
    const info = JSON.parse(this.cairn("hash", "info", "stores/users.cairn", "--json")) as { generations: { data_bytes: number; blob_bytes: number }[] };
    const page = (bytes: number) => Math.ceil(bytes / 4096) * 4096;
    writeSync(file, "damage in the index", 4096 + page(info.generations[0]!.blob_bytes) + page(info.generations[0]!.data_bytes) + 200);
    writeFileSync(join(this.dir, "stores/notes.txt"), "no store\n");
    const sql = process.env.CAIRN_SQL ?? CAIRN;
    const statements = "create table t (id int primary key, name text not null, at timestamp); create index t_name on t (name);"
      + "insert into t select n, 'name ' || (n % 100), timestamp '2026-01-01 00:00:00' from generate_series(1, 20000) as g(n);";
    const made = spawnSync(sql, ["sql", "stores/app.db"], { cwd: this.dir, input: statements, encoding: "utf8" });
    this.hasSql = made.status === 0;
    mkdirSync(join(this.dir, "runs"));
    for (const name of ["hash-quick.json", "kv-eight.json"]) copyFileSync(join(ROOT, "benchmark-results/stored", name), join(this.dir, "runs", name));
    this.cairn("bench", "record", "runs/hash-quick.json", "--history", "runs/history");
    writeFileSync(join(this.dir, "watched.log"), "");
    return this;
  }

  async start(...more: string[]): Promise<void> {
    const args = ["ui", "places", "stores", "--results", "runs", "--history", "runs/history", "--watch", "watched.log", "--port", "0", ...more];
    const server = spawn(CAIRN, args, { cwd: this.dir, stdio: ["ignore", "ignore", "pipe"] });
    this.server = server;
    this.url = await new Promise<string>((found, failed) => {
      let said = "";
      server.stderr!.on("data", (some: Buffer) => {
        said += String(some);
        const url = /http:\S+(?=\s)/.exec(said)?.[0];
        if (url) found(url);
      });
      server.on("exit", () => failed(new Error(`the server has ended: ${said}`)));
    });
  }

  get origin(): string { return new URL(this.url).origin; }
  get token(): string { return new URL(this.url).searchParams.get("token")!; }
  get bearer(): { authorization: string } { return { authorization: `Bearer ${this.token}` }; }

  says(line: string): void { appendFileSync(join(this.dir, "watched.log"), `${line}\n`); }
  runs(): string[] { return readdirSync(join(this.dir, "runs")); }

  async end(): Promise<void> {
    const server = this.server;
    if (server && server.exitCode === null) {
      const ended = new Promise((done) => server.once("exit", done));
      server.kill("SIGINT");
      await ended;
    }
    rmSync(this.dir, { recursive: true });
  }
}

/** Tests with a lab that only looks; the page must log no error but answers that are errors. */
export const test = base.extend<{ errors: string[]; open: (hash?: string) => Promise<void> }, { lab: Lab }>({
  lab: [async ({}, use) => {
    const lab = new Lab().make();
    await lab.start();
    await use(lab);
    await lab.end();
  }, { scope: "worker", timeout: 120_000 }],
  errors: [async ({ page }, use) => {
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => { if (message.type() === "error" && !/status of (4\d\d)/.test(message.text())) errors.push(message.text()); });
    await use(errors);
    expect(errors).toEqual([]);
  }, { auto: true }],
  open: async ({ page, lab }, use) => {
    await use(async (hash = "#/") => {
      await page.goto(lab.url);
      await expect(page.locator("#where")).toContainText("version");
      await page.evaluate((hash) => { location.hash = hash; }, hash);
      await expect(page.locator("main > *").first()).toBeVisible();
    });
  },
});

/** A picture for a person, where SHOTS says where to. */
export async function shot(page: Page, name: string): Promise<void> {
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}.png`, fullPage: true });
}

export { expect };
