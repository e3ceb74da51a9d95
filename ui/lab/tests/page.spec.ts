import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Lab, expect, shot, test } from "./lab";

test("the token becomes a cookie and leaves the address", async ({ page, lab, open }) => {
  await open();
  expect(page.url()).not.toContain("token");
  await page.reload();
  await expect(page.locator("#where")).toContainText("read-only");
  const cookie = (await page.context().cookies()).find((it) => it.name.startsWith("cairn-ui-"))!;
  expect([cookie.value, cookie.httpOnly, cookie.sameSite]).toEqual([lab.token, true, "Strict"]);
});

test("nobody gets anything without the token, by another name, or with a path", async ({ request, lab }) => {
  const get = async (path: string, headers = {}) => (await request.get(lab.origin + path, { headers })).status();
  for (const path of ["/", "/app.js", "/api/places", "/api/inspect?place=0", "/sim/", "/sim/api/start", "/report?run=hash-quick.json", "/none"]) {
    expect(await get(path), path).toBe(401);
    expect(await get(path, { authorization: "Bearer 00" }), path).toBe(401);
    expect(await get(path, { ...lab.bearer, host: "evil.example" }), path).toBe(403);
  }
  expect(await get(`/api/places?token=${lab.token}`)).toBe(401);
  for (const entry of ["../places", "..", "/etc/passwd", "nothing.cairn", "users.cairn/..", "%2e%2e"]) {
    expect(await get(`/api/inspect?place=1&entry=${encodeURIComponent(entry)}`, lab.bearer), entry).toBe(404);
  }
  for (const run of ["../a.csv", "history/CURRENT", "/etc/passwd", "none.json"]) expect(await get(`/report?run=${encodeURIComponent(run)}`, lab.bearer), run).toBe(404);
  expect(await get("/api/inspect?place=9", lab.bearer)).toBe(404);
  const post = async (headers = {}) => (await request.post(`${lab.origin}/api/jobs`, { headers, data: { suite: "hash" } })).status();
  expect([await post(), await post(lab.bearer), await post({ ...lab.bearer, "x-cairn": "page" })]).toEqual([401, 403, 403]);
  expect(await get("/api/start", lab.bearer)).toBe(200);
});

test("the overview has a card for everything", async ({ page, open }) => {
  await open();
  await expect(page.locator(".card")).toHaveCount(5);
  await expect(page.getByRole("link", { name: "users.cairn" })).toBeVisible();
  await expect(page.getByRole("link", { name: /^hash, 2026|^hash, / })).toBeVisible();
  await shot(page, "overview");
});

test("a key-value store shows its tree, tables, blocks and keys", async ({ page, open }) => {
  await open("#/stores/0");
  await expect(page.locator("h2").first()).toHaveText("places");
  const bars = page.locator(".picture rect");
  await expect(bars.nth(1)).toBeVisible();
  await shot(page, "kv");
  await bars.first().focus();
  await page.keyboard.press("Enter");
  await expect(page.locator("#table")).toContainText("Compression");
  await expect(page.getByRole("table", { name: "Blocks" }).locator("tbody tr").first()).toContainText("user");
  await page.getByLabel("A key").fill("user000123");
  await page.getByLabel("A key").press("Enter");
  await expect(page.getByRole("table", { name: "Found" })).toContainText("value 123");
  await page.getByLabel("A key").fill("no such key");
  await page.getByRole("button", { name: "Look up" }).click();
  await expect(page.getByText("There is no such key.")).toBeVisible();
  await page.getByLabel("A key").fill("");
  await page.getByRole("button", { name: "List from here" }).click();
  // Markup in a key is text.
  await expect(page.getByRole("table", { name: "Entries" }).locator("tbody tr").first()).toContainText("<img src=x");
  expect(await page.title()).not.toBe("broken");
  await page.getByRole("button", { name: "Next", exact: true }).click();
  await expect(page.getByRole("table", { name: "Entries" }).locator("tbody tr").first()).not.toContainText("<img");
  await page.getByRole("button", { name: "Read and check everything" }).click();
  await expect(page.locator(".good")).toContainText("Sound");
  await shot(page, "kv-table");
});

test("a constant store shows its index's fill and finds keys", async ({ page, open }) => {
  await open("#/stores/1/users.cairn");
  await expect(page.locator(".facts")).toContainText("Fill");
  expect(await page.locator("dl[aria-label='Lines by used slots'] dd.bar").count()).toBeGreaterThan(5);
  await page.getByLabel("A key").fill("user000007");
  await page.getByRole("button", { name: "Look up" }).click();
  await expect(page.getByRole("table", { name: "Found" })).toContainText("value 7");
  await page.getByRole("button", { name: "List" }).click();
  await expect(page.getByRole("table", { name: "Entries" }).locator("tbody tr")).toHaveCount(200);
  await expect(page.getByText("There are more.")).toBeVisible();
  await shot(page, "hash");
  await page.goto(page.url().replace("users.cairn", "users.spi"));
  await expect(page.getByText("Sparkey pair")).toBeVisible();
});

