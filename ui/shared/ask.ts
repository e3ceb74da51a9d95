/** Requests to the server. */

/** A request that the server refused, with its reason. */
export class Refused extends Error {
  constructor(what: string, readonly status: number, readonly more: { kind?: string; file?: string; offset?: number } = {}) { super(what); }
}

/** The message if there is no answer. */
export const SILENT = "the server does not answer";

/** Returns the answer as JSON. Throws {@link Refused}. */
export async function ask<T>(path: string, body?: unknown): Promise<T> {
  return JSON.parse(await askText(path, body)) as T;
}

/** Returns the answer as text. Throws {@link Refused}. */
export async function askText(path: string, body?: unknown): Promise<string> {
  const silent = () => { throw new Refused(SILENT, 0); };
  const answer = await send(path, body).catch(silent), text = await answer.text().catch(silent);
  if (answer.ok) return text;
  let found: unknown;
  try { found = JSON.parse(text); } catch { found = { error: text.trim() }; }
  const { error, ...more } = found as { error?: string; kind?: string; file?: string; offset?: number };
  throw new Refused(error || answer.statusText, answer.status, more);
}

/** Sends a request. One with side effects has a header that pages of other sites cannot send. */
function send(path: string, body?: unknown): Promise<Response> {
  if (body === undefined) return fetch(path);
  return fetch(path, { method: "POST", headers: { "x-cairn": "page", "content-type": "text/plain" }, body: typeof body === "string" ? body : JSON.stringify(body) });
}
