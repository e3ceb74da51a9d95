import { defineConfig } from "@playwright/test";

/** The command under test: CAIRN, else what cargo builds. The browser: CHROMIUM, else Playwright's own. */
export default defineConfig({
  testDir: "tests",
  timeout: 60_000,
  workers: 1,
  use: {
    viewport: { width: 1440, height: 900 },
    launchOptions: process.env.CHROMIUM ? { executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] } : {},
  },
});
