// Enhances a page that is readable without it: theme, tooltips, choices, sorting, filtering, downloads.
"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));
  root.classList.add("js");

  // Theme: the system's theme applies until the reader switches it. #dark and #light set it in links and screenshots.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const asked = location.hash.slice(1);
  if (asked === "dark" || asked === "light") root.dataset.theme = asked;
  document.getElementById("theme").addEventListener("click", () => {
    const now = root.dataset.theme || (system.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });

  // Browsers show the title of an SVG as a tooltip, which would cover ours. For screen readers it becomes a label.
  const adopt = (from) => {
    for (const svg of all("svg[role=img]", from)) {
      const title = svg.querySelector(":scope > title");
      if (!title) continue;
      svg.setAttribute("aria-label", title.textContent);
      svg.setAttribute("aria-describedby", svg.querySelector(":scope > desc").id);
      svg.removeAttribute("aria-labelledby");
      title.remove();
    }
    for (const cell of all("td[data-tip]", from)) cell.tabIndex = 0;
  };

  // Tooltips. Charts of points show the tooltip of the nearest point, so that a finger need not hit it exactly.
  const tip = document.getElementById("tip");
  const REACH = 26;
  const nearest = (chart, x, y) => {
    let found = null;
    let best = REACH;
    for (const mark of all("[data-tip]", chart)) {
      const box = mark.getBoundingClientRect();
      const far = Math.hypot(box.x + box.width / 2 - x, box.y + box.height / 2 - y);
      if (far < best) [best, found] = [far, mark];
    }
    return found;
  };
  const show = (mark, x, y) => {
    const lines = mark.dataset.tip.split("\n");
    const head = document.createElement("b");
    head.textContent = lines.shift();
    tip.replaceChildren(head, lines.join("\n"));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, x + 14), innerWidth - width - 8);
    const top = y + 18 + height > innerHeight ? y - height - 12 : y + 18;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  };
  const hide = () => { tip.hidden = true; };
  const point = (event) => {
    if (!(event.target instanceof Element)) return;
    const chart = event.target.closest(".lines svg[role=img], .scatter svg[role=img]");
    const mark = event.target.closest("[data-tip]") || (chart && nearest(chart, event.clientX, event.clientY));
    if (mark) show(mark, event.clientX, event.clientY); else hide();
  };
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.addEventListener("focusin", (event) => {
    if (!event.target.matches("td[data-tip]")) return;
    const box = event.target.getBoundingClientRect();
    show(event.target, box.left, box.bottom - 18);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // Choices: every case is already drawn and stored as text. If the chosen combination was not measured, the nearest
  // one with the value just chosen is shown, and the other selectors are set to match it.
  const choices = (figure) => {
    const form = figure.querySelector("form.pick");
    if (!form) return;
    const selects = all("select", form);
    const view = figure.querySelector(".view");
    const said = form.querySelector(".said");
    const variants = all("script[data-key]", figure).map((kept) => ({ key: kept.dataset.key.split("."), kept }));
    selects.forEach((changed, place) => changed.addEventListener("change", () => {
      const wanted = selects.map((select) => select.value);
      const matches = (variant) => variant.key.filter((value, index) => value === wanted[index]).length;
      const fitting = variants.filter((variant) => variant.key[place] === wanted[place]);
      const chosen = fitting.reduce((best, variant) => (matches(variant) > matches(best) ? variant : best));
      const moved = selects.filter((select, index) => select.value !== chosen.key[index]);
      selects.forEach((select, index) => { select.value = chosen.key[index]; });
      said.textContent = moved.length
        ? "That combination was not measured; this is the nearest one that was."
        : "";
      const open = all("details[open] > summary", view).map((summary) => summary.textContent);
      view.innerHTML = chosen.kept.textContent;
      adopt(view);
      for (const summary of all("details > summary", view)) {
        summary.parentElement.open = open.includes(summary.textContent);
      }
    }));
  };

  // The big tables can be sorted by any column, and filtered by words and by the first columns.
  const table = (table) => {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const heads = Array.from(table.tHead.rows[0].cells);
    const valueOf = (row, column) => {
      const cell = row.cells[column];
      if (cell.dataset.v === undefined) return cell.textContent;
      return cell.dataset.v === "" ? null : Number(cell.dataset.v);
    };
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        const keyed = rows.map((row) => [valueOf(row, column), row]);
        // Rows without a value stay last in both directions.
        keyed.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
        body.append(...keyed.map(([, row]) => row));
      });
    });

    const form = table.closest("section").querySelector("form.filters");
    const words = form.querySelector("input");
    const count = form.querySelector(".said");
    const pickers = heads.slice(0, 3).map((head, column) => {
      const label = document.createElement("label");
      const select = document.createElement("select");
      const values = [...new Set(rows.map((row) => row.cells[column].textContent))].sort();
      select.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
      label.append(head.textContent, select);
      form.insertBefore(label, count);
      return { column, select };
    });
    let texts;
    const apply = () => {
      texts ||= new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
      const needles = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = texts.get(row);
        const fits = needles.every((needle) => text.includes(needle))
          && pickers.every(({ column, select }) => !select.value || row.cells[column].textContent === select.value);
        row.hidden = !fits;
        shown += fits;
      }
      count.textContent = shown === rows.length ? `${shown} rows` : `${shown} of ${rows.length} rows`;
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
  };

  const enliven = (from) => {
    adopt(from);
    for (const figure of all(".figure", from)) choices(figure);
    for (const rows of all("table.rows", from)) table(rows);
  };
  enliven(document);

  // A page about several engines shows one article at a time; without this script they follow each other. A browser
  // that runs scripts keeps the content of <noscript> as text, which costs nothing until the article is opened.
  const articles = all("main > article");
  const unfold = (article) => {
    const kept = article.querySelector(":scope > noscript");
    if (!kept) return;
    article.innerHTML = kept.textContent;
    enliven(article);
  };
  // The ids in an article that is still text begin with the article's id.
  const articleWith = (id) => {
    const found = document.getElementById(id);
    if (found) return found.closest("main > article");
    return articles.find((article) => article.id && id.startsWith(`${article.id}-`));
  };
  const open = () => {
    const id = location.hash.slice(1);
    const found = articleWith(id);
    const shown = found || articles[0];
    unfold(shown);
    for (const article of articles) article.hidden = article !== shown;
    for (const link of all("nav .links a")) {
      if (articleWith(link.hash.slice(1)) === shown) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
    const asked = document.getElementById(id);
    if (found && asked && asked !== found) asked.scrollIntoView(); else scrollTo(0, 0);
  };
  if (articles.length) {
    addEventListener("hashchange", open);
    addEventListener("beforeprint", () => articles.forEach(unfold));
    open();
  }

  // Downloads of the run that is embedded in the page.
  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  const carried = () => {
    const run = JSON.parse(document.getElementById("run").textContent);
    const stem = `cairn-${run.suite}-${run.started}`.replace(/[^A-Za-z0-9.-]+/g, "-");
    // A page about several suites has a list of their runs.
    return { run, stem, runs: run.runs || [run] };
  };
  const onClick = (id, action) => document.getElementById(id)?.addEventListener("click", action);
  onClick("save-json", () => {
    const { run, stem } = carried();
    save(`${stem}.json`, "application/json", `${JSON.stringify(run, null, 1)}\n`);
  });
  onClick("save-csv", () => {
    const { runs, stem } = carried();
    const flat = runs.flatMap(({ suite, measurements }) => measurements.map(
      ({ case: point, percentiles, samples, ...rest }) => (
        { suite, ...rest, ...point, samples: samples.join(" "), ...percentiles })));
    const columns = [...new Set(flat.flatMap(Object.keys))];
    const quote = (value) => {
      const text = String(value ?? "");
      // A spreadsheet would run text with a leading formula character. Negative numbers stay numbers.
      const isNumber = /^-\d+(\.\d+)?(e[+-]?\d+)?$/.test(text);
      const safe = /^[-=+@\t\r]/.test(text) && !isNumber ? `'${text}` : text;
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll("\"", "\"\"")}"` : safe;
    };
    const lines = [columns, ...flat.map((row) => columns.map((column) => row[column]))];
    save(`${stem}.csv`, "text/csv", lines.map((line) => line.map(quote).join(",")).join("\r\n"));
  });
})();
