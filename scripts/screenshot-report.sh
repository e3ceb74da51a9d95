#!/usr/bin/env bash
# Looks at a report in a real browser: pictures for a person, checks for a machine.
#
#   scripts/screenshot-report.sh REPORT.html OUTDIR
#
# Writes OUTDIR/{wide,phone}-{light,dark}.png of the whole page, and says how long the page took to open: until it was read, its scripts had run and
# everything in sight had its place; of a page about several engines also at each of its articles.
# Fails when, at 1280, 390 or 360 px,
#   - the page logs anything to the console at level warning or error, or a script dies;
#   - the page scrolls sideways;
#   - a section is wider than its frame, a chart's text leaves its section, or two texts of a chart overlap, in any choice of any selector;
#   - choosing, sorting, filtering, tooltips, saving or switching the theme do not do what they should.
set -euo pipefail

report=${1:?usage: screenshot-report.sh REPORT.html OUTDIR}
out=${2:?usage: screenshot-report.sh REPORT.html OUTDIR}
for browser in chromium chromium-browser google-chrome-stable google-chrome chrome; do
  command -v "$browser" >/dev/null && break || browser=
done
[ -n "$browser" ] || { echo "no Chromium found: apt-get install chromium" >&2; exit 2; }
[ -s "$report" ] || { echo "$report: no such report" >&2; exit 2; }
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A report never fetches anything; the resolver rule makes sure that the browser does not either.
chrome() {
  "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --disable-extensions --hide-scrollbars --user-data-dir="$work/profile" \
    --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr --log-level=0 "$@" 2>"$work/log"
}

# The page's own console, without the browser's chatter about buses and graphics.
console_is_clean() {
  if grep -E 'CONSOLE[:(]' "$work/log" | grep -v '"probe: '; then
    echo "FAIL $1: the page logged the above" >&2
    return 1
  fi
}

cat >"$work/probe.js" <<'PROBE'
(() => {
  const faults = [];
  const note = (text) => { if (faults.length < 8) faults.push(text); };
  addEventListener("error", (event) => note(`script: ${event.message}`));
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const name = (node) => JSON.stringify(node.textContent.trim().slice(0, 40));
  const visible = (node) => { const box = node.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
  const boxOf = (node) => node.getBoundingClientRect();

  const sideways = (where) => {
    const page = document.scrollingElement;
    if (page.scrollWidth > innerWidth + 1) note(`${where}: page is ${page.scrollWidth} px wide in a window of ${innerWidth}`);
    // Sections clip what leaves them, so the page does not grow with it.
    for (const section of all("section").filter(visible)) {
      if (section.scrollWidth > section.clientWidth + 1) note(`${where}: section ${section.id} is ${section.scrollWidth - section.clientWidth} px too wide`);
    }
  };
  const charts = (where, from = document) => {
    for (const svg of all("svg[role=img]", from)) {
      const section = boxOf(svg.closest("section"));
      const texts = all("text", svg).filter(visible).map((node) => ({ node, box: boxOf(node) }));
      for (const { node, box } of texts) {
        if (box.left < section.left || box.right > section.right + 0.5) note(`${where}: text leaves its section: ${name(node)}`);
        if (box.bottom > boxOf(svg.closest(".chart")).bottom + 2) note(`${where}: text below its chart: ${name(node)}`);
      }
      for (let i = 0; i < texts.length; i++) {
        for (let j = i + 1; j < texts.length; j++) {
          const [a, b] = [texts[i].box, texts[j].box];
          const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (wide > 1 && high > 3) note(`${where}: texts overlap: ${name(texts[i].node)} and ${name(texts[j].node)}`);
        }
      }
    }
  };

  try {
    let choices = 0;
    // A page about several engines shows one article at a time, and those behind links hold text until they are opened.
    const articles = all("main > article");
    const places = articles.length ? all("nav .links a").map((link) => link.hash) : [""];
    for (const place of places) {
      const start = place || "start";
      if (place) {
        history.replaceState(null, "", place);
        dispatchEvent(new HashChangeEvent("hashchange"));
        const shown = articles.filter(visible);
        if (shown.length !== 1 || !document.getElementById(place.slice(1))?.closest("main > article").contains(shown[0])) note(`${place}: does not open its article`);
      }
      const from = articles.find(visible) || document.body;
      if (from.textContent.trim().length < 200) note(`${start}: is all but empty`);
      sideways(start);
      charts(start, from);
      for (const figure of all(".figure", from)) {
        for (const select of all(".pick select", figure)) {
          for (const option of [...select.options]) {
            select.value = option.value;
            select.dispatchEvent(new Event("change", { bubbles: true }));
            if (select.value !== option.value) note(`${figure.id}: ${option.text} cannot be chosen`);
            const where = `${figure.id}, ${option.text}`;
            charts(where, figure);
            sideways(where);
            choices += 1;
          }
        }
      }
      for (const details of all("details", from)) details.open = true;
      sideways(`${start} unfolded`);
      for (const table of all("table.rows", from)) {
        const rows = [...table.tBodies[0].rows];
        if (rows.length < 2) continue;
        const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === "Median");
        table.tHead.rows[0].cells[column].querySelector("button").click();
        const values = [...table.tBodies[0].rows].map((row) => row.cells[column].dataset.v).filter((v) => v !== "").map(Number);
        if (values.some((value, index) => index > 0 && value < values[index - 1])) note(`${start}: sorting by median does not sort`);
        const filter = table.closest("section").querySelector("form.filters input");
        filter.value = "no row has this text";
        filter.dispatchEvent(new Event("input", { bubbles: true }));
        if (rows.some((row) => !row.hidden)) note(`${start}: the filter hides nothing`);
        filter.value = "";
        filter.dispatchEvent(new Event("input", { bubbles: true }));
        if (rows.some((row) => row.hidden)) note(`${start}: an empty filter hides rows`);
      }
      const mark = all("[data-tip]", from).find(visible);
      if (mark) {
        mark.scrollIntoView({ behavior: "instant", block: "center" });
        const box = boxOf(mark);
        mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: box.left + 1, clientY: box.top + 1 }));
        const tip = document.getElementById("tip");
        if (tip.hidden || !tip.textContent.includes(mark.dataset.tip.split("\n")[0])) note(`${start}: no tooltip on a mark`);
        if (boxOf(tip).right > innerWidth) note(`${start}: the tooltip leaves the window`);
      }
    }
    const saved = [];
    URL.createObjectURL = (blob) => { saved.push(blob); return "data:,"; };
    HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
    for (const kind of ["json", "csv"]) {
      const save = document.getElementById(`save-${kind}`);
      // The report of a whole run may have its figures in files beside it.
      if (!save && articles.length) continue;
      save.click();
      const [blob, file] = saved.splice(0);
      if (!blob || blob.size < 2 || !file.endsWith(`.${kind}`)) note(`saving ${kind} saves nothing`);
    }
    const ground = () => getComputedStyle(document.body).backgroundColor;
    const before = ground();
    document.getElementById("theme").click();
    if (ground() === before) note("the theme switch does nothing");
    document.body.setAttribute("data-answer", JSON.stringify({ width: innerWidth, places: places.length, choices, faults }));
  } catch (error) {
    document.body.setAttribute("data-answer", JSON.stringify({ faults: [`probe died: ${error}`] }));
  }
})();
PROBE
{ cat "$report"; printf '<script>'; cat "$work/probe.js"; printf '</script>\n'; } >"$work/probed.html"