test("bars are as long as what they stand for", async ({ page, lab, open }) => {
  const info = JSON.parse(lab.cairn("hash", "info", "stores/users.cairn", "--json")) as { generations: Record<string, number>[] };
  const [base] = info.generations;
  await open("#/stores/1/users.cairn");
  const list = page.locator("dl[aria-label=\"Where the file's bytes are\"]");
  await expect(list).toBeVisible();
  const bars = await list.locator("dd.bar").evaluateAll((all) => all.map((bar) => bar.firstElementChild!.getBoundingClientRect().width / bar.clientWidth));
  const values = ["data_bytes", "blob_bytes", "index_bytes", "dictionary_bytes"].map((name) => base![name]!);
  const most = Math.max(...values);
  expect(values.filter((value) => value > 0 && value < most).length, "a bar that is neither full nor empty").toBeGreaterThan(0);
  values.forEach((value, at) => expect(bars[at], `bar ${at}, ${value} of ${most}`).toBeCloseTo(value / most, 2));
  const lines = await page.locator("dl[aria-label='Lines by used slots'] dd.bar i").evaluateAll((all) => all.map((fill) => fill.getBoundingClientRect().width));
  expect(new Set(lines.map(Math.round)).size, "widths of the lines").toBeGreaterThan(3);
});

test("a database shows its trees, their fill and rows", async ({ page, lab, open }) => {
  test.skip(!lab.hasSql, "built without SQL, so no database can be made; CAIRN_SQL may name a command that can");
  await open("#/stores/1/app.db");
  await expect(page.getByRole("heading", { name: "public.t" })).toBeVisible();
  await expect(page.locator("h4").first()).toContainText("Rows: page");
  await page.getByRole("button", { name: "Show rows" }).click();
  await expect(page.getByRole("table", { name: "Rows of public.t" }).locator("tbody tr").first()).toContainText("name 1");
  await shot(page, "sql");
});

