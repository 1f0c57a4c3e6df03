// The behaviour of a page: unpack columns, fill the charts for the time in view, sort tables, colour, download.
"use strict";
const PAGE = JSON.parse(document.getElementById("page-data").textContent);
const NEVER = 4294967295;
const DETAIL = 4000;        // most boxes in view that are drawn one by one and have a tooltip
const byId = (id) => document.getElementById(id);
window.simsched = { ready: 0, charts: PAGE.charts.length, errors: [], renders: 0, order: [] };

// ---- columns ----------------------------------------------------------------------------------------------
// Runs of one workload share their jobs, so each island is unpacked once.
const islands = new Map();
function unpack(id) {
  if (!islands.has(id)) islands.set(id, unpacked(byId(id)));
  return islands.get(id);
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

async function unpacked(holder) {
  const bytes = bytesOf(holder.textContent);
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(plain).arrayBuffer();
  const columns = {};
  let at = 0;
  for (const [name, kind, length, differences] of JSON.parse(holder.dataset.fields)) {
    const column = new window[kind](buffer, at, length);
    at += column.byteLength;
    if (differences) for (let i = 1; i < length; i++) column[i] += column[i - 1];
    columns[name] = column;
  }
  return columns;
}

// ---- colours ----------------------------------------------------------------------------------------------
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const documents = [];

function restyle(which = documents) {
  const ink = css("--ink"), muted = css("--muted"), line = css("--line"), surface = css("--surface");
  const wear = {
    axis: { axis_label_text_color: ink, major_label_text_color: muted, axis_line_color: line, major_tick_line_color: line },
    grid: { grid_line_color: line },
    legend: { label_text_color: ink, background_fill_color: surface },
    title: { text_color: ink },
    text: { text_color: ink },
    bar: { major_label_text_color: muted, title_text_color: muted },
  };
  for (const { doc, styled } of which)
    for (const [id, kind] of styled) doc.get_model_by_id(id)?.setv(wear[kind]);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
  restyle();
}

function themes() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const now = () => document.documentElement.dataset.theme;
  setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", (e) => setTheme(e.matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => setTheme(now() === "dark" ? "light" : "dark"));
  let before = "light";
  window.addEventListener("beforeprint", () => { before = now(); setTheme("light"); drawForPaper(); });
  window.addEventListener("afterprint", () => { document.querySelectorAll(".paper").forEach((p) => p.remove()); setTheme(before); });
}

// On paper each chart is an image, because Bokeh's canvases do not follow the width of the page.
function drawForPaper() {
  const places = Object.assign({}, ...PAGE.charts.map((item) => item.places));
  for (const view of Bokeh.index.roots) {
    const place = Object.keys(places).find((name) => places[name] === view.model.id);
    const picture = view.export("png", true).canvas;
    picture.className = "paper";
    picture.removeAttribute("style");
    byId(place)?.append(picture);
  }
}

// ---- charts over time -------------------------------------------------------------------------------------
const rgba = (hex) => {
  const n = parseInt(hex.slice(1), 16);
  return (255 << 24) | ((n & 255) << 16) | (n & 0xff00) | (n >> 16);
};