# Windows have a least width of some 500 px, frames have none: narrow pages are looked at in a frame.
in_frame() {
  cat >"$work/frame.html" <<FRAME
<!doctype html><title>frame</title><style>body{margin:0}iframe{border:0;width:$1px;height:900px}</style>
<iframe src="$2"></iframe>
<script>const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument;
  const own = page.body.dataset.answer;
  // Asking for a height makes the browser lay out all of it; the clock is that of the frame, and begins with its navigation.
  const opened = own === undefined && page.documentElement.scrollHeight > 0 && Math.round(frame.contentWindow.performance.now()) + " ms";
  document.body.setAttribute("data-answer", own || opened || "");
};</script>
FRAME
  chrome --window-size="1400,1000" --allow-file-access-from-files --dump-dom "file://$work/frame.html" >"$work/dom"
  grep -o 'data-answer="[^"]*"' "$work/dom" | head -n 1 | sed 's/^data-answer="//; s/"$//; s/&quot;/"/g; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' || true
}

failed=0
cp "$report" "$work/opened.html"
opens() { for _ in 1 2 3 4 5; do in_frame 1280 "opened.html$1"; done | sort -n | sed -n 3p; }
echo "page opens in $(opens '') (median of 5), $(du -k "$report" | cut -f1) KB"
# Links to articles stand in the bar of a page that has several.
if grep -q '<article id="overview">' "$report"; then
  bar=$(grep -o '<nav aria-label="Sections"><div class="links">.*</div><button' "$report" | head -n 1)
  mapfile -t places < <(grep -o 'href="#[a-z-]*"' <<<"$bar" | sed 's/^href="//; s/"$//')
  for place in "${places[@]}"; do echo "     at $place in $(opens "$place")"; done
fi
for width in 1280 390 360; do
  found=$(in_frame "$width" probed.html)
  case $found in
    *"\"width\":$width"*'"faults":[]'*) echo "ok   $width px: $found" ;;
    *) echo "FAIL $width px: ${found:-no answer from the page}" >&2; failed=1 ;;
  esac
  console_is_clean "$width px" || failed=1
done

# Pictures of the whole page: ask how tall it is with all of it laid out, then open a window of that height.
for view in wide:1280 phone:390; do
  width=${view#*:}
  { cat "$report"; printf '<style>section{content-visibility:visible!important}</style><script>document.body.dataset.answer=document.documentElement.scrollHeight+60</script>\n'; } >"$work/tall.html"
  tall=$(in_frame "$width" tall.html)
  for theme in light dark; do
    cp "$report" "$work/page.html"
    chrome --window-size="$width,${tall:-8000}" --screenshot="$work/shot.png" "file://$work/page.html#$theme" >/dev/null
    console_is_clean "${view%:*}-$theme" || failed=1
    mv "$work/shot.png" "$out/${view%:*}-$theme.png"
    echo "saw  $out/${view%:*}-$theme.png ($width x ${tall:-8000})"
  done
done
exit "$failed"
