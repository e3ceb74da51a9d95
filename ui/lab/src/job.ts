/** A run in progress: its state and its output. */
import { ask } from "../../shared/ask";
import { h } from "../../shared/dom";
import type { View } from "./main";
import { alert, button, when } from "./parts";
import type { Job } from "./types";

/** The maximum number of lines on the page. */
const LINES = 5000;

export const job: View = (box, _start, [id = ""]) => {
  const title = h("h2", {}, "…"), state = h("p", { id: "state", role: "status" }), bar = h("progress", { max: 1, value: 0, "aria-label": "Completed groups" });
  const log = h("pre", { class: "log", role: "log", "aria-label": "Output", tabindex: 0 });
  const message = h("div", {});
  const stop = button("Stop", async () => {
    await ask<Job>(`api/jobs/stop?id=${encodeURIComponent(id)}`, {}).catch((error: unknown) => message.replaceChildren(alert(error)));
  });
  stop.hidden = true;
  box.append(h("section", { class: "card" }, title, state, bar, h("div", { class: "row" }, stop, h("a", { href: "#/runs" }, "Runs and reports")), message, log));
  const show = ({ job, lines }: { job: Job; lines: string[] }) => {
    title.textContent = job.title;
    const at = job.progress ? `${job.progress.at} of ${job.progress.of}: ${job.progress.name}` : "";
    state.textContent = job.running ? `Since ${when(job.started)}. ${at}` : `Ended: ${job.how ?? ""}.`;
    state.className = job.running ? "" : job.ok ? "good" : "alert";
    bar.value = !job.running && job.ok ? 1 : job.progress ? (job.progress.at - 1) / job.progress.of : 0;
    stop.hidden = !job.running || !job.ours;
    const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 20;
    for (const line of lines) log.append(`${line}\n`);
    while (log.childNodes.length > LINES) log.firstChild!.remove();
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  };
  const source = new EventSource(`api/jobs/events?id=${encodeURIComponent(id)}`);
  const take = (event: Event) => show(JSON.parse((event as MessageEvent<string>).data) as { job: Job; lines: string[] });
  // A new connection gets all lines again.
  source.onopen = () => { log.replaceChildren(); message.replaceChildren(); };
  source.addEventListener("lines", take);
  source.addEventListener("ended", (event) => { take(event); source.close(); });
  source.onerror = () => {
    if (source.readyState !== EventSource.CLOSED) {
      message.replaceChildren(h("p", { class: "note", role: "status" }, "The connection was lost and is being retried; the page may be out of date."));
      return;
    }
    // The stream does not show why it was refused; asking for the list does.
    void ask<Job[]>("api/jobs").then((jobs) => { throw new Error(jobs.some((it) => String(it.id) === id) ? "the connection was lost" : `there is no run ${id}`); })
      .catch((error: unknown) => message.replaceChildren(alert(error)));
  };
  return () => source.close();
};
