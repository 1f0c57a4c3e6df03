// ---- the machine room ---------------------------------------------------------------------------------------
// Groups over time as an image, and the nodes at one time as cells, laid out for the width of the page.
const UNKNOWN = 255, NO_GROUP = 65535;

class RoomCharts {
  constructor(charts, doc, spec, data, names) {
    Object.assign(this, { charts, doc, spec, data, hosts: names.hosts, groups: names.groups, level: 0, fact: "use" });
    const prefix = charts.spec.prefix;
    this.prefix = prefix;
    this.model = (name) => doc.get_model_by_name(`${prefix}-${name}`);
    this.slider = byId(`${prefix}-room-at`);
    this.level = spec.levels.length - 1;
    byId(`${prefix}-room-level`).value = String(this.level);
    byId(`${prefix}-room-level`).addEventListener("change", (e) => { this.level = Number(e.target.value); this.draw(); });
    byId(`${prefix}-room-fact`).addEventListener("change", (e) => { this.fact = e.target.value; this.drawTime(); });
    this.slider.addEventListener("input", () => this.drawNodes());
    const play = byId(`${prefix}-room-play`);
    play.addEventListener("click", () => this.play(play));
    window.addEventListener("resize", () => this.drawNodes(true));
    this.draw();
  }
  get bin() { return Number(this.slider.value); }
  timeOf(bin) { return this.spec.from + (this.spec.until - this.spec.from) * bin / this.spec.bins; }
  textOf(x) {
    const s = this.charts.spec;
    return s.clock ? this.charts.dateOf(s.clock.origin + x * s.unit_seconds).replace("T", " ").slice(0, 16) : duration(x * s.unit_seconds);
  }
  draw() { this.drawTime(); this.drawNodes(true); }
  drawTime() {
    const { bins, from, until } = this.spec, groups = this.groups[this.level], values = this.data[`${this.fact}_${this.level}`];
    const cells = new Float32Array(groups.length * bins);
    for (let g = 0; g < groups.length; g++) for (let b = 0; b < bins; b++) {
      const value = values[g * bins + b];   // the first group is on top
      cells[(groups.length - 1 - g) * bins + b] = value === UNKNOWN ? NaN : value;
    }
    const { ndarray } = Bokeh.require("core/util/ndarray");
    const image = ndarray(cells.buffer, { dtype: "float32", shape: [groups.length, bins] });
    this.model("roomtime-rows").setv({ start: 0, end: groups.length });
    this.model("roomtime-image").data = { image: [image], x: [from], y: [0], dw: [until - from], dh: [groups.length] };
    const step = Math.ceil(groups.length / 20), axis = this.model("roomtime-names");
    const shown = groups.map((_, g) => g).filter((g) => g % step === 0);
    axis.axis_label = this.spec.levels[this.level];
    axis.major_label_overrides = new Map(shown.map((g) => [groups.length - g - 0.5, clip(groups[g], 12)]));
    axis.ticker.ticks = shown.map((g) => groups.length - g - 0.5);
  }
  // Columns of cells in a group, cells of a pixel size, and groups side by side, such that all is in view.
  layout(sizes) {
    const width = Math.max(200, byId(`${this.prefix}-room`).clientWidth - 70), most = Math.max(...sizes);
    const grid = this.spec.blocks, wide = grid ? most : Math.max(1, Math.ceil(Math.sqrt(most / 2)));
    const tall = Math.ceil(most / wide), gap = grid ? 0 : 2, step = grid ? wide : wide + 1;
    let cell = 24, beside = 1, rows = sizes.length;
    for (; cell > 2; cell--) {
      beside = Math.max(1, Math.min(sizes.length, Math.floor(width / (step * cell))));
      rows = Math.ceil(sizes.length / beside);
      if (rows * (tall + gap) * cell <= 480 && beside * step * cell <= width) break;
    }
    return { wide, tall, gap, step, beside, rows, cell, width };
  }
  drawNodes(anew = false) {
    if (anew || !this.places) this.place();
    const { bins, states } = this.spec, { x, y, group } = this.places, b = this.bin;
    const use = new Float32Array(x.length), told = [], state = [], marks = { x: [], y: [], mark: [], size: [] };
    for (let n = 0; n < x.length; n++) {
      const value = this.data.use[n * bins + b], code = this.data.state[n * bins + b];
      use[n] = value === UNKNOWN ? NaN : value;
      told.push(value === UNKNOWN ? "-" : `${value} %`);
      state.push(code ? states[code - 1][0] : "available");
      if (!code) continue;
      for (const [name, part] of [["x", x[n]], ["y", y[n]], ["mark", states[code - 1][1]], ["size", this.places.size]]) marks[name].push(part);
    }
    this.model("room-nodes").data = { x, y, use, host: this.hosts, group, told, state };
    this.model("room-marks").data = marks;
    const from = this.textOf(this.timeOf(b)), until = this.textOf(this.timeOf(b + 1));
    byId(`${this.prefix}-room-when`).textContent = `${from} to ${until}`;
    this.slider.setAttribute("aria-valuetext", `${from} to ${until}`);
    this.model("room-now").location = this.timeOf(b + 0.5);
  }
  place() {
    const groups = this.groups[this.level], of = this.data[`of_${this.level}`], members = groups.map(() => []);
    of.forEach((g, n) => { if (g !== NO_GROUP) members[g].push(n); });
    const { wide, tall, gap, step, beside, rows, cell, width } = this.layout(members.map((m) => m.length));
    const x = new Float32Array(of.length).fill(NaN), y = new Float32Array(of.length).fill(NaN), group = Array.from(of, (g) => groups[g] ?? "-");
    const labels = { x: [], y: [], text: [] };
    members.forEach((list, g) => {
      const left = (g % beside) * step, top = Math.floor(g / beside) * (tall + gap);
      list.forEach((n, i) => { x[n] = left + i % wide + 0.5; y[n] = top + gap + Math.floor(i / wide) + 0.5; });
      if (!gap) return;
      labels.x.push(left);
      labels.y.push(top + gap - 0.2);
      labels.text.push(clip(groups[g], Math.max(2, Math.floor((wide + 1) * cell / 7))));
    });
    this.model("room-x").setv({ start: 0, end: Math.max(beside * step, Math.floor(width / cell)) });
    this.model("room-y").setv({ start: rows * (tall + gap), end: 0 });
    this.model("room-chart").height = Math.max(120, rows * (tall + gap) * cell + 20);
    this.model("room-labels").data = labels;
    this.places = { x, y, group, size: Math.max(4, cell * 0.6) };
  }
  play(button) {
    const playing = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!playing));
    button.textContent = playing ? "Play" : "Stop";
    clearInterval(this.timer);
    if (playing) return;
    if (this.bin >= this.spec.bins - 1) this.slider.value = "0";
    this.timer = setInterval(() => {
      if (this.bin >= this.spec.bins - 1) return this.play(button);
      this.slider.value = String(this.bin + 1);
      this.drawNodes();
    }, 120);
  }
  // Downloads: per cent of each group and part of the time, and the nodes at the time of the slider.
  csvOfTime() {
    const { bins, levels } = this.spec, unit = this.charts.spec.unit_seconds, lines = ["level,group,from_s,until_s,use,unavailable,fragmentation"];
    const shown = (value) => value === UNKNOWN ? "" : value;
    levels.forEach((level, l) => this.groups[l].forEach((name, g) => {
      for (let b = 0; b < bins; b++) {
        const values = ["use", "out", "broken"].map((fact) => shown(this.data[`${fact}_${l}`][g * bins + b]));
        lines.push([quote(level), quote(name), Math.round(this.timeOf(b) * unit), Math.round(this.timeOf(b + 1) * unit), ...values].join(","));
      }
    }));
    return lines.join("\n") + "\n";
  }
  csvOfNodes() {
    const { host, group, told, state } = this.model("room-nodes").data, lines = ["host,group,use,state"];
    host.forEach((name, n) => lines.push([name, group[n], told[n], state[n]].map(quote).join(",")));
    return lines.join("\n") + "\n";
  }
}

const clip = (text, most) => text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text;
