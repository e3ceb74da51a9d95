import { defineConfig } from "@playwright/test";

/** The command under test: CAIRN, else what cargo builds. The browser: CHROMIUM, else Playwright's own. */
export default defineConfig({
  testDir: "tests",
  timeout: 60_000,
  use: {
    baseURL: "http://127.0.0.1:8199",
    viewport: { width: 1440, height: 900 },
    launchOptions: process.env.CHROMIUM ? { executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] } : {},
  },
  webServer: { command: `${process.env.CAIRN ?? "cargo run -p cairn --"} sim ui --port 8199`, url: "http://127.0.0.1:8199/", reuseExistingServer: false },
});