test("damage is shown with its place, and the page goes on", async ({ page, open }) => {
  await open("#/stores/1/damaged.cairn");
  const alert = page.getByRole("alert");
  await expect(alert).toContainText("Damaged");
  await expect(alert).toContainText("stores/damaged.cairn");
  await expect(alert).toContainText(/at byte [\d,]+ \(0x/);
  await shot(page, "damaged");
  await page.getByRole("link", { name: "Stores" }).first().click();
  await expect(page.getByRole("link", { name: "users.cairn" })).toBeVisible();
});

test("damage in a store that is in use may be none", async ({ page, open }) => {
  const found = { sound: false, what: "1 tables", damage: [{ file: "places/1.table", error: "places/1.table is missing" }] };
  for (const open_elsewhere of [true, false]) {
    await page.route("**/api/inspect/verify*", (route) => route.fulfill({ json: { ...found, open_elsewhere } }));
    await open("#/stores/0");
    await page.getByRole("button", { name: "Read and check everything" }).click();
    await expect(page.getByRole("alert")).toContainText("is missing");
    await expect(page.getByText("check again")).toHaveCount(open_elsewhere ? 1 : 0);
  }
});

test("runs are listed, and reports are in a sandbox", async ({ page, open, errors }) => {
  await open("#/runs");
  const rows = page.getByRole("table", { name: "Stored runs" }).locator("tbody tr");
  await expect(rows).toHaveCount(2);
  await shot(page, "runs");
  await expect(page.locator("form")).toHaveCount(0);
  await rows.filter({ hasText: "hash-quick" }).getByRole("link").click();
  await expect(page.locator("h1")).toBeVisible();
  // It has the page's scripts, and neither the page's origin nor its cookie.
  expect(await page.evaluate(() => [origin, typeof document.getElementById("theme")?.click])).toEqual(["null", "function"]);
  expect(await page.evaluate(() => fetch("/api/places").then((it) => it.status, () => "refused"))).toBe("refused");
  // That it was refused is what the browser's console says too.
  expect(errors.filter((error) => !/Content Security Policy/.test(error))).toEqual([]);
  errors.length = 0;
});

test("nothing in a table that is saved is a formula, and numbers stay numbers", async ({ page, lab }) => {
  const run = JSON.parse(readFileSync(join(lab.dir, "runs/hash-quick.json"), "utf8")) as { measurements: { metric: string; samples: number[] }[] };
  const saved = {
    "-2+3+cmd|' /C calc'!D2": "'-2+3+cmd|' /C calc'!D2", "-2 3": "'-2 3", "-": "'-", "--1": "'--1", "=1": "'=1", "+1": "'+1", "@a": "'@a",
    "-2": "-2", "-0.25": "-0.25", "-1e-7": "-1e-7", "a-b": "a-b",
  };
  Object.keys(saved).forEach((metric, at) => { run.measurements[at]!.metric = metric; });
  run.measurements[0]!.samples = [-0.5];
  writeFileSync(join(lab.dir, "formulas.json"), JSON.stringify(run));
  lab.cairn("bench", "report", "formulas.json", "--out", "formulas.html");
  await page.goto(pathToFileURL(join(lab.dir, "formulas.html")).href);
  const download = page.waitForEvent("download");
  await page.locator("#save-csv").click();
  const [head, ...lines] = readFileSync(await (await download).path(), "utf8").split("\r\n").map((line) => line.split(","));
  const column = (name: string) => lines.map((line) => line[head!.indexOf(name)]);
  expect(column("metric").slice(0, Object.keys(saved).length)).toEqual(Object.values(saved));
  expect(column("samples")[0]).toBe("-0.5");
});

test("history draws charts, and words choose among them", async ({ page, open, errors }) => {
  await open("#/history");
  await expect(page.locator("figure canvas").first()).toBeVisible();
  await page.locator("#words").fill("build");
  await page.locator("#words").press("Enter");
  await expect(page).toHaveURL(/build/);
  const others = async () => (await page.locator("figure").allTextContents()).filter((text) => !/build/.test(text));
  await expect.poll(others).toEqual([]);
  await page.locator("figure summary").first().click();
  await expect(page.locator("figure details table").first()).toBeVisible();
  await shot(page, "history");
  await page.locator("#words").fill("nothing has these");
  await page.locator("#words").press("Enter");
  await expect(page.locator(".note")).toContainText("No figures");
  expect(errors).toEqual([]);
});

test("charts that have left the page are done with", async ({ page, open }) => {
  // Listeners that outlive a chart: for colours, and for the size of the screen's points.
  await page.addInitScript(() => {
    const kept = { count: 0 };
    const { addEventListener, removeEventListener } = EventTarget.prototype;
    const isOne = (target: EventTarget, type: string) => target instanceof MediaQueryList || type === "dppxchange";
    EventTarget.prototype.addEventListener = function (...all) { if (isOne(this, all[0])) kept.count += 1; return addEventListener.apply(this, all); };
    EventTarget.prototype.removeEventListener = function (...all) { if (isOne(this, all[0])) kept.count -= 1; return removeEventListener.apply(this, all); };
    Object.assign(window, { kept });
  });
  const kept = () => page.evaluate(() => (window as unknown as { kept: { count: number } }).kept.count);
  const show = async (view: string, element: string) => {
    await page.evaluate((hash) => { location.hash = hash; }, view);
    await expect(page.locator(element).first()).toBeVisible();
  };
  await open("#/runs");
  const before = await kept();
  for (let visit = 0; visit < 3; visit += 1) {
    await show("#/history", "figure canvas");
    await show("#/runs", "#baseline");
    await expect.poll(kept).toBe(before);
  }
  // Those that are there follow the colours.
  await show("#/history", "figure canvas");
  const picture = () => page.locator("figure canvas").first().evaluate((it) => (it as HTMLCanvasElement).toDataURL());
  await page.emulateMedia({ colorScheme: "light" });
  const light = await picture();
  await page.emulateMedia({ colorScheme: "dark" });
  await expect.poll(picture).not.toBe(light);
});

test("a run whose server is gone does not pass for one that goes on", async ({ page, open }) => {
  const job = { id: 0, title: "a run", started: "2026-01-01T00:00:00Z", ours: false, running: true, ok: null, how: null, progress: null };
  let asked = 0, again = () => {};
  const isSeen = new Promise<void>((seen) => { again = seen; });
  // A stream that ends; asked again, the server's own.
  await page.route("**/api/jobs/events*", async (route) => {
    asked += 1;
    if (asked === 1) return route.fulfill({ contentType: "text/event-stream", body: `retry: 50\nevent: lines\ndata: ${JSON.stringify({ job, lines: [] })}\n\n` });
    await isSeen;
    return route.continue();
  });
  await open("#/job/0");
  await expect(page.getByText("The connection was lost")).toBeVisible();
  again();
  await expect(page.getByText("The connection was lost")).toHaveCount(0);
});

test("a run that was started elsewhere is watched", async ({ page, lab, open }) => {
  await open("#/job/0");
  lab.says("[2/4] get of 1000 entries");
  await expect(page.locator("#state")).toContainText("2 of 4: get of 1000 entries");
  lab.says("note: something to know");
  await expect(page.getByRole("log")).toContainText("something to know");
  expect(Number(await page.locator("progress").getAttribute("value") ?? await page.locator("progress").evaluate((it) => (it as HTMLProgressElement).value))).toBeCloseTo(0.25);
  await expect(page.getByRole("button", { name: "Stop" })).toBeHidden();
  await shot(page, "watch");
});

test("the simulator is below the same address", async ({ page, open }) => {
  await open();
  await page.getByRole("navigation").getByRole("link", { name: "Simulator" }).click();
  await expect(page.locator(".tree svg")).toBeVisible();
  await expect(page.locator("dl div", { hasText: "Write amp" }).locator("dd")).toHaveText(/^[1-9]/);
  await page.locator("#sweepOpen").click();
  await page.locator("#axisX").selectOption("options.compaction_style");
  await page.locator("#axisY").selectOption("options.max_subcompactions");
  await page.locator("#sweepForm button[type=submit]").click();
  await expect(page.locator("#heat td")).toHaveCount(6, { timeout: 50_000 });
  await page.locator("#sweepClose").click();
  await page.getByRole("link", { name: "Cairn lab" }).click();
  await expect(page.locator("nav a[aria-current]")).toHaveText("Overview");
});

const VIEWS = ["#/", "#/runs", "#/history", "#/stores", "#/stores/0", "#/stores/1/users.cairn", "#/stores/1/app.db", "#/stores/1/damaged.cairn", "#/job/0", "#/none"];

for (const width of [400, 1600]) for (const colorScheme of ["light", "dark"] as const) {
  test(`nothing is cut off at ${width} px, ${colorScheme}`, async ({ page, open }) => {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme });
    await open();
    for (const view of VIEWS) {
      await page.evaluate((hash) => { location.hash = hash; }, view);
      await page.waitForLoadState("networkidle").catch(() => undefined);
      await expect(page.locator("main")).not.toContainText(/Opening…|Reading…|Looking…/);
      expect(await page.evaluate(() => document.documentElement.scrollWidth), view).toBeLessThanOrEqual(width);
      await shot(page, `${width}-${colorScheme}${view.replaceAll(/[#/.]+/g, "-")}`);
    }
  });
}

