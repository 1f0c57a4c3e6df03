// ---- start ------------------------------------------------------------------------------------------------
function listen(charts, spec) {
  const section = byId(`run-${spec.prefix}`);
  section.querySelectorAll("[data-move]").forEach((button) => button.addEventListener("click", () => act(charts, button.dataset.move)));
  section.querySelectorAll("[data-keys]").forEach((place) => place.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", 0: "all" }[event.key];
    if (move && event.target === place) { event.preventDefault(); act(charts, move); }
  }));
  byId(`${spec.prefix}-colour`)?.addEventListener("change", (event) => { charts.colourBy = event.target.value; charts.later(); });
}

function act(charts, move) {
  if (move === "all") charts.reset();
  else charts.move(...{ in: [0.5, 0], out: [2, 0], left: [1, -0.4], right: [1, 0.4] }[move]);
}

// A vertical swipe scrolls the page, even on a chart; a horizontal swipe moves the chart.
function letScroll(node) {
  for (const element of node.querySelectorAll("*")) {
    if (element.classList.contains("bk-events")) element.style.touchAction = "pan-y pinch-zoom";
    if (element.shadowRoot) letScroll(element.shadowRoot);
  }
}

// Links to the wait of a job: #r0-job=4711.
const asked = new Map();
function showAsked() {
  const [place, id] = decodeURIComponent(location.hash.slice(1)).split(/=(.*)/s);
  if (id === undefined || !asked.has(place)) return;
  asked.get(place).show(id);
  byId(place).scrollIntoView({ block: "start" });
  byId(place).focus({ preventScroll: true });
}
window.addEventListener("hashchange", showAsked);

async function start(item) {
  const docid = crypto.randomUUID ? crypto.randomUUID() : String(Math.random());
  const roots = Object.fromEntries(Object.entries(item.places).map(([place, model]) => [model, place]));
  await Bokeh.embed.embed_items({ [docid]: item.doc }, [{ docid, roots, root_ids: Object.keys(roots) }]);
  const doc = Bokeh.documents.at(-1);
  documents.push({ doc, styled: item.styled });
  restyle(documents.slice(-1));
  Object.keys(item.places).forEach((place) => letScroll(byId(place)));
  const spec = item.time;
  let charts = null;
  if (spec) {
    const names = ["jobs", "results", "boxes", "line", "ids"];
    const [jobs, results, boxes, line, ids] = await Promise.all(names.map((name) => unpack(spec.islands[name])));
    charts = new TimeCharts(doc, spec, { ...jobs, ...results }, boxes, line, JSON.parse(new TextDecoder().decode(ids.text)));
    listen(charts, spec);
    if (spec.waits) {
      charts.waits = new JobWaits(charts, spec.waits, await unpack(spec.waits.data));
      asked.set(`${spec.prefix}-job`, charts.waits);
      showAsked();
    }
    if (spec.room) {
      const [states, text] = await Promise.all([unpack(spec.room.data), unpack(spec.room.names)]);
      charts.room = new RoomCharts(charts, doc, spec.room, states, JSON.parse(new TextDecoder().decode(text.text)));
    }
  }
  downloads(doc, item, charts);
  window.simsched.order.push(item.title);
  window.simsched.ready += 1;
}

function downloads(doc, item, charts) {
  for (const [place, model] of Object.entries(item.places)) {
    const button = document.querySelector(`[data-save="${place}"]`);
    const kind = place.split("-").at(-1);
    button?.addEventListener("click", () => {
      if (charts && kind === "gantt") return save(`${place}.csv`, charts.csvOfBoxes());
      if (charts && (kind === "use" || kind === "queue")) return save(`${place}.csv`, charts.csvOfLine());
      if (charts?.room && kind === "roomtime") return save(`${place}.csv`, charts.room.csvOfTime());
      if (charts?.room && kind === "room") return save(`${place}.csv`, charts.room.csvOfNodes());
      save(`${place}.csv`, csvOfChart(doc.get_model_by_id(model)));
    });
  }
}

function csvOfChart(chart) {
  const lines = [];
  for (const drawn of chart.renderers) {
    const data = drawn.data_source.data, names = Object.keys(data);
    if (!lines.length) lines.push(["series", ...names].join(","));
    const columns = names.map((n) => Array.from(data[n]));
    for (let i = 0; i < columns[0].length; i++) lines.push([quote(drawn.name ?? ""), ...columns.map((c) => quote(c[i]))].join(","));
  }
  return lines.join("\n") + "\n";
}

async function begin() {
  themes();
  document.querySelectorAll("table").forEach(sortable);
  document.querySelectorAll("[data-save-table]").forEach((button) => button.addEventListener("click", () =>
    save(`${button.dataset.saveTable}.csv`, csvOfTable(byId(button.dataset.saveTable)))));
  if (location.hash) byId(location.hash.slice(1).split("=")[0])?.scrollIntoView({ behavior: "instant" });   // the browser does it later
  await drawAll();
  window.simsched.done = performance.now();
}

// Charts in view are drawn first; the browser may answer its user between any two.
async function drawAll() {
  const left = [...PAGE.charts];
  while (left.length) {
    if (left.every((item) => distance(item) > window.innerHeight)) window.simsched.shown ??= performance.now();
    await new Promise((next) => setTimeout(next, 0));
    const far = left.map(distance), item = left.splice(far.indexOf(Math.min(...far)), 1)[0];
    try { await start(item); } catch (error) {
      window.simsched.errors.push(String(error));
      console.error(error);
      for (const place of Object.keys(item.places)) byId(place).innerHTML = '<p class="sorry">This chart could not be drawn by this browser.</p>';
    }
  }
  window.simsched.shown ??= performance.now();
}

// The pixels of scrolling that bring the nearest chart into view.
function distance(item) {
  return Math.min(...Object.keys(item.places).map((place) => {
    const { top, bottom } = byId(place).getBoundingClientRect();
    return Math.max(top - window.innerHeight, -bottom, 0);
  }));
}
begin();
