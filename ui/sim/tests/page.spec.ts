import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test, type Page } from "@playwright/test";

const errors: string[] = [];

test.beforeEach(async ({ page }) => {
  errors.length = 0;
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  await page.goto("/");
  await expect(page.locator(".tree svg")).toBeVisible();
});

// The browser logs requests that are refused or, where a test has it so, fail.
test.afterEach(() => { expect(errors.filter((it) => !/400|ERR_FAILED/.test(it))).toEqual([]); });

const field = (page: Page, name: string) => page.locator(`[name="${name}"]`);

const figure = (page: Page, name: string, side = 0) =>
  page.locator(".side").nth(side).locator("dl div", { hasText: name }).locator("dd");

test("the tree and the key figures are on one screen without scrolling", async ({ page }) => {
  await expect(figure(page, "Write amp")).toHaveText(/^[1-9]/);
  // While it plays, what is measured may be replaced at that moment.
  await page.locator("#play").click();
  for (const element of [page.locator(".keys"), page.locator(".tree svg")]) {
    const box = (await element.boundingBox())!;
    expect(box.y + box.height).toBeLessThanOrEqual(900);
  }
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(1440);
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/page.png` });
});

test("time is paused, stepped and scrubbed with the keyboard", async ({ page }) => {
  await page.locator("h1").click();
  await page.keyboard.press("Space");
  await expect(page.locator("#play")).toHaveText("Play");
  await page.locator("#scrub").fill("3");
  const clock = page.locator("#clock");
  const before = await clock.textContent();
  await page.locator("h1").click();
  await page.keyboard.press("ArrowRight");
  await expect(clock).not.toHaveText(before!);
  await page.keyboard.press("ArrowLeft");
  await expect(clock).toHaveText(before!);
});

test("a workload profile fills its fields, and a change runs anew", async ({ page }) => {
  await page.locator("#workload").selectOption("small-values");
  await expect(page.locator('[name="workload.value_bytes"]')).toHaveValue("100");
  await page.locator("#hardware").selectOption("hdd");
  await expect(page.locator('[name="hardware.disk.write_mb_per_sec"]')).toHaveValue("160");
  await page.locator('[name="options.compaction_style"]').selectOption("universal");
  await expect(figure(page, "Write amp")).toHaveText(/^[1-9]/);
});

test("what is drawn stays once a run is over", async ({ page }) => {
  // Not the one that the page begins with, which is given up and never finished.
  const run = page.waitForResponse((it) => it.url().includes("api/stream") && decodeURIComponent(it.url()).includes('"duration_secs":60'));
  await field(page, "duration_secs").fill("60");
  await field(page, "duration_secs").press("Tab");
  // So fast that each picture of the browser is a step.
  await page.locator("#speed").selectOption("16");
  await (await run).finished();
  await expect(page.locator("#clock")).toHaveText("60 s");
  const stays = () => page.locator(".tree rect").last().evaluate(async (bar) => {
    for (let pictures = 0; pictures < 60; pictures += 1) await new Promise(requestAnimationFrame);
    return bar.isConnected;
  });
  await expect.poll(stays).toBe(true);
});

test("the form keeps the focus, and a side is chosen, with the keyboard", async ({ page }) => {
  await field(page, "workload.keys").focus();
  await field(page, "workload.keys").fill("2000000");
  await page.keyboard.press("Tab");
  const value = field(page, "workload.value_bytes"), before = Number(await value.inputValue());
  await expect(value).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await expect(value).toHaveValue(String(before + 2));
  await page.locator("#hardware").focus();
  // The second of the list, from the first.
  const second = await page.locator("#hardware option").nth(2).getAttribute("value");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await expect(page.locator("#hardware")).toBeFocused();
  await expect(page.locator("#hardware")).toHaveValue(second!);
  const side = (name: string) => page.getByRole("radio", { name });
  await expect(side("A")).toBeHidden();
  await page.locator("#compare").check();
  await expect(side("B")).toBeChecked();
  await field(page, "options.max_background_jobs").fill("7");
  await side("B").focus();
  await page.keyboard.press("ArrowLeft");
  await expect(side("A")).toBeFocused();
  await expect(field(page, "options.max_background_jobs")).not.toHaveValue("7");
  await page.keyboard.press("ArrowRight");
  await expect(field(page, "options.max_background_jobs")).toHaveValue("7");
});

test("a machine is named as long as it is the one", async ({ page }) => {
  await page.locator("#hardware").selectOption("hdd");
  await field(page, "workload.keys").fill("2000000");
  await field(page, "workload.keys").press("Tab");
  await expect(page.locator("#hardware")).toHaveValue("hdd");
  await field(page, "hardware.cores").fill("3");
  await field(page, "hardware.cores").press("Tab");
  await expect(page.locator("#hardware")).toHaveValue("");
});

test("what a file of options has and the simulator has not is told", async ({ page }) => {
  const chooser = page.waitForEvent("filechooser");
  await page.locator("#open").click();
  const text = "[DBOptions]\n  max_background_jobs=7\n  wal_recovery_mode=kPointInTimeRecovery\n[CFOptions \"default\"]\n";
  await (await chooser).setFiles({ name: "OPTIONS", mimeType: "text/plain", buffer: Buffer.from(text) });
  await expect(page.locator("#message")).toContainText("1 options of the file have no model and are left out");
  await expect(field(page, "options.max_background_jobs")).toHaveValue("7");
});

test("a connection that is lost is told, and nothing is run twice", async ({ page, request }) => {
  const whole = await (await request.get(`/api/stream?config=${encodeURIComponent('{"duration_secs":60}')}`)).text();
  const [first] = whole.split("\n\n");
  let asked = 0;
  await page.route("**/api/stream*", (route) => {
    asked += 1;
    return route.fulfill({ contentType: "text/event-stream", body: `${first}\n\n` });
  });
  await field(page, "duration_secs").fill("60");
  await field(page, "duration_secs").press("Tab");
  await expect(page.locator("#message")).toContainText("the connection was lost");
  await expect(figure(page, "Write amp")).toBeVisible();
  await page.route("**/api/export", (route) => route.abort());
  await page.locator("#save").click();
  await expect(page.locator("#message")).toHaveText("the server does not answer");
  expect(asked).toBe(1);
  await page.route("**/api/start", (route) => route.abort());
  await page.reload();
  await expect(page.locator("#message")).toHaveText("the server does not answer");
});

test("two configurations run side by side on one clock", async ({ page }) => {
  await page.locator("#compare").check();
  await expect(page.locator(".side")).toHaveCount(2);
  await page.locator('[name="options.compaction_style"]').selectOption("universal");
  await page.locator("#speed").selectOption("16");
  await expect(page.locator("#clock")).toHaveText("3600 s", { timeout: 40_000 });
  const [a, b] = [await figure(page, "Write amp", 0).textContent(), await figure(page, "Write amp", 1).textContent()];
  expect(a).not.toEqual(b);
  const saved = page.waitForEvent("download", (it) => it.suggestedFilename() === "figures.csv");
  await page.locator("#save").click();
  const lines = (await readFile(await (await saved).path(), "utf8")).trimEnd().split("\n");
  expect(lines.filter((line) => line.startsWith("configuration,"))).toEqual([lines[0]]);
  expect(lines.filter((line) => line.startsWith("B,")).length).toBeGreaterThan(300);
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/compare.png` });
});

