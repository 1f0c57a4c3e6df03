// ---- the wait of one job ------------------------------------------------------------------------------------
// The causes of each wait are in the packed columns, as wait_causes.py finds them.
class JobWaits {
  constructor(charts, spec, data) {
    Object.assign(this, { charts, spec, data, prefix: charts.spec.prefix });
    byId(`${this.prefix}-ask`).addEventListener("submit", (event) => {
      event.preventDefault();
      this.show(byId(`${this.prefix}-id`).value.trim());
    });
    const boxes = charts.model("boxes");
    boxes.selected.properties.indices.change.connect(() => {
      const chosen = boxes.selected.indices[0];
      if (chosen !== undefined) this.show(boxes.data.id[chosen]);
    });
  }
  rowOf(id) {
    const s = this.charts.spec, count = this.charts.jobs.submit.length;
    if (!s.ids_count) return this.charts.ids.lastIndexOf(id);
    const row = /^\d+$/.test(id) ? Number(id) - s.ids_first : -1;
    return row < count ? row : -1;
  }
  // Periods [from, until, cause] in ticks, without gaps, from submission to the end of the wait.
  periods(job) {
    const submit = this.charts.jobs.submit[job], found = [];
    let from = submit;
    for (let at = this.data.first[job]; at < this.data.first[job + 1]; at++) {
      const until = submit + this.data.until[at];
      found.push([from, until, this.spec.causes[this.data.cause[at]][0]]);
      from = until;
    }
    return found;
  }
  // Ticks of each cause, the longest first.
  byCause(periods) {
    const sums = new Map();
    for (const [from, until, cause] of periods) sums.set(cause, (sums.get(cause) ?? 0) + until - from);
    return [...sums].sort((a, b) => b[1] - a[1]);
  }
  // Jobs that held most of each short type while it was short: [row, type, units, ticks, until].
  holders(periods) {
    const { submit } = this.charts.jobs, found = [];
    for (const [type, cause] of this.spec.types) {
      const short = periods.filter((p) => p[2] === cause), units = this.charts.jobs[`${type}s`];
      if (!short.length || !units) continue;
      const first = short[0][0], last = short.at(-1)[1];
      for (let row = 0; row < submit.length; row++) {
        if (!this.data.run[row] || !units[row]) continue;
        const start = submit[row] + this.data.wait[row], end = start + this.data.run[row];
        if (start >= last || end <= first) continue;
        let held = 0;
        for (const [from, until] of short) held += Math.max(0, Math.min(end, until) - Math.max(start, from));
        if (held) found.push([row, type, units[row], held, start, end]);
      }
    }
    return found.sort((a, b) => b[2] * b[3] - a[2] * a[3]).slice(0, 5);
  }
  show(id) {
    const job = this.rowOf(id), answer = byId(`${this.prefix}-answer`), ask = byId(`${this.prefix}-id`);
    ask.value = id;
    if (job < 0) return answer.replaceChildren(element("p", { class: "sorry" }, `The run has no job ${id}.`));
    const parts = [element("h3", {}, `Job ${id}`), element("p", {}, this.facts(job))];
    if (this.data.wait[job] === NEVER) parts.push(element("p", {}, "It was never queued: it was rejected or can never run."));
    else if (this.data.wait[job] === 0) parts.push(element("p", {}, "It started at once."));
    else parts.push(this.timeline(job));
    const quoted = /^[\w.@%+=:,/-]+$/.test(id) ? id : `'${id.replaceAll("'", "'\"'\"'")}'`;
    if (this.spec.command) parts.push(element("p", { class: "note" },
      "The jobs, limits and reservations in the way, and changes that would have helped: ", element("code", {}, `${this.spec.command} ${quoted}`)));
    answer.replaceChildren(...parts);
  }
  at(t) {
    const s = this.charts.spec;
    return s.clock ? this.charts.dateOf(s.clock.origin + t * s.tick).replace("T", " ") : duration(t * s.tick);
  }
  facts(job) {
    const since = this.charts.spec.clock ? "" : " Times count from the first submission.";
    const { jobs, spec: s } = this.charts, submit = jobs.submit[job], wait = this.data.wait[job], run = this.data.run[job];
    const user = s.users[jobs.user[job]], queue = s.queues[jobs.queue[job]], number = (n, unit) => `${n.toLocaleString("en")} ${unit}${n === 1 ? "" : "s"}`;
    const held = jobs.nodes[job] || jobs.cores[job] ? `${number(jobs.nodes[job], "node")}, ${number(jobs.cores[job], "core")}` : "";
    const head = [user && `user ${user}`, queue && `queue ${queue}`, held, s.results[jobs.result[job]].toLowerCase()].filter(Boolean).join(" · ");
    if (wait === NEVER) return `${head}. Submitted at ${this.at(submit)}.${since}`;
    const rest = run ? `started at ${this.at(submit + wait)}, waited ${duration(wait * s.tick)}${run === NEVER ? "" : `, ran ${duration(run * s.tick)}`}`
      : `never started, waited ${duration(wait * s.tick)}`;
    return `${head}. Submitted at ${this.at(submit)}, ${rest}.${since}`;
  }
  timeline(job) {
    const periods = this.periods(job), submit = this.charts.jobs.submit[job], wait = this.data.wait[job], tick = this.charts.spec.tick;
    const colour = new Map(this.spec.causes);
    const bar = (spans, hex) => element("td", { class: "track" }, element("div", {}, ...spans.map(([from, until]) => element("i", {
      style: `left:${100 * (from - submit) / wait}%;width:${Math.max(100 * (until - from) / wait, 0.15)}%;background:${hex}` }))));
    const rows = this.byCause(periods).map(([cause, length]) => element("tr", {},
      element("th", { scope: "row" }, cause), bar(periods.filter((p) => p[2] === cause), colour.get(cause)),
      element("td", {}, duration(length * tick)), element("td", {}, `${(100 * length / wait).toPrecision(3)} %`)));
    for (const [row, type, units, held, start, end] of this.holders(periods)) {
      const name = this.charts.idOf(row), link = element("a", { href: `#${this.prefix}-job=${encodeURIComponent(name)}` }, `job ${name}`);
      rows.push(element("tr", {}, element("th", { scope: "row" }, "held: ", `${units.toLocaleString("en")} ${type}${units === 1 ? "" : "s"} by `, link),
        bar([[Math.max(start, submit), Math.min(end, submit + wait)]], "var(--muted)"), element("td", {}, duration(held * tick)), element("td", {}, "")));
    }
    const heads = ["cause", `from ${this.at(submit)} to ${this.at(submit + wait)}`, "time", "share"];
    return element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Causes of the wait" }, element("table", { class: "wait" },
      element("thead", {}, element("tr", {}, ...heads.map((head, i) => element("th", { scope: "col", ...(i < 2 ? { class: "text" } : {}) }, head)))),
      element("tbody", {}, ...rows)));
  }
}

function element(name, attributes, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

// A time in its two largest units, as simsched/human.py writes it.
function duration(seconds) {
  if (seconds < 59.95) return `${Number(seconds.toPrecision(3))} s`;
  const rest = Math.round(seconds), steps = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = steps.findIndex(([length]) => rest >= length), [length, unit] = steps[at];
  const whole = Math.floor(rest / length), part = at < 3 ? Math.floor(rest % length / steps[at + 1][0]) : 0;
  return `${whole} ${unit}` + (part && whole < 1000 ? ` ${part} ${steps[at + 1][1]}` : "");
}
