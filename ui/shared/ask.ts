/** Asking the server. */

/** What a server says of a request that it does not answer. */
export class Refused extends Error {
  constructor(what: string, readonly status: number, readonly more: { kind?: string; file?: string; offset?: number } = {}) { super(what); }
}

/** An answer as JSON, or why there is none. */
export async function ask<T>(path: string, body?: unknown): Promise<T> {
  const answer = await send(path, body).catch(() => { throw new Refused("the server does not answer", 0); });
  const text = await answer.text();
  let found: unknown;
  try { found = JSON.parse(text); } catch { found = { error: text.trim() }; }
  if (!answer.ok) {
    const { error, ...more } = found as { error?: string; kind?: string; file?: string; offset?: number };
    throw new Refused(error || answer.statusText, answer.status, more);
  }
  return found as T;
}

/** A request as it is. What changes something carries a header that pages of other sites cannot send. */
export function send(path: string, body?: unknown): Promise<Response> {
  if (body === undefined) return fetch(path);
  return fetch(path, { method: "POST", headers: { "x-cairn": "page", "content-type": "text/plain" }, body: typeof body === "string" ? body : JSON.stringify(body) });
}