test("what bounds the background is that of the moment, and at the end of the run", async ({ page }) => {
  await field(page, "duration_secs").fill("5");
  await field(page, "duration_secs").press("Tab");
  await page.locator("#speed").selectOption("16");
  await expect(page.locator("#clock")).toHaveText("5 s");
  await expect(figure(page, "Background")).toHaveText("nothing merged");
  await page.locator("#play").click();
  await page.locator("#scrub").fill("0");
  await expect(figure(page, "Background")).toHaveText("idle");
});

test("runs that are not drawn are counted", async ({ page }) => {
  await page.locator('[name="options.compaction_style"]').selectOption("fifo");
  await page.locator("#speed").selectOption("16");
  await expect(page.locator(".tree text", { hasText: /^and [1-9]\d* more runs$/ })).toBeVisible({ timeout: 40_000 });
});

test("a stall is explained in words", async ({ page }) => {
  await page.locator("#hardware").selectOption("hdd");
  await page.locator('[name="workload.traffic.mb_per_sec"]').fill("150");
  await page.locator('[name="workload.traffic.mb_per_sec"]').press("Tab");
  await page.locator("#speed").selectOption("4");
  await expect(page.locator(".why")).toContainText(/Writes are (stopped|delayed)|ended early: out of memory/, { timeout: 40_000 });
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/stall.png` });
});

test("rubbish gets a message that names the setting, and the server stays up", async ({ page, request }) => {
  await page.locator('[name="options.write_buffer_size"]').fill("0");
  await page.locator('[name="options.write_buffer_size"]').press("Tab");
  await expect(page.locator("#message")).toContainText("write_buffer_size");
  // Nothing is left of the run before, which was another one.
  await expect(page.locator(".tree svg")).toHaveCount(0);
  await expect(page.locator(".keys div")).toHaveCount(0);
  for (const body of ["", "{", "[]", '{"config":{},"vary":["seed=1..9"]}', '{"config":{"sead":1},"vary":["seed=1,2"]}']) {
    const post = (headers: Record<string, string>) => request.post("/api/sweep", { data: body, headers: { "content-type": "text/plain", ...headers } });
    const answer = await post({ "x-cairn": "test" });
    expect(answer.status()).toBe(400);
    expect((await answer.json()).error).not.toBe("");
    // Another site's page can send this much.
    expect((await post({})).status()).toBe(403);
  }
  expect((await request.get("/", { headers: { host: "evil.example" } })).status()).toBe(403);
  expect((await request.get("/api/start")).ok()).toBe(true);
});

test("a page of another site has nothing made", async ({ page, request }) => {
  const ours = new URL(page.url()).origin;
  const html = `<form method="post" enctype="text/plain" action="${ours}/api/sweep"><button>Post</button></form><a href="${ours}/api/stream?config={}">Get</a><a href="${ours}/">Page</a>`;
  // Another port is another origin.
  const other = createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end(html));
  await new Promise<void>((listening) => other.listen(0, "127.0.0.1", () => listening()));
  try {
    for (const [name, status] of [["Post", 403], ["Get", 403], ["Page", 200]] as const) {
      await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
      const answer = page.waitForResponse((it) => it.url().startsWith(ours));
      await page.getByText(name).click();
      expect((await answer).status(), name).toBe(status);
    }
  } finally {
    other.close();
  }
  // The browser logs refusals as well.
  errors.length = 0;
  expect((await request.get("/api/start")).ok()).toBe(true);
});

test("a link is followed where the page is open already", async ({ page }) => {
  const { config } = await (await page.request.get("/api/start")).json() as { config: object };
  const follow = (hash: string) => page.evaluate((hash) => { location.hash = hash; }, hash);
  const link = (...configs: object[]) => encodeURIComponent(JSON.stringify(configs));
  await follow(link({ ...config, duration_secs: 60 }, { ...config, duration_secs: 70 }));
  await expect(page.locator(".side")).toHaveCount(2);
  await expect(page.locator("#compare")).toBeChecked();
  await follow(link({ ...config, duration_secs: 80 }));
  await expect(page.locator(".side")).toHaveCount(1);
  await expect(field(page, "duration_secs")).toHaveValue("80");
  for (const wrong of ["%", "%7B", link(), "7"]) {
    await follow(wrong);
    await expect(page.locator("#message")).toContainText("cannot be read");
    await follow(link({ ...config, duration_secs: 90 }));
    await expect(field(page, "duration_secs")).toHaveValue("90");
    await follow(link({ ...config, duration_secs: 80 }));
    await expect(page.locator("#message")).toBeHidden();
  }
  // One of what is shown changes nothing.
  await page.locator(".side").evaluate((side) => side.setAttribute("data-same", ""));
  await page.locator("#share").click();
  await expect(page.locator("[data-same]")).toBeVisible();
});

test("the link holds the whole configuration", async ({ page, context }) => {
  await page.locator('[name="options.max_background_jobs"]').fill("7");
  await page.locator('[name="options.max_background_jobs"]').press("Tab");
  await page.locator("#share").click();
  const other = await context.newPage();
  await other.goto(page.url());
  await expect(other.locator('[name="options.max_background_jobs"]')).toHaveValue("7");
});

test("a sweep shows a heat map and a front", async ({ page }) => {
  await page.locator('[name="duration_secs"]').fill("300");
  await page.locator('[name="duration_secs"]').press("Tab");
  await page.locator("#sweepOpen").click();
  await page.locator("#axisX").selectOption("options.compaction_style");
  await page.locator("#axisY").selectOption("options.max_subcompactions");
  await page.locator("#sweepForm button[type=submit]").click();
  await expect(page.locator("#heat td")).toHaveCount(6, { timeout: 50_000 });
  await expect(page.locator("#pareto circle")).toHaveCount(6);
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/sweep.png` });
});

