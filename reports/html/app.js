"use strict";
// The page of one report. Everything that comes from the run is untrusted and reaches the document as text nodes only.
(() => {
  const VERDICTS = ["fail", "vacuous", "pass", "undefined", "skipped"];
  const PLURAL = { fail: "fail", vacuous: "vacuous", pass: "pass", undefined: "undefined", skipped: "skipped" };
  const LONG_TEXT = 700;
  const CARDS_AT_FIRST = 12;

  /** Control characters and what turns the direction of writing become visible; in a line that is made to be pasted into
   *  a shell, line ends too. */
  function visible(key, value) {
    if (typeof value !== "string") return value;
    const unseen = key === "reproduce" ? /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g
      : /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
    return value.replace(unseen, (c) => {
      const code = c.charCodeAt(0);
      return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "\u2421" : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
    });
  }

  const report = JSON.parse(document.getElementById("report").textContent, visible);

  // ---- elements and text ----------------------------------------------------------------------------------------

  /** An element; strings and numbers among the children become text nodes, null and false nothing. */
  function h(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
      else element.setAttribute(key, value === true ? "" : String(value));
    }
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      element.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return element;
  }

  /** Text that may be huge: its beginning, and a button for the rest. */
  function clipped(text, limit = LONG_TEXT) {
    if (text.length <= limit) return text;
    const box = h("span", null, text.slice(0, limit) + "… ");
    const more = h("button", { type: "button", class: "linkish", on: { click: () => box.replaceChildren(text) } },
      `show all ${text.length.toLocaleString("en")} characters`);
    box.append(more);
    return box;
  }

  function number(value) {
    if (value === "nan") return NaN;
    if (value === "inf") return Infinity;
    if (value === "-inf") return -Infinity;
    return value === null || value === undefined ? NaN : value;
  }

  /** Three significant digits, for people. */
  function short(value) {
    const v = number(value);
    if (Number.isNaN(v)) return "NaN";
    if (!Number.isFinite(v)) return v > 0 ? "∞" : "−∞";
    if (v === 0) return "0";
    const size = Math.abs(v);
    if (size >= 1e-3 && size < 1e5) return String(Number(v.toPrecision(3))).replace("-", "−");
    const [mantissa, exponent] = v.toExponential(2).split("e");
    return (String(Number(mantissa)) + "e" + exponent.replace("+", "")).replace(/-/g, "−");
  }

  const measured = (value) => (value === null || value === undefined ? "–" : short(value));
  const integer = (value) => Number(value).toLocaleString("en");
  const place = (name, index) => (index && index.length ? `${name}[${index.join(", ")}]` : name);

  function duration(seconds) {
    if (seconds < 1e-3) return `${(seconds * 1e6).toFixed(0)} µs`;
    if (seconds < 1) return `${(seconds * 1e3).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
    if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
    return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  }

  const badge = (verdict) => h("span", { class: `badge v-${verdict}` }, verdict);
  const isBad = (verdict) => verdict === "fail" || verdict === "vacuous";
  const isExcused = (run) => !!run.known && isBad(run.verdict);   // a failure that is known

  /** Rows of name and value; empty values are left out. */
  function pairs(entries, attributes) {
    const list = h("dl", { class: "pairs", ...attributes });
    for (const [name, value] of entries) {
      if (value === null || value === undefined || value === "") continue;
      list.append(h("dt", null, name), h("dd", null, value));
    }
    return list;
  }

  function command(line) {
    const said = h("span", { class: "sr", role: "status" });
    const button = h("button", { type: "button", class: "plain", "aria-label": "Copy the line that reproduces this" }, "Copy");
    button.addEventListener("click", async () => {
      const done = await copy(line);
      button.textContent = done ? "Copied" : "Select it";
      said.textContent = done ? "copied" : "copying is not possible here";
      setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 1600);
    });
    return h("div", { class: "command" }, h("code", null, clipped(line)), button, said);
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = h("textarea", { class: "sr", "aria-hidden": "true", tabindex: "-1" });
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  function grid(head, rows, caption) {
    return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
      h("table", { class: "grid" },
        h("caption", { class: "sr" }, caption),
        h("thead", null, h("tr", null, head.map((cell) => h("th", { scope: "col" }, cell)))),
        h("tbody", null, rows.map((row) => h("tr", null, row.map((cell) => h("td", null, typeof cell === "string" ? clipped(cell, 300) : cell)))))));
  }

  // ---- digits ---------------------------------------------------------------------------------------------------

  /** "-1.25e-3" as sign, digits and the power of ten of the first digit; null for inf, nan and words. */
  function decimal(text) {
    const m = /^\s*([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?\s*$/.exec(text);
    if (!m || !(m[2] || m[3])) return null;
    const all = m[2] + (m[3] || "");
    const first = all.search(/[1-9]/);
    const negative = m[1] === "-";
    if (first < 0) return { negative, digits: "", power: null };
    return { negative, digits: all.slice(first), power: m[2].length - 1 - first + Number(m[4] || 0) };
  }

  /** The digits from the power `top` down to `bottom`, zeros where there are none. */
  function window_(d, top, bottom) {
    let out = "";
    for (let p = top; p >= bottom; p--) {
      const at = d.power === null ? -1 : d.power - p;
      out += at >= 0 && at < d.digits.length ? d.digits[at] : "0";
    }
    return out;
  }

  /** The power of ten of the first wrong digit of `a` against the truth `b`; null where none of the given is wrong. A run
   *  of carries (0.9999 for 1.0000) does not count as wrong at its beginning: the size of the difference decides there. */
  function firstWrong(a, b, top, bottom) {
    if (a.negative !== b.negative && a.power !== null && b.power !== null) return Infinity; // the sign
    const x = window_(a, top, bottom), y = window_(b, top, bottom);
    let at = 0;
    while (at < x.length && x[at] === y[at]) at++;
    if (at === x.length) return null;
    const gap = BigInt(x) - BigInt(y);
    const size = (gap < 0n ? -gap : gap).toString().length;      // the difference's first digit stands at this place from the end
    const bySize = bottom + size - 1;
    const literal = top - at;
    return bySize < literal - 1 ? bySize : literal;
  }

  /** Kernel, double and MPFR below each other, point under point, the first wrong digit marked. */
  function digits(entry) {
    const rows = [["kernel", entry.kernel], ["double", entry.reference], ["MPFR", entry.exact]].filter(([, text]) => text);
    const parsed = rows.map(([, text]) => decimal(text));
    const truthAt = rows.length - 1;
    const truth = parsed[truthAt];
    const powers = parsed.filter((d) => d && d.power !== null).map((d) => d.power);
    const table = h("table", null, h("caption", { class: "sr" }, "Digits, the first wrong one marked"));
    const body = h("tbody");
    table.append(body);
    if (!truth || !powers.length || Math.max(...powers) - Math.min(...powers) > 24) {
      rows.forEach(([name, text]) => body.append(h("tr", null, h("th", { scope: "row" }, name), h("td", null, text))));
      return h("div", { class: "digits" }, table);
    }
    const lead = Math.max(...powers);
    const plain = lead >= -4 && lead <= 7;                        // 0.0012, 123456: as they are; else d.ddd × 10^n
    const unit = plain ? 0 : lead;
    const top = Math.max(lead, unit);
    const ends = parsed.map((d) => (d && d.power !== null ? d.power - d.digits.length + 1 : top));
    const truthEnd = ends[truthAt];
    rows.forEach(([name, text], k) => {
      const d = parsed[k];
      const cell = h("td");
      if (!d) cell.append(text);
      else {
        // Up to seventeen digits a double is known; zeros beyond what is printed are true.
        const end = k === truthAt ? truthEnd : Math.max(truthEnd, Math.min(ends[k], top - 16));
        const wrong = k === truthAt ? null : firstWrong(d, truth, top, end);
        const marked = k === 0;                                   // the double only shows how far it reaches
        const mark = (text) => h("mark", { class: number(entry.score) <= 1 ? "allowed" : null }, text);
        const sign = d.negative ? "−" : wrong === Infinity && marked ? "+" : " ";
        let after = wrong === Infinity;
        cell.append(after && marked ? mark(sign) : sign);
        const shown = window_(d, top, end);
        let run = "";
        const flush = () => { if (run) cell.append(after ? h("span", { class: "after" }, run) : run); run = ""; };
        for (let i = 0; i < shown.length; i++) {
          const p = top - i;
          if (p === wrong) {
            flush();
            after = true;
            if (marked) cell.append(mark(shown[i]));
            else run += shown[i];
          }
          else run += shown[i];
          if (p === unit && i + 1 < shown.length) run += ".";
        }
        flush();
        if (!plain) cell.append(h("span", { class: "unit" }, ` × 10^${unit}`.replace("-", "−")));
      }
      body.append(h("tr", null, h("th", { scope: "row" }, name), cell));
    });
    return h("div", { class: "digits", tabindex: "0", role: "group", "aria-label": "digits of kernel, double and MPFR" }, table);
  }

  function worstElements(gradient) {
    if (!gradient.worst.length) return null;
    const sound = gradient.verdict === "pass";
    const box = sound ? h("details", { class: "values" }, h("summary", null, "Worst elements, all within their allowance"))
      : h("div", null, h("p", { class: "group-title" }, "Worst elements"));
    gradient.worst.forEach((entry, k) => {
      const head = h("p", { class: "quiet" }, h("span", { class: "mono" }, place(gradient.name, entry.index)),
        ` – score ${short(entry.score)}, allowed ${short(entry.allowed)}`);
      if (k < 3) box.append(head, digits(entry));
      else {
        const fold = h("details", null, h("summary", null, `${place(gradient.name, entry.index)}, score ${short(entry.score)}`));
        fold.addEventListener("toggle", () => { if (fold.open && fold.children.length === 1) fold.append(digits(entry)); });
        box.append(fold);
      }
    });
    return box;
  }

  // ---- colours and charts ----------------------------------------------------------------------------------------

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = () => getComputedStyle(document.documentElement).colorScheme.includes("dark");

  /** Draws when seen (a thousand charts would take long), again when the colours change, and before printing. */
  const figures = new Set();
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "300px" });
  function draw(element) {
    seen.unobserve(element);
    if (!element.isConnected) return;
    element.gckDrawn = true;
    element.gckDraw();
  }
  function lazily(element, paint) {
    element.gckDraw = paint;
    figures.add(element);
    seen.observe(element);
    return element;
  }
  function redrawAll() {
    for (const element of figures) {
      if (!element.isConnected) { if (element.gckDrawn) figures.delete(element); }
      else if (element.gckDrawn) element.gckDraw();
    }
  }
  window.addEventListener("beforeprint", () => { for (const element of figures) if (element.isConnected && !element.gckDrawn) draw(element); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);

  const RELATIVE = /\bscores?\b|allowance/i;                     // an exhibit of scores: 1 is the allowance
  const ofScores = (exhibit) => RELATIVE.test(exhibit.title) || RELATIVE.test(exhibit.x_label || "");

  /** A vertical line at the allowance, in a histogram whose bars stand at 0, 1, 2 … */
  const allowanceLine = {
    id: "allowance",
    afterDatasetsDraw(chart, _args, options) {
      if (!options || options.at === undefined || options.at === null) return;
      const { ctx, chartArea: area, scales: { x } } = chart;
      const wide = x.getPixelForValue(1) - x.getPixelForValue(0);
      const px = Math.min(Math.max(x.getPixelForValue(0) + (options.at - 0.5) * wide, area.left), area.right);
      ctx.save();
      ctx.strokeStyle = options.colour; ctx.fillStyle = options.colour; ctx.lineWidth = 1.5;
      ctx.setLineDash([5, 3]);
      ctx.beginPath(); ctx.moveTo(px, area.top); ctx.lineTo(px, area.bottom); ctx.stroke();
      ctx.font = `11px ${css("--sans")}`;
      ctx.textAlign = px > (area.left + area.right) / 2 ? "right" : "left";
      ctx.fillText("allowance", px + (ctx.textAlign === "right" ? 3 : -3), area.top - 5);
      ctx.restore();
    },
  };
  Chart.register(allowanceLine);

  function axis(title, extra) {
    return { title: { display: !!title, text: String(title || "").slice(0, 80), color: css("--ink-2") }, grid: { color: css("--line-soft") },
      ticks: { color: css("--ink-2"), maxRotation: 0, autoSkipPadding: 10, ...(extra && extra.ticks) }, ...(extra && extra.axis) };
  }
  const powersOnly = (value) => { const l = Math.log10(Math.abs(value)); return Math.abs(l - Math.round(l)) < 1e-6 ? short(value) : ""; };

  function chartBox(label, configure) {
    const canvas = h("canvas", { role: "img", "aria-label": label });
    const box = h("div", { class: "chart" }, canvas);
    return lazily(box, () => {
      if (box.gckChart) box.gckChart.destroy();
      Chart.defaults.font.family = css("--sans");
      Chart.defaults.font.size = 11;
      const config = configure();
      config.options = { responsive: true, maintainAspectRatio: false, animation: false, ...config.options };
      box.gckChart = new Chart(canvas, config);
    });
  }

  /** Empty bins at both ends say nothing; one of them stays, and the bin of the allowance always. */
  function trimmed(edges, counts, keep) {
    let first = counts.findIndex((c) => c > 0), last = counts.length - 1;
    if (first < 0) return [edges, counts];
    while (last > first && !(counts[last] > 0)) last--;
    if (keep !== null) { first = Math.min(first, keep); last = Math.max(last, keep); }
    first = Math.max(0, first - 1); last = Math.min(counts.length - 1, last + 1);
    return [edges.slice(first, last + 2), counts.slice(first, last + 1)];
  }

  function histogram(exhibit) {
    const scores = ofScores(exhibit);
    let edges = exhibit.x.map(number), counts = exhibit.y.map(number);
    const binOf1 = scores ? edges.findIndex((e, i) => i + 1 < edges.length && e <= 1 && edges[i + 1] > 1) : -1;
    [edges, counts] = trimmed(edges, counts, binOf1 < 0 ? null : binOf1);
    const total = counts.reduce((a, b) => a + b, 0);
    let running = 0;
    const share = counts.map((c) => (running += c) / (total || 1) * 100);
    const beyond = scores ? counts.reduce((a, c, i) => a + (edges[i] >= 1 ? c : 0), 0) : null;
    let at = null;
    if (scores) {
      const i = edges.findIndex((e) => e >= 1);
      at = i < 0 ? counts.length : i === 0 ? 0 : edges[i] === 1 || !(edges[i - 1] > 0) ? i : i - 1 + Math.log(1 / edges[i - 1]) / Math.log(edges[i] / edges[i - 1]);
    }
    const label = `${exhibit.title}: ${integer(total)} in ${counts.length} bins` + (scores ? `, ${integer(beyond)} beyond the allowance` : "");
    const chart = chartBox(label, () => ({
      data: {
        labels: counts.map((_, i) => short(edges[i])),
        datasets: [
          { type: "bar", label: exhibit.y_label || "count", data: counts.map((c) => (exhibit.log_y && !(c > 0) ? null : c)), order: 2,
            backgroundColor: counts.map((_, i) => css(scores && edges[i] >= 1 ? "--bar-bad" : "--bar")), categoryPercentage: 1, barPercentage: 0.92, yAxisID: "y", minBarLength: 2 },
          { type: "line", label: "share at or below, %", data: share, stepped: "middle", order: 1, yAxisID: "share", borderColor: css("--curve"), backgroundColor: css("--curve"), borderWidth: 1.5, pointRadius: 0, pointHitRadius: 6 },
        ],
      },
      options: {
        interaction: { mode: "index", intersect: false },
        layout: { padding: { top: scores ? 16 : 0 } },
        scales: {
          x: axis(exhibit.x_label, { axis: { grid: { display: false } } }),
          y: axis(exhibit.y_label, { axis: { type: exhibit.log_y ? "logarithmic" : "linear", ...(exhibit.log_y ? { min: 0.8 } : { beginAtZero: true }) }, ticks: exhibit.log_y ? { callback: powersOnly } : {} }),
          share: axis("share, %", { axis: { position: "right", min: 0, max: 100, grid: { display: false } } }),
        },
        plugins: {
          legend: { display: false },
          allowance: { at, colour: css("--ink") },
          tooltip: { callbacks: {
            title: (items) => `${short(edges[items[0].dataIndex])} to ${short(edges[items[0].dataIndex + 1])}`,
            label: (item) => item.datasetIndex === 0 ? ` ${integer(counts[item.dataIndex])} ${exhibit.y_label || ""}` : ` ${share[item.dataIndex].toFixed(2)} % at or below`,
          } },
        },
      },
    }));
    return [chart, values(["from", "to", exhibit.y_label || "count", "share at or below"], () => counts.map((c, i) => [short(edges[i]), short(edges[i + 1]), integer(c), share[i].toFixed(3) + " %"]))];
  }

  function curve(exhibit) {
    const points = exhibit.x.map((x, i) => ({ x: number(x), y: number(exhibit.y[i]) }))
      .filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y) && (!exhibit.log_x || p.x > 0) && (!exhibit.log_y || p.y > 0));
    const lowest = points.reduce((a, p) => (a === null || p.y < a.y ? p : a), null);
    const label = `${exhibit.title}: ${points.length} points` + (lowest ? `, lowest ${short(lowest.y)} at ${short(lowest.x)}` : "");
    const chart = chartBox(label, () => ({
      type: "scatter",
      data: { datasets: [{ data: points, showLine: true, borderColor: css("--bar"), borderWidth: 1.5, pointRadius: points.map((p) => (p === lowest ? 4.5 : 2.5)),
        backgroundColor: points.map((p) => css(p === lowest ? "--curve" : "--bar")), pointBorderWidth: 0 }] },
      options: {
        scales: {
          x: axis(exhibit.x_label, { axis: { type: exhibit.log_x ? "logarithmic" : "linear" }, ticks: exhibit.log_x ? { callback: powersOnly } : {} }),
          y: axis(exhibit.y_label, { axis: { type: exhibit.log_y ? "logarithmic" : "linear" }, ticks: exhibit.log_y ? { callback: powersOnly } : {} }),
        },
        plugins: { legend: { display: false }, tooltip: { callbacks: { label: (item) => ` ${short(item.parsed.x)}: ${short(item.parsed.y)}` } } },
      },
    }));
    const note = lowest && points.length > 2 ? h("p", { class: "quiet" }, `Lowest: ${short(lowest.y)} at ${short(lowest.x)}`) : null;
    return [chart, note, values([exhibit.x_label || "x", exhibit.y_label || "y"], () => exhibit.x.map((x, i) => [short(x), short(exhibit.y[i])]))];
  }

  /** The numbers of a picture as a table, made when it is asked for. */
  function values(head, rows) {
    const fold = h("details", { class: "values" }, h("summary", null, "Values as a table"));
    fold.addEventListener("toggle", () => { if (fold.open && fold.children.length === 1) fold.append(grid(head, rows(), "values")); });
    return fold;
  }

  // ---- heat maps -------------------------------------------------------------------------------------------------

  function mix(stops, t) {
    const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
    const i = Math.min(Math.floor(at), stops.length - 2);
    return stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * (at - i)));
  }

  /** From a value to a colour: scores by decades round the allowance, signed values round zero, others from low to high. */
  function colouring(exhibit, numbers) {
    const dark = isDark();
    const ground = dark ? [29, 35, 44] : [240, 243, 247];
    const finite = numbers.filter(Number.isFinite);
    const high = finite.reduce((a, b) => Math.max(a, b), -Infinity), low = finite.reduce((a, b) => Math.min(a, b), Infinity);
    const cool = dark ? [ground, [41, 72, 122], [87, 143, 226], [160, 200, 255]] : [ground, [188, 211, 240], [99, 151, 214], [36, 84, 158]];
    const hot = dark ? [[240, 160, 60], [255, 90, 90], [255, 190, 215]] : [[243, 160, 60], [210, 35, 45], [96, 8, 40]];
    const nan = [190, 60, 220];
    if (ofScores(exhibit)) {
      const up = Math.max(3, Math.min(8, Math.ceil(Math.log10(Math.max(high, 1)))));
      const down = 4;
      return {
        colour: (v) => Number.isNaN(v) ? nan : v <= 0 ? ground : v <= 1 ? mix(cool, 0.15 + 0.85 * (Math.log10(v) + down) / down) : mix(hot, Math.log10(v) / up),
        ends: [`1e−${down}`, `1e${up}`], middle: ["allowance", down / (down + up)],
        at: (t) => { const l = -down + t * (down + up); return 10 ** l; },
      };
    }
    if (!finite.length) return { colour: () => nan, ends: ["", ""], at: () => NaN };
    if (low < 0) {
      const size = Math.max(-low, high) || 1;
      const minus = dark ? [[120, 190, 255], [40, 80, 150], ground] : [[23, 78, 166], [150, 187, 233], [250, 250, 250]];
      const plus = dark ? [ground, [150, 55, 60], [255, 140, 130]] : [[250, 250, 250], [240, 165, 150], [178, 24, 43]];
      return { colour: (v) => Number.isNaN(v) ? nan : v < 0 ? mix(minus, 1 + Math.max(v, -size) / size) : mix(plus, Math.min(v, size) / size),
        ends: [short(-size), short(size)], middle: ["0", 0.5], at: (t) => (2 * t - 1) * size };
    }
    const span = high - low || 1;
    return { colour: (v) => Number.isNaN(v) ? nan : mix(cool, (Math.min(v, high) - low) / span), ends: [short(low), short(high)], at: (t) => low + t * span };
  }

  function heatMap(exhibit) {
    const { rows, cols } = exhibit;
    const numbers = exhibit.matrix.map(number);
    if (!rows || !cols) return [h("p", { class: "quiet" }, "No entries.")];
    const rowStep = exhibit.row_step || 1, colStep = exhibit.col_step || 1;
    const peak = numbers.reduce((a, v, i) => (Number.isNaN(numbers[a]) || Math.abs(numbers[a]) >= Math.abs(v) ? a : i), 0);
    const readout = h("span", { class: "readout", role: "status" });
    const canvas = h("canvas", { tabindex: "0", role: "application", "aria-roledescription": "heat map",
      "aria-label": `${exhibit.title}, ${rows} by ${cols}, largest ${short(numbers[peak])} at ${cellName(peak)}. Arrow keys move, plus and minus zoom, 0 resets.` });
    const view = { x: 0, y: 0, zoom: 1 };                        // the top left corner in cells
    let cursor = null, image = null, palette = null;

    function span(at, step, label) {
      const from = at * step;
      return `${label ? label + " " : ""}${step > 1 ? `${from}–${from + step - 1}` : from}`;
    }
    function cellName(i) {
      return `[${span(Math.floor(i / cols), rowStep)}, ${span(i % cols, colStep)}]`;
    }
    function say() {
      if (cursor === null) { readout.textContent = `largest ${short(numbers[peak])} at ${cellName(peak)}`; return; }
      const i = cursor.row * cols + cursor.col;
      readout.textContent = `${span(cursor.row, rowStep, exhibit.y_label && exhibit.y_label.length < 24 ? exhibit.y_label : "row")}, ` +
        `${span(cursor.col, colStep, exhibit.x_label && exhibit.x_label.length < 24 ? exhibit.x_label : "col")}: ${short(numbers[i])}`;
    }
    function bitmap() {
      const source = document.createElement("canvas");
      source.width = cols; source.height = rows;
      const ctx = source.getContext("2d");
      const data = ctx.createImageData(cols, rows);
      numbers.forEach((v, i) => data.data.set([...palette.colour(v), 255], 4 * i));
      ctx.putImageData(data, 0, 0);
      return source;
    }
    function size() {
      const width = canvas.clientWidth || 300;
      const square = width / cols * rows;                        // height if cells were squares
      return [width, Math.round(Math.min(Math.max(square, 48, Math.min(rows * 10, 160)), Math.min(width, 420)))];
    }
    function paint() {
      const [width, height] = size();
      const ratio = window.devicePixelRatio || 1;
      canvas.style.height = `${height}px`;
      canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
      const ctx = canvas.getContext("2d");
      ctx.imageSmoothingEnabled = false;
      const wide = cols / view.zoom, tall = rows / view.zoom;
      ctx.drawImage(image, view.x, view.y, wide, tall, 0, 0, canvas.width, canvas.height);
      if (cursor === null) return;
      const w = canvas.width / wide, t = canvas.height / tall;
      ctx.lineWidth = 2 * ratio; ctx.strokeStyle = css("--ink");
      ctx.strokeRect((cursor.col - view.x) * w, (cursor.row - view.y) * t, Math.max(w, 3), Math.max(t, 3));
    }
    function clamp() {
      view.zoom = Math.min(Math.max(view.zoom, 1), Math.max(1, Math.max(rows, cols) / 4));
      view.x = Math.min(Math.max(view.x, 0), cols - cols / view.zoom);
      view.y = Math.min(Math.max(view.y, 0), rows - rows / view.zoom);
    }
    function zoomTo(zoom, col, row) {
      const before = view.zoom;
      view.zoom = zoom; clamp();
      view.x = col - (col - view.x) * before / view.zoom;
      view.y = row - (row - view.y) * before / view.zoom;
      clamp(); paint();
    }
    const centre = () => cursor ? [cursor.col + 0.5, cursor.row + 0.5] : [view.x + cols / view.zoom / 2, view.y + rows / view.zoom / 2];
    function under(event) {
      const box = canvas.getBoundingClientRect();
      const col = Math.floor(view.x + (event.clientX - box.left) / box.width * cols / view.zoom);
      const row = Math.floor(view.y + (event.clientY - box.top) / box.height * rows / view.zoom);
      return { col: Math.min(Math.max(col, 0), cols - 1), row: Math.min(Math.max(row, 0), rows - 1) };
    }
    function follow() {                                          // keeps the cursor in sight
      if (cursor.col < view.x) view.x = cursor.col;
      if (cursor.row < view.y) view.y = cursor.row;
      if (cursor.col + 1 > view.x + cols / view.zoom) view.x = cursor.col + 1 - cols / view.zoom;
      if (cursor.row + 1 > view.y + rows / view.zoom) view.y = cursor.row + 1 - rows / view.zoom;
      clamp();
    }
    let drag = null;
    canvas.addEventListener("pointerdown", (e) => { if (view.zoom > 1) { drag = { x: e.clientX, y: e.clientY, vx: view.x, vy: view.y }; canvas.setPointerCapture(e.pointerId); } });
    canvas.addEventListener("pointerup", () => { drag = null; });
    canvas.addEventListener("pointermove", (e) => {
      if (drag) {
        const box = canvas.getBoundingClientRect();
        view.x = drag.vx - (e.clientX - drag.x) / box.width * cols / view.zoom;
        view.y = drag.vy - (e.clientY - drag.y) / box.height * rows / view.zoom;
        clamp();
      }
      cursor = under(e); say(); paint();
    });
    canvas.addEventListener("pointerleave", () => { if (document.activeElement !== canvas) { cursor = null; say(); paint(); } });
    canvas.addEventListener("blur", () => { cursor = null; say(); paint(); });
    canvas.addEventListener("dblclick", (e) => { const c = under(e); zoomTo(view.zoom * 2, c.col + 0.5, c.row + 0.5); });
    canvas.addEventListener("wheel", (e) => {                    // the page scrolls on unless the map was chosen
      if (document.activeElement !== canvas && !e.ctrlKey) return;
      e.preventDefault();
      const c = under(e);
      zoomTo(view.zoom * (e.deltaY < 0 ? 1.25 : 0.8), c.col + 0.5, c.row + 0.5);
    }, { passive: false });
    canvas.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
      if (step) {
        cursor = cursor || { col: peak % cols, row: Math.floor(peak / cols) };
        cursor = { col: Math.min(Math.max(cursor.col + step[0], 0), cols - 1), row: Math.min(Math.max(cursor.row + step[1], 0), rows - 1) };
        follow();
      } else if (e.key === "+" || e.key === "=") return void zoomTo(view.zoom * 1.5, ...centre());
      else if (e.key === "-") return void zoomTo(view.zoom / 1.5, ...centre());
      else if (e.key === "0") { view.zoom = 1; clamp(); }
      else if (e.key === "Home") { cursor = { col: peak % cols, row: Math.floor(peak / cols) }; follow(); }
      else return;
      e.preventDefault(); say(); paint();
    });
    const button = (text, label, act) => h("button", { type: "button", class: "plain", "aria-label": `${label}: ${exhibit.title}`.slice(0, 120), on: { click: act } }, text);
    const legend = h("canvas", { "aria-hidden": "true" });
    const ends = h("div", { class: "ends" });
    function paintLegend() {
      legend.width = 256; legend.height = 1;
      const ctx = legend.getContext("2d");
      const data = ctx.createImageData(256, 1);
      for (let i = 0; i < 256; i++) data.data.set([...palette.colour(palette.at(i / 255)), 255], 4 * i);
      ctx.putImageData(data, 0, 0);
      ends.replaceChildren(h("span", null, palette.ends[0]), h("span", null, palette.ends[1]));
      if (palette.middle) {
        const mark = h("span", { class: "at" }, palette.middle[0]);
        mark.style.left = `${palette.middle[1] * 100}%`;
        ends.append(mark);
      }
    }
    const box = h("div", { class: "map" }, canvas,
      h("div", { class: "scale" }, legend, ends),
      h("div", { class: "bar" }, readout, button("+", "Zoom in", () => zoomTo(view.zoom * 1.5, ...centre())), button("−", "Zoom out", () => zoomTo(view.zoom / 1.5, ...centre())),
        button("1:1", "Show all", () => { view.zoom = 1; clamp(); paint(); })));
    say();
    lazily(box, () => { palette = colouring(exhibit, numbers); image = bitmap(); paintLegend(); paint(); });
    new ResizeObserver(() => { if (image && Math.abs(canvas.width - (canvas.clientWidth || 300) * (window.devicePixelRatio || 1)) > 1) paint(); }).observe(box);
    const axes = exhibit.x_label || exhibit.y_label ? h("p", { class: "quiet" }, `across: ${exhibit.x_label || "columns"}; down: ${exhibit.y_label || "rows"}` +
      (rowStep > 1 || colStep > 1 ? `; each cell is the largest of ${rowStep} × ${colStep}` : "")) : null;
    return [box, axes];
  }

  // ---- exhibits --------------------------------------------------------------------------------------------------

  function exhibitFigure(exhibit) {
    const figure = h("figure", null, h("figcaption", null, clipped(exhibit.title, 200)));
    if (exhibit.kind === "table") {
      const head = exhibit.cells.slice(0, exhibit.cols), rows = [];
      for (let r = 1; r <= exhibit.rows; r++) rows.push(exhibit.cells.slice(r * exhibit.cols, (r + 1) * exhibit.cols));
      figure.append(grid(head, rows, exhibit.title.slice(0, 120)));
    } else {
      const parts = exhibit.kind === "histogram" ? histogram(exhibit) : exhibit.kind === "curve" ? curve(exhibit) : heatMap(exhibit);
      figure.append(...parts.filter(Boolean));
    }
    return figure;
  }

  function figureRow(exhibits) {
    const row = h("div", { class: exhibits.length === 1 ? "figures one" : "figures" });
    exhibits.forEach((e) => row.append(exhibitFigure(e)));
    return row;
  }

  /** Exhibits of a group side by side, the groups below each other. */
  function exhibitGroups(exhibits) {
    const groups = new Map();
    exhibits.forEach((e, i) => {
      const key = e.group ? "g" + e.group : "i" + i;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(e);
    });
    const out = [];
    for (const [key, members] of groups) {
      if (key[0] === "g" && groups.size > 1) out.push(h("p", { class: "group-title" }, clipped(key.slice(1), 120)));
      out.push(figureRow(members));
    }
    return out;
  }

  // ---- runs ------------------------------------------------------------------------------------------------------

  /** Stable across reports: the case with kernel and device, in the letters that an anchor may have. */
  const taken = new Set();
  function anchorOf(run) {
    const clean = `${run.case}@${run.kernel}.${run.device}`.replace(/[^A-Za-z0-9._=@,+-]+/g, "_").slice(0, 160) || "run";
    let anchor = clean;
    for (let n = 2; taken.has(anchor); n++) anchor = `${clean}~${n}`;
    taken.add(anchor);
    return anchor;
  }

  function worstScore(run) {
    let worst = -1, name = null;
    for (const g of run.gradients) {
      if (!g.compared) continue;
      const score = number(g.score.max);
      if (Number.isNaN(score)) return { score, name: g.name };
      if (score > worst) { worst = score; name = g.name; }
    }
    return name === null ? null : { score: worst, name };
  }

  const runs = report.runs.map((run, index) => ({
    run, index, anchor: anchorOf(run), worst: worstScore(run), element: null, row: null, body: null,
    text: [run.case, run.kernel, run.device, run.dtype, run.verdict, run.reason, run.remark, run.source, isExcused(run) ? "known" : "", run.known,
      ...run.checks.flatMap((c) => c.findings.flatMap((f) => [f.what, f.where, f.diagnosis]))].filter(Boolean).map((s) => s.slice(0, 4000)).join("\n").toLowerCase(),
  }));

  function gauge(worst) {
    if (!worst) return h("span", { class: "gauge" }, h("span"), h("span", { class: "quiet" }, "–"));
    const position = (v) => Number.isNaN(v) ? 1 : Math.min(Math.max((Math.log10(Math.max(v, 1e-6)) + 4) / 8, 0), 1);
    const fill = h("span", { class: worst.score <= 1 ? "fill" : "fill bad" });
    fill.style.width = `${position(worst.score) * 100}%`;
    const limit = h("span", { class: "limit" });
    limit.style.left = "50%";
    return h("span", { class: "gauge" }, h("span", { class: "track", "aria-hidden": "true" }, fill, limit),
      h("span", null, h("span", { class: "sr" }, "worst score "), short(worst.score), " ", h("span", { class: "quiet" }, worst.name)));
  }

  function stat(name, value, bad) {
    return h("div", null, h("dt", null, name), h("dd", { class: bad ? "bad" : null }, value));
  }

  function gradientBlock(gradient, exhibits) {
    const g = gradient;
    const d = g.detectable || {};
    const block = h("section", { class: "block" },
      h("h4", null, h("span", { class: "mono" }, g.name), badge(g.verdict), h("span", { class: "quiet" }, `${g.dtype} [${g.shape.join(", ")}]`)),
      g.reason ? h("p", { class: "reason" }, clipped(g.reason)) : null);
    const score = number(g.score.max);
    block.append(h("dl", { class: "stats" },
      stat("worst score", g.compared ? `${short(g.score.max)}${g.score.at.length ? ` at [${g.score.at.join(", ")}]` : ""}` : "–", !(score <= 1)),
      stat("median score", g.compared ? short(g.score.median) : "–"),
      stat("elements compared", integer(g.compared)),
      stat("outside their cell", integer(g.outside_cell)),
      stat("largest error, ulp", g.compared ? short(g.ulp_max) : "–"),
      stat("decided by MPFR", integer(g.escalated)),
      stat("bias z", measured(g.bias_z)),
      stat("condition", measured(g.condition)),
      stat("detects in one element", d.element === null || d.element === undefined ? "–" : `${short(d.element)} (${measured(d.element_relative)} rel.)`),
      stat("detects in the scale", measured(d.scale))));
    if (exhibits.length) block.append(figureRow(exhibits));
    const worst = worstElements(g);
    if (worst && (number(g.worst[0].score) > 0 || Number.isNaN(number(g.worst[0].score)))) block.append(worst);
    return block;
  }

  function findingBlock(f) {
    return h("div", { class: "finding" },
      f.diagnosis ? h("p", { class: "diagnosis" }, clipped(f.diagnosis)) : null,
      h("p", null, clipped(f.what)),
      pairs([["where", f.where ? h("code", null, clipped(f.where)) : ""], ["look for", f.advice ? clipped(f.advice) : ""]]));
  }

  function checkBlock(check, exhibits) {
    const block = h("div", { class: "check" },
      h("p", { class: "line" }, h("b", null, clipped(check.name, 80)), badge(check.verdict), h("span", { class: "quiet" }, duration(check.seconds || 0)),
        check.reason ? h("span", { class: "reason" }, clipped(check.reason)) : null));
    check.findings.forEach((f) => block.append(findingBlock(f)));
    if (exhibits.length) block.append(...exhibitGroups(exhibits));
    if (check.exhibits_left_out) block.append(h("p", { class: "quiet" }, `${check.exhibits_left_out} pictures and tables were left out to keep this page small; the JSON report has them.`));
    return block;
  }

  /** Exhibits that belong to a gradient stand with it. */
  function sortExhibits(run) {
    const byGradient = new Map(run.gradients.map((g) => [g.name, []]));
    const byCheck = run.checks.map((check, k) => (check.exhibits || []).filter((e) => {
      const home = byGradient.get(e.group);
      if (!home || k > 0) return true;                         // the first check is the one of the scores
      home.push(e);
      return false;
    }));
    return { byGradient, byCheck };
  }

  function detail(entry) {
    const run = entry.run;
    const { byGradient, byCheck } = sortExhibits(run);
    const box = h("div", { class: "detail", id: `detail-${entry.index}`, role: "group", "aria-label": `run ${entry.index + 1}` });
    if (run.reproduce) box.append(command(run.reproduce));
    if (isExcused(run)) box.append(h("p", { class: "remark" }, h("b", null, "A known failure: "), clipped(run.known)));
    if (run.remark) box.append(h("p", { class: "remark" }, clipped(run.remark)));
    if (run.reason && run.verdict !== "pass") box.append(h("p", { class: "reason" }, badge(run.verdict), " ", clipped(run.reason)));
    const link = h("a", { href: "#" + encodeURIComponent(entry.anchor) }, "link to this run");
    box.append(pairs([["kernel", clipped(`${run.kernel} on ${run.device}`)], ["declared", run.declaration ? h("code", null, clipped(run.declaration)) : "nothing, the defaults hold"],
      ["capture", run.source ? h("code", null, clipped(run.source)) : ""], ["seed", h("code", null, run.seed)], ["took", duration(run.seconds)], ["anchor", link]]));
    run.gradients.forEach((g) => box.append(gradientBlock(g, byGradient.get(g.name) || [])));
    if (run.checks.length) {
      const checks = h("section", { class: "block" }, h("h4", null, "Checks"));
      run.checks.forEach((c, k) => checks.append(checkBlock(c, byCheck[k])));
      box.append(checks);
    }
    return box;
  }

  function unfold(entry, open) {
    if (open === !!entry.body) return;
    entry.row.setAttribute("aria-expanded", String(open));
    entry.element.classList.toggle("open", open);
    if (open) { entry.body = detail(entry); entry.element.append(entry.body); entry.row.setAttribute("aria-controls", entry.body.id); }
    else { entry.body.remove(); entry.body = null; entry.row.removeAttribute("aria-controls"); }
  }

  function runElement(entry) {
    const run = entry.run;
    const name = run.case.startsWith(run.op) ? [h("b", null, run.op), run.case.slice(run.op.length, 600)] : [run.case.slice(0, 600)];
    entry.row = h("button", { type: "button", class: "row", "aria-expanded": "false", on: { click: () => unfold(entry, !entry.body) } },
      h("span", { class: "verdict" }, badge(run.verdict), isExcused(run) ? " known" : null), h("span", { class: "case" }, name, run.case.length > 600 ? "…" : null),
      h("span", { class: "by" }, `${run.device} · ${run.kernel.slice(0, 60)} · ${run.dtype}`), gauge(entry.worst),
      h("span", { class: "time" }, duration(run.seconds)), h("span", { class: "fold", "aria-hidden": "true" }));
    entry.element = h("article", { class: "run", id: entry.anchor }, h("h3", null, entry.row));
    return entry.element;
  }

  // ---- filter ----------------------------------------------------------------------------------------------------

  const filter = { words: [], verdicts: new Set(), op: "", device: "", dtype: "", kernel: "", order: "verdict" };
  let list, shown, tiles = [], fields = {};

  function matches(entry) {
    const run = entry.run;
    if (filter.verdicts.size && !filter.verdicts.has(run.verdict)) return false;
    for (const key of ["op", "device", "dtype", "kernel"]) if (filter[key] && run[key] !== filter[key]) return false;
    return filter.words.every((word) => entry.text.includes(word));
  }

  const rank = (entry) => { const s = entry.worst ? entry.worst.score : -1; return Number.isNaN(s) ? Infinity : s; };
  const ORDERS = {
    verdict: (a, b) => VERDICTS.indexOf(a.run.verdict) - VERDICTS.indexOf(b.run.verdict) || rank(b) - rank(a) || a.index - b.index,
    run: (a, b) => a.index - b.index,
    score: (a, b) => (rank(b) === rank(a) ? 0 : rank(b) - rank(a)) || a.index - b.index,
    time: (a, b) => b.run.seconds - a.run.seconds || a.index - b.index,
  };

  function apply() {
    const chosen = runs.filter(matches).sort(ORDERS[filter.order]);
    const parts = chosen.map((entry) => entry.element || runElement(entry));
    list.replaceChildren(...(parts.length ? parts : [h("p", { class: "none" }, "No run matches. "), h("p", { class: "none" }, h("button", { type: "button", class: "plain", on: { click: clear } }, "Clear the filter"))]));
    shown.textContent = chosen.length === runs.length ? `${integer(runs.length)} ${runs.length === 1 ? "run" : "runs"}` : `${integer(chosen.length)} of ${integer(runs.length)} runs`;
    tiles.forEach(([verdict, tile]) => tile.setAttribute("aria-pressed", String(filter.verdicts.has(verdict))));
  }

  function clear() {
    filter.words = []; filter.verdicts.clear();
    for (const key of ["op", "device", "dtype", "kernel"]) { filter[key] = ""; if (fields[key]) fields[key].value = ""; }
    fields.search.value = "";
    apply();
  }

  function chooser(key, label) {
    const all = [...new Set(runs.map((e) => e.run[key]))].sort();
    if (all.length < 2) return null;
    fields[key] = h("select", { "aria-label": label, on: { change: () => { filter[key] = fields[key].value; apply(); } } },
      h("option", { value: "" }, `any ${label}`), all.slice(0, 200).map((v) => h("option", { value: v }, v.slice(0, 60))));
    return fields[key];
  }

  function runSection() {
    const section = document.getElementById("runs");
    let waiting = 0;
    fields.search = h("input", { type: "search", placeholder: "Search cases, kernels, findings", "aria-label": "Search the runs", autocomplete: "off", spellcheck: "false",
      on: { input: () => { clearTimeout(waiting); waiting = setTimeout(() => { filter.words = fields.search.value.toLowerCase().split(/\s+/).filter(Boolean); apply(); }, runs.length > 200 ? 120 : 0); } } });
    const order = h("select", { "aria-label": "Order", on: { change: () => { filter.order = order.value; apply(); } } },
      [["verdict", "worst first"], ["run", "as run"], ["score", "by score"], ["time", "by time"]].map(([v, text]) => h("option", { value: v }, text)));
    shown = h("span", { class: "shown", role: "status" });
    list = h("div", { class: "list" });
    section.append(h("h2", { id: "runs-title" }, "Runs"));
    section.append(h("div", { class: "tools", role: "search" }, fields.search, chooser("op", "op"), chooser("dtype", "dtype"), chooser("device", "device"), chooser("kernel", "kernel"), order,
      h("button", { type: "button", class: "plain", on: { click: () => runs.forEach((e) => e.body && unfold(e, false)) } }, "Fold all"), shown), list);
    section.hidden = false;
    apply();
  }

  // ---- the head and what is wrong ----------------------------------------------------------------------------------

  function sentence(counts) {
    const n = runs.length, s = (k) => `${integer(k)} of ${integer(n)} ${n === 1 ? "run" : "runs"}`;
    if (report.verdict === "fail") return n === 1 ? "The gradient is wrong." : `${s(counts.fail)} ${counts.fail === 1 ? "has" : "have"} a wrong gradient.`;
    if (report.verdict === "vacuous") return `${s(counts.vacuous)} could not have failed: nothing was shown there.`;
    const known = runs.filter((e) => isExcused(e.run)).length;
    if (report.verdict === "pass" && known) return `Nothing fails but what is known to: ${s(counts.pass)} ${counts.pass === 1 ? "is" : "are"} right, ${integer(known)} ${known === 1 ? "failure is" : "failures are"} known.`;
    if (report.verdict === "pass") return n === 1 ? "The gradients are right, within what was checked." : `All gradients that were judged are right: ${s(counts.pass)}.`;
    return report.reason || "Nothing was judged.";
  }

  function themeButton() {
    const order = ["", "light", "dark"], name = { "": "system", light: "light", dark: "dark" };
    const button = h("button", { type: "button", class: "plain" }, "Colours: system");
    let at = 0;
    button.addEventListener("click", () => {
      at = (at + 1) % order.length;
      if (order[at]) document.documentElement.dataset.theme = order[at];
      else delete document.documentElement.dataset.theme;
      button.textContent = `Colours: ${name[order[at]]}`;
      redrawAll();
    });
    return button;
  }

  function head() {
    const counts = Object.fromEntries(VERDICTS.map((v) => [v, runs.filter((e) => e.run.verdict === v).length]));
    const banner = h("div", { class: `banner v-${report.verdict}` },
      h("h1", null, h("b", null, report.verdict), h("span", null, clipped(sentence(counts)))));
    const facts = [report.title, report.started ? new Date(report.started).toString() === "Invalid Date" ? report.started : report.started.replace("T", " ").replace("Z", " UTC") : null,
      report.seconds ? `took ${duration(report.seconds)}` : null].filter(Boolean);
    banner.append(h("p", { class: "facts" }, clipped(facts.join(" · "))));
    const row = h("div", { class: "tiles", role: "group", "aria-label": "Show runs by verdict" });
    for (const verdict of VERDICTS) {
      if (!counts[verdict]) continue;
      const tile = h("button", { type: "button", class: `tile v-${verdict}`, "aria-pressed": "false", on: { click: () => {
        if (!filter.verdicts.delete(verdict)) filter.verdicts.add(verdict);
        apply();
      } } }, h("b", null, integer(counts[verdict])), PLURAL[verdict]);
      tiles.push([verdict, tile]);
      row.append(tile);
    }
    banner.append(row);
    document.getElementById("top").append(h("div", { class: "masthead" }, h("strong", null, "gradcheck report"), themeButton()), banner,
      ...(report.partial ? [h("p", { class: "notice" }, "This report is partial: the run was interrupted, and what came after is missing.")] : []),
      ...(report.notes && report.notes.length ? [h("ul", { class: "notice", "aria-label": "notes" }, report.notes.slice(0, 200).map((note) => h("li", null, clipped(note))))] : []));
  }

  /** Findings that say the same of the same kernel belong together: numbers and places may differ. */
  function alike(run, check, finding) {
    const said = (finding.diagnosis || finding.what).replace(/\[[^\]]*\]/g, "[]").replace(/[-+]?\d+(\.\d+)?(e[-+]?\d+)?/gi, "#");
    return [run.op, run.kernel, run.device, check.name, said].join("\n");
  }

  function gatherWrong() {
    const groups = new Map();
    for (const entry of [...runs].sort(ORDERS.verdict)) {
      if (!isBad(entry.run.verdict) || isExcused(entry.run)) continue;
      let any = false;
      for (const check of entry.run.checks) for (const finding of check.findings) {
        any = true;
        const key = alike(entry.run, check, finding);
        if (!groups.has(key)) groups.set(key, { entry, check, finding, also: new Set() });
        else if (groups.get(key).entry !== entry) groups.get(key).also.add(entry);
      }
      if (!any) groups.set("run " + entry.index, { entry, check: null, finding: { what: reasonOf(entry.run) }, also: new Set() });
    }
    return [...groups.values()].sort((a, b) => (b.finding.diagnosis ? 1 : 0) - (a.finding.diagnosis ? 1 : 0));
  }

  function reasonOf(run) {
    const part = [...run.gradients, ...run.checks].find((x) => isBad(x.verdict) && x.reason);
    return run.reason || (part ? `${part.name}: ${part.reason}` : `This run is ${run.verdict}.`);
  }

  const goTo = (entry) => h("a", { href: "#" + encodeURIComponent(entry.anchor) }, "open the run");

  /** The worst element of the gradient that a finding speaks of. */
  function worstOf(run, finding) {
    const text = `${finding.where || ""} ${finding.what || ""}`;
    const named = run.gradients.filter((g) => g.worst.length && new RegExp(`(^|[^A-Za-z0-9_])${g.name.replace(/[^A-Za-z0-9_]/g, "\\$&")}([^A-Za-z0-9_]|$)`).test(text));
    const g = named.find((x) => x.verdict === "fail");
    return g ? { name: g.name, entry: g.worst[0] } : null;
  }

  function card(group) {
    const { entry, check, finding, also } = group;
    const run = entry.run;
    const element = h("article", { class: `card v-${run.verdict}` },
      h("p", { class: "head" }, badge(run.verdict), h("span", null, clipped([run.op, run.kernel, run.device, run.dtype].join(" · "), 160)), check ? h("span", null, clipped(check.name, 60)) : null, goTo(entry)),
      h("h3", null, clipped(finding.diagnosis || finding.what, 400)),
      finding.diagnosis ? h("p", { class: "what" }, clipped(finding.what, 400)) : null,
      pairs([["where", finding.where ? h("code", null, clipped(finding.where, 200)) : ""], ["look for", finding.advice ? clipped(finding.advice, 400) : ""]]));
    const worst = check ? worstOf(run, finding) : null;
    if (worst) element.append(h("p", { class: "quiet" }, "Worst element ", h("code", null, place(worst.name, worst.entry.index)), `, ${short(worst.entry.score)} times its allowance:`), digits(worst.entry));
    if (run.reproduce) element.append(command(run.reproduce));
    if (also.size) {
      const fold = h("details", { class: "cards-more" }, h("summary", null, `the same in ${integer(also.size)} more ${also.size === 1 ? "run" : "runs"}`));
      fold.addEventListener("toggle", () => {
        if (!fold.open || fold.children.length > 1) return;
        fold.append(h("ul", null, [...also].slice(0, 300).map((e) => h("li", null, h("a", { href: "#" + encodeURIComponent(e.anchor), class: "mono" }, e.run.case.slice(0, 300))))));
      });
      element.append(fold);
    }
    return element;
  }

  function wrong() {
    const groups = gatherWrong();
    if (!groups.length) return;
    const section = document.getElementById("wrong");
    const cards = h("div", { class: "cards" }, groups.slice(0, CARDS_AT_FIRST).map(card));
    section.append(h("h2", { id: "wrong-title" }, "What is wrong"), cards);
    if (groups.length > CARDS_AT_FIRST) {
      const more = h("button", { type: "button", class: "plain cards-more", on: { click: () => { cards.append(...groups.slice(CARDS_AT_FIRST).map(card)); more.remove(); } } },
        `Show ${integer(groups.length - CARDS_AT_FIRST)} more findings`);
      section.append(more);
    }
    section.hidden = false;
  }

  function environment() {
    if (!report.environment || !report.environment.length) return;
    const section = document.getElementById("environment");
    section.append(h("h2", { id: "environment-title" }, "Environment"), pairs(report.environment.map((f) => [clipped(f.name, 80), h("span", { class: "mono" }, clipped(f.value))])));
    section.hidden = false;
  }

  function foot() {
    document.getElementById("foot").append("A score is an element's error over its allowance, which is computed from the inputs; 1 is the line. The error is the distance from the reference to the numbers that round to the kernel's result. " +
      "Press / to search. Schema gradcheck-report-1.");
  }

  /** The icon of the tab, in the verdict's colour. */
  function icon() {
    const colour = { pass: "17703a", fail: "c21f2b", vacuous: "7a3fc4", undefined: "8a5a00", skipped: "566070" }[report.verdict];
    document.head.append(h("link", { rel: "icon", href: `data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%23${colour}'/%3E%3C/svg%3E` }));
  }

  // ---- anchors and keys --------------------------------------------------------------------------------------------

  function openAnchor() {
    let anchor = location.hash.slice(1);
    try { anchor = decodeURIComponent(anchor); } catch { return; }
    const entry = runs.find((e) => e.anchor === anchor);
    if (!entry) return;
    if (!entry.element || !entry.element.isConnected) clear();
    unfold(entry, true);
    entry.element.scrollIntoView({ block: "start" });
    entry.row.focus({ preventScroll: true });
  }
  window.addEventListener("hashchange", openAnchor);
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    e.preventDefault();
    fields.search.focus();
  });

  icon();
  head();
  wrong();
  runSection();
  environment();
  foot();
  if (runs.length === 1) unfold(runs[0], true);
  openAnchor();
  document.documentElement.dataset.ready = "yes";
})();