class TimeCharts {
  constructor(doc, spec, jobs, boxes, line, ids) {
    Object.assign(this, { doc, spec, jobs, boxes, line, ids, colourBy: byId(`${spec.prefix}-colour`).value });
    const model = (name) => doc.get_model_by_name(`${spec.prefix}-${name}`);
    this.model = model;
    this.range = model("time");
    this.ranks = model("ranks");
    this.axes = doc.all_models ? [...doc.all_models].filter((m) => m.name === `${spec.prefix}-time-axis`) : [];
    this.sums = {};
    if (line) for (const name of Object.keys(line)) if (name !== "time") this.sums[name] = this.integrate(line[name]);
    this.range.properties.start.change.connect(() => this.later());
    this.range.properties.end.change.connect(() => this.later());
    this.ranks?.properties.start.change.connect(() => this.later());
    this.ranks?.properties.end.change.connect(() => this.later());
    this.refresh();
  }
  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.refresh(); });
  }
  get view() {
    const scale = this.spec.unit_seconds / this.spec.tick;
    return [this.range.start * scale, this.range.end * scale];
  }
  refresh() {
    const started = performance.now();
    if (this.spec.clock) this.drawDates();
    if (this.line) this.drawLines();
    if (this.boxes) this.drawBoxes();
    window.simsched.renders += 1;
    window.simsched.lastRender = performance.now() - started;
  }
  // Dates at the ticks: local times of the log's zone; the offsets are those of its changes.
  ahead(t) {
    let found = this.spec.clock.offsets[0][1];
    for (const [at, offset] of this.spec.clock.offsets) if (at <= t) found = offset;
    return found;
  }
  local(t) { return t + this.ahead(t); }
  epoch(local) { return local - this.ahead(local - this.ahead(local)); }
  dateOf(t) { return new Date(Math.round(this.local(t)) * 1000).toISOString().slice(0, 19); }
  ticks(low, high, most) {
    const day = 86400, first = this.local(low), last = this.local(high), monday = 4 * day;
    const step = [1, 5, 10, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, day, 2 * day, 7 * day, 14 * day, 28 * day]
      .find((s) => (last - first) / s <= most);
    const found = [];
    if (step) {
      const base = step % (7 * day) ? 0 : monday;
      for (let t = Math.ceil((first - base) / step) * step + base; t <= last; t += step) found.push(t);
      return [step, found];
    }
    const months = [1, 2, 3, 6, 12, 24, 60, 120].find((m) => (last - first) / (30 * day * m) <= most) ?? 1200;
    const begin = new Date(first * 1000), at = (m) => Date.UTC(begin.getUTCFullYear(), m) / 1000;
    for (let m = 0; at(m) <= last; m += months) if (at(m) >= first) found.push(at(m));
    return [30 * day, found];
  }
  drawDates() {
    const { clock, unit_seconds: unit } = this.spec;
    const wide = byId(`${this.spec.prefix}-gantt`).clientWidth - 90;
    const most = Math.max(2, Math.min(12, Math.floor(wide / 110)));
    const [step, found] = this.ticks(clock.origin + this.range.start * unit, clock.origin + this.range.end * unit, most);
    const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"], labels = new Map(), ticks = [];
    for (const t of found) {
      const shown = new Date(t * 1000), text = shown.toISOString(), x = (this.epoch(t) - clock.origin) / unit;
      const date = `${days[shown.getUTCDay()]} ${text.slice(0, 10)}`, midnight = text.slice(11, 16) === "00:00";
      if (this.local(this.epoch(t)) !== t) continue;  // an hour that summer time skips
      ticks.push(x);
      const hours = text.slice(11, step < 60 ? 19 : 16);
      labels.set(x, step >= 86400 || (midnight && ticks.length > 1) ? date : ticks.length > 1 ? hours : `${hours}\n${date}`);
    }
    for (const axis of this.axes) {
      axis.major_label_overrides = labels;
      axis.ticker = new (Bokeh.Models.get("FixedTicker"))({ ticks });
    }
  }
  // Step functions: means over bins of about one pixel, from the integral, so that nothing is lost.
  integrate(values) {
    const time = this.line.time, sum = new Float64Array(values.length + 1);
    for (let i = 1; i < values.length; i++) sum[i] = sum[i - 1] + values[i - 1] * (time[i] - time[i - 1]);
    return sum;
  }
  rowAt(t) {
    const time = this.line.time;
    let low = 0, high = time.length;
    while (low < high) { const mid = (low + high) >> 1; if (time[mid] <= t) low = mid + 1; else high = mid; }
    return low - 1;
  }
  drawLines() {
    const [low, high] = this.view, time = this.line.time, last = time.length - 1;
    const bins = 900, scale = this.spec.tick / this.spec.unit_seconds;
    const first = Math.max(this.rowAt(low), 0), end = Math.min(this.rowAt(high) + 1, last);
    const exact = end - first <= bins;
    const edges = exact ? Array.from(time.slice(first, end + 1))
      : Array.from({ length: bins + 1 }, (_, i) => low + (high - low) * i / bins);
    const rows = edges.map((t) => this.rowAt(t));
    const x = edges.map((t) => t * scale);
    const integral = (name, i) => rows[i] < 0 ? 0
      : this.sums[name][rows[i]] + this.line[name][rows[i]] * (Math.min(edges[i], time[last]) - time[rows[i]]);
    const means = (name) => edges.map((t, i) => i + 1 === edges.length ? (rows[i] < 0 ? 0 : this.line[name][rows[i]])
      : exact ? this.line[name][Math.max(rows[i], 0)]
      : (integral(name, i + 1) - integral(name, i)) / (edges[i + 1] - t));
    const tops = (name) => edges.map((t, i) => {
      let top = rows[i] < 0 ? 0 : this.line[name][rows[i]];
      if (!exact && i + 1 < edges.length) for (let r = rows[i] + 1; r <= rows[i + 1]; r++) if (this.line[name][r] > top) top = this.line[name][r];
      return top;
    });
    for (const [kind, total] of this.spec.kinds)
      this.model(`use-${kind}`).data = { x, y: means(`used_${kind}`).map((v) => 100 * v / total) };
    const queued = tops("queued_jobs"), running = means("running_jobs");
    this.model("queued").data = { x, y: queued };
    this.model("running").data = { x, y: running };
    this.model("queue-range").end = 1.05 * Math.max(1, ...queued, ...running);
  }
  // Boxes: each is added to the pixels that it covers; a few boxes are drawn one by one.
  colours() {
    if (this.coloured === this.colourBy) return this.lookup;
    const cycle = PAGE.cycle.map(rgba), jobs = this.jobs, n = jobs.submit.length;
    const byJob = (i) => cycle[(i * 7 + (i >> 3)) % cycle.length];
    const of = { use: byJob, job: byJob, user: (i) => cycle[jobs.user[i] % cycle.length],
      queue: (i) => cycle[jobs.queue[i] % cycle.length],
      result: (i) => rgba(this.spec.result_colours[jobs.result[i]]),
      size: (i) => cycle[Math.min(Math.floor(Math.log2(Math.max(jobs.cores[i], 1))), 14) % cycle.length] }[this.colourBy];
    this.lookup = Uint32Array.from({ length: n }, (_, i) => of(i));
    this.coloured = this.colourBy;
    return this.lookup;
  }
  // The legend of the colours, if there are few.
  drawKey(single) {
    if (this.keyed === `${this.colourBy} ${single}`) return;
    this.keyed = `${this.colourBy} ${single}`;
    const s = this.spec, hex = (i) => PAGE.cycle[i % PAGE.cycle.length], names = { queue: s.queues, user: s.users }[this.colourBy];
    let entries = [];
    if (this.colourBy === "result") {
      const present = new Set(this.jobs.result);
      entries = s.results.map((name, i) => [s.result_colours[i], name.toLowerCase(), present.has(i)]).filter((e) => e[2]);
    } else if (names && names.length && names.length <= PAGE.cycle.length) entries = names.map((name, i) => [hex(i), name]);
    if (this.colourBy === "use" && !single) entries = [0, 0.25, 0.5, 0.75, 1].map((share) =>
      [PAGE.ramp[Math.round(share * (PAGE.ramp.length - 1))], `${100 * share} %`]);
    byId(`${s.prefix}-key`).replaceChildren(...entries.map(([colour, name]) => {
      const key = document.createElement("span"), mark = document.createElement("i");
      key.className = "key";
      mark.style.background = colour;
      key.append(mark, name);
      return key;
    }));
  }
  drawBoxes() {
    const [low, high] = this.view, b = this.boxes, colours = this.colours();
    const y0 = this.ranks.start, y1 = this.ranks.end;
    const place = byId(`${this.spec.prefix}-gantt`);
    const width = Math.max(200, Math.min(2000, Math.round(place.clientWidth - 90))), height = 400;
    const cover = new Float32Array(width * height), best = new Float32Array(width * height), pixel = new Uint32Array(width * height);
    const sx = width / (high - low), sy = height / (y1 - y0);
    const seen = [];
    let count = 0;
    for (let i = 0; i < b.start.length; i++) {
      const s = b.start[i];
      if (s >= high) break;                     // ordered by start
      const e = s + b.length[i], bottom = b.low[i], top = bottom + b.tall[i];
      if (e <= low || bottom >= y1 || top <= y0) continue;
      count++;
      if (seen.length < DETAIL) seen.push(i);
      const left = Math.max((s - low) * sx, 0), right = Math.min((e - low) * sx, width);
      const under = Math.max((bottom - y0) * sy, 0), over = Math.min((top - y0) * sy, height);
      const colour = colours[b.job[i]];
      const lastX = Math.min(Math.ceil(right), width), lastY = Math.min(Math.ceil(over), height);
      for (let y = Math.floor(under); y < lastY; y++) {
        const dy = Math.min(over, y + 1) - Math.max(under, y);
        for (let x = Math.floor(left), at = y * width + x; x < lastX; x++, at++) {
          const share = dy * (Math.min(right, x + 1) - Math.max(left, x));
          cover[at] += share;
          if (share > best[at]) { best[at] = share; pixel[at] = colour; }
        }
      }
    }
    const single = count <= DETAIL, scale = this.spec.tick / this.spec.unit_seconds;
    this.drawKey(single);
    const ramp = this.colourBy === "use" ? PAGE.ramp.map(rgba) : null;
    for (let at = 0; at < pixel.length; at++) {
      if (ramp) { pixel[at] = ramp[Math.round(Math.min(cover[at], 1) * (ramp.length - 1))]; continue; }
      const alpha = Math.round(255 * Math.min(cover[at], 1));
      pixel[at] = (pixel[at] & 0xffffff) | (alpha << 24);
    }
    this.paint(single ? null : pixel, width, height, low * scale, (high - low) * scale, y0, y1 - y0);
    this.model("boxes").data = single ? this.told(seen, scale) : this.told([], scale);
    const note = byId(`${this.spec.prefix}-view`);
    note.textContent = `${count.toLocaleString("en")} boxes in view` + (single ? "; point at a box for its job, click it for its wait" : "; zoom in to single jobs");
    place.dataset.inView = count;
    place.dataset.renders = Number(place.dataset.renders || 0) + 1;
  }
  paint(pixels, width, height, x, dw, y, dh) {
    const { ndarray } = Bokeh.require("core/util/ndarray");
    const options = { dtype: "uint32", shape: pixels ? [height, width] : [1, 1] };
    const image = ndarray((pixels ?? new Uint32Array(1)).buffer, options);
    this.model("image").data = { image: [image], x: [x], y: [y], dw: [dw], dh: [dh] };
  }
  told(rows, scale) {
    const b = this.boxes, jobs = this.jobs, s = this.spec, colours = this.colours();
    const at = (t) => t === NEVER ? "-" : s.clock ? this.dateOf(s.clock.origin + t * s.tick)
      : `${(t * scale).toFixed(3)} ${s.unit}`;
    const hex = (c) => "#" + (((c & 255) << 16) | (c & 0xff00) | ((c >> 16) & 255)).toString(16).padStart(6, "0");
    const each = (f) => Array.from(rows, f);
    return {
      left: each((i) => b.start[i] * scale), right: each((i) => (b.start[i] + b.length[i]) * scale),
      bottom: each((i) => b.low[i]), top: each((i) => b.low[i] + b.tall[i]), color: each((i) => hex(colours[b.job[i]])),
      id: each((i) => this.idOf(b.job[i])), user: each((i) => s.users[jobs.user[b.job[i]]] ?? "-"),
      what: each((i) => `${jobs.nodes[b.job[i]]} nodes, ${jobs.cores[b.job[i]]} cores: ${s.results[jobs.result[b.job[i]]].toLowerCase()}`),
      when: each((i) => `submitted ${at(jobs.submit[b.job[i]])}, ${at(b.start[i])} to ${at(b.start[i] + b.length[i])}`),
    };
  }
  idOf(job) {
    return this.spec.ids_count ? String(job + this.spec.ids_first) : this.ids[job];
  }
  move(zoom, shift) {
    const { start, end } = this.range, limit = this.spec.end;
    const middle = (start + end) / 2 + shift * (end - start), half = (end - start) * zoom / 2;
    const wide = Math.min(2 * half, limit), from = Math.min(Math.max(middle - wide / 2, 0), limit - wide);
    this.range.setv({ start: from, end: from + wide });
  }
  reset() {
    this.range.setv({ start: 0, end: this.spec.end });
    this.ranks?.setv({ start: 0, end: this.spec.rows });
  }
  // Downloads: the columns behind the charts, times in seconds since the first submission.
  csvOfBoxes() {
    const b = this.boxes, t = this.spec.tick, lines = [`job,start_s,end_s,${this.spec.row}_from,${this.spec.row}_until`];
    for (let i = 0; i < b.start.length; i++)
      lines.push(`${quote(this.idOf(b.job[i]))},${b.start[i] * t},${(b.start[i] + b.length[i]) * t},${b.low[i]},${b.low[i] + b.tall[i]}`);
    return lines.join("\n") + "\n";
  }
  csvOfLine() {
    const names = Object.keys(this.line).filter((n) => n !== "time"), t = this.spec.tick;
    const lines = [["time_s", ...names].join(",")];
    for (let i = 0; i < this.line.time.length; i++) lines.push([this.line.time[i] * t, ...names.map((n) => this.line[n][i])].join(","));
    return lines.join("\n") + "\n";
  }
}

const quote = (text) => /[",\n]/.test(text) ? `"${String(text).replaceAll('"', '""')}"` : String(text);

function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  window.simsched.saved = { name, length: text.length, head: text.slice(0, 200) };
}

// ---- tables -----------------------------------------------------------------------------------------------
function sortable(table) {
  table.querySelectorAll("thead th").forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") !== "descending";
    table.querySelectorAll("thead th").forEach((h) => h.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0], key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
    const number = (v) => v === "" ? -Infinity : Number(v);
    const numeric = [...body.rows].every((row) => row.cells[column].dataset.v !== undefined && !Number.isNaN(number(key(row))));
    const compare = numeric ? (a, b) => number(key(a)) - number(key(b)) : (a, b) => key(a).localeCompare(key(b), "en", { numeric: true });
    body.append(...[...body.rows].sort((a, b) => down ? compare(b, a) : compare(a, b)));
  }));
}

function csvOfTable(table) {
  const cell = (c) => quote(c.dataset.v ?? c.textContent.trim());
  return [...table.rows].map((row) => [...row.cells].map(cell).join(",")).join("\n") + "\n";
}