test("a codec holds for all levels of kv, in the form and in a sweep", async ({ page }) => {
  await page.locator('[name="duration_secs"]').fill("5");
  await page.locator('[name="duration_secs"]').press("Tab");
  await page.locator('[name="options.engine"]').selectOption("cairn_kv");
  const streamed = (url: string) => url.includes("api/stream") ? JSON.parse(new URL(url).searchParams.get("config")!).options : {};
  const run = page.waitForRequest((it) => streamed(it.url()).compression === "zstd");
  await page.locator('[name="options.compression"]').selectOption("zstd");
  const options = streamed((await run).url());
  expect([options.compression_per_level, options.bottommost_compression]).toEqual([[], null]);
  await page.locator('[name="options.engine"]').selectOption("rocksdb");
  await page.locator('[name="options.engine"]').selectOption("cairn_kv");
  await page.locator("#sweepOpen").click();
  await page.locator("#axisX").selectOption("options.compression");
  await page.locator("#axisY").selectOption("options.compression");
  const sweep = page.waitForRequest((it) => it.url().includes("api/sweep"));
  await page.locator("#sweepForm button[type=submit]").click();
  expect(JSON.parse((await sweep).postData()!).config.options.compression_per_level).toEqual([]);
});

test("runs of a sweep that prove nothing are marked, and are no front", async ({ page }) => {
  await page.locator('[name="duration_secs"]').fill("1");
  await page.locator('[name="duration_secs"]').press("Tab");
  await page.locator("#sweepOpen").click();
  await page.locator("#axisX").selectOption("options.max_subcompactions");
  await page.locator("#axisY").selectOption("options.max_subcompactions");
  await page.locator("#sweepForm button[type=submit]").click();
  await expect(page.locator("#heat td")).toHaveText(["never flushed", "never flushed", "never flushed"], { timeout: 50_000 });
  await expect(page.locator("#pareto circle")).toHaveCount(0);
});

test("metrics have the text form", async ({ page, request }) => {
  await page.locator("#speed").selectOption("16");
  await expect.poll(async () => (await request.get("/metrics")).text(), { timeout: 30_000 }).toContain("cairn_sim_write_amplification ");
});

test("narrow and dark", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 800 });
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/narrow.png` });
});
