/** Asking the server. */

/** What a server says of a request that it does not answer. */
export class Refused extends Error {
  constructor(what: string, readonly status: number, readonly more: { kind?: string; file?: string; offset?: number } = {}) { super(what); }
}

/** That nobody is there. */
export const SILENT = "the server does not answer";

/** An answer as JSON, or why there is none. */
export async function ask<T>(path: string, body?: unknown): Promise<T> {
  return JSON.parse(await askText(path, body)) as T;
}

/** An answer as it is, or why there is none. */
export async function askText(path: string, body?: unknown): Promise<string> {
  const silent = () => { throw new Refused(SILENT, 0); };
  const answer = await send(path, body).catch(silent), text = await answer.text().catch(silent);
  if (answer.ok) return text;
  let found: unknown;
  try { found = JSON.parse(text); } catch { found = { error: text.trim() }; }
  const { error, ...more } = found as { error?: string; kind?: string; file?: string; offset?: number };
  throw new Refused(error || answer.statusText, answer.status, more);
}

/** A request. What changes something carries a header that pages of other sites cannot send. */
function send(path: string, body?: unknown): Promise<Response> {
  if (body === undefined) return fetch(path);
  return fetch(path, { method: "POST", headers: { "x-cairn": "page", "content-type": "text/plain" }, body: typeof body === "string" ? body : JSON.stringify(body) });
}