test("all is reached with the keyboard", async ({ page, open }) => {
  await open();
  // As who has just come: a change of view puts the focus into it.
  await page.reload();
  await expect(page.locator("main > *").first()).toBeVisible();
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
  await page.keyboard.press("Tab");
  expect(await focused()).toBe("To the content");
  for (const name of ["Overview", "Runs", "History", "Stores"]) {
    await page.keyboard.press("Tab");
    expect(await focused()).toBe(name);
  }
  await page.keyboard.press("Enter");
  await expect(page.locator("nav a[aria-current]")).toHaveText("Stores");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
});

test("an unknown view, store or run says so", async ({ page, open }) => {
  for (const view of ["#/none", "#/constructor", "#/%", "#/none/%"]) {
    await open(view);
    await expect(page.getByRole("alert")).toContainText("no such view");
  }
  for (const [view, words] of [["#/stores/7", "no place 7"], ["#/stores/1/notes.txt", "no store"], ["#/stores/1/gone.db", "gone.db"], ["#/job/77", "no run 77"]] as const) {
    await page.evaluate((hash) => { location.hash = hash; }, view);
    await expect(page.getByRole("alert")).toContainText(words);
  }
});

test.describe("where benchmarks may be started", () => {
  test("one is started, watched, ended early and reported on", async ({ page }) => {
    test.setTimeout(180_000);
    const lab = new Lab().make();
    await lab.start("--allow-run");
    try {
      await page.goto(lab.url);
      await page.getByRole("navigation").getByRole("link", { name: "Runs" }).click();
      await page.locator("#suite").selectOption("hash");
      await page.locator("#word").fill("--full");
      await page.getByRole("button", { name: "Start" }).click();
      await expect(page.locator("#state")).toContainText("Ended: the run ended with exit status: 1", { timeout: 60_000 });
      await expect(page.getByRole("log")).toContainText("error:");
      await page.getByRole("link", { name: "Runs and reports" }).click();
      await page.locator("#suite").selectOption("hash");
      await page.locator("#word").fill("heap");
      await page.locator("#seconds").fill("120");
      await page.getByRole("button", { name: "Start" }).click();
      await expect(page.locator("#state")).toContainText(/\d+ of \d+/, { timeout: 60_000 });
      await shot(page, "job");
      const second = await page.request.post(`${lab.origin}/api/jobs`, { headers: { "x-cairn": "page" }, data: { suite: "hash" } });
      expect(second.status()).toBe(409);
      await page.getByRole("button", { name: "Stop" }).click();
      await expect(page.locator("#state")).toContainText("Ended", { timeout: 60_000 });
      await shot(page, "job-ended");
    } finally {
      await lab.end();
    }
  });
});
