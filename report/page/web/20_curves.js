// SPDX-License-Identifier: Apache-2.0
"use strict";
// Time and bus bandwidth over size. uPlot draws where the build has it, and else plain SVG.

const hasUplot = () => typeof uPlot === "function";

/// Sizes of all curves, and by curve the point for each, or null. A size of 0 has no place on a
/// logarithmic axis, unless there is no other.
function aligned(chart) {
  let sizes = [...new Set(chart.curves.flatMap((curve) => curve.points.map((p) => p.size)))];
  sizes.sort((a, b) => a - b);
  if (sizes.length > 1) sizes = sizes.filter((size) => size > 0);
  const points = chart.curves.map((curve) => {
    const known = new Map(curve.points.map((point) => [point.size, point]));
    return sizes.map((size) => known.get(size) || null);
  });
  return { sizes, points };
}

function strokeOfCurve(curve, index, chart) {
  if (curve.kind === "bound") {
    const others = chart.curves.filter((one) => one.kind === "bound").indexOf(curve);
    return { colour: style("--ink"), dash: [3, 3 + 4 * others], width: 1.2 };
  }
  if (curve.kind === "nccl") return { colour: style("--soft"), dash: [10, 4], width: 2 };
  if (curve.kind === "measured") {  // in the colour of what is predicted for it
    const name = curve.name.replace(/(, in place)?, measured$/, "");
    const same = chart.curves.findIndex((one) => one.kind === "predicted" && one.name === name);
    if (same >= 0) return { ...strokeOf(same), dash: [2, 3], width: 2.2 };
  }
  return { ...strokeOf(index), width: curve.kind === "candidate" ? 1.1 : 1.8 };
}

/// Of many candidates those are drawn at first that are the fastest of them somewhere.
function drawnAtFirst(chart, points, sizes) {
  const candidates = chart.curves.map((curve, i) => i).filter((i) => chart.curves[i].kind === "candidate");
  const first = new Set(candidates.length <= 6 ? candidates : []);
  sizes.forEach((_, at) => {
    const there = candidates.filter((i) => points[i][at]);
    there.sort((a, b) => points[a][at].time_us - points[b][at].time_us);
    if (there.length) first.add(there[0]);
  });
  return chart.curves.map((curve, i) => curve.kind !== "candidate" || first.has(i));
}

/// Which curves show the bands of their expected errors: of many, what is fastest with the largest
/// message, and NCCL; and all that was measured.
function bandedOf(chart, points, sizes) {
  const all = chart.curves.map((_, i) => i);
  const hasBand = (i) => points[i].some((p) => p && (p.error || p.max_us));
  if (chart.curves.length < 9) return all.map(hasBand);
  const asked = all.filter((i) => chart.curves[i].kind === "predicted" && points[i][sizes.length - 1]);
  const timeOf = (i) => points[i][sizes.length - 1].time_us;
  const best = asked.sort((a, b) => timeOf(a) - timeOf(b))[0];
  return all.map((i) => hasBand(i) && (i === best || ["nccl", "measured"].includes(chart.curves[i].kind) ||
    chart.curves[i].name === "nccl"));
}

/// Of what takes no time there is none to speak of.
const busbw = (chart, point) =>
  (point.time_us > 0 ? (chart.busbw_factor * point.size) / point.time_us / 1e3 : 0);

/// What a figure of the pair shows of a point: the value, and the band of its expected error.
function bandOf(value, point) {
  const low = point.min_us ? point.min_us : point.time_us / (1 + (point.error || 0));
  const high = point.max_us ? point.max_us : point.time_us * (1 + (point.error || 0));
  const ends = [low, high].map((us) => value({ ...point, time_us: us }));
  return [Math.min(...ends), Math.max(...ends)];
}

function curvesSection(chart) {
  const { sizes, points } = aligned(chart);
  const shown = drawnAtFirst(chart, points, sizes);
  const banded = bandedOf(chart, points, sizes);
  const hasZero = sizes[0] > 0 && chart.curves.some((curve) => curve.points.some((p) => p.size === 0));
  const figures = [];
  const readout = el("div", { class: "readout", "aria-live": "polite", tabindex: 0 });
  let pinned = false;

  function read(index) {
    const rows = chart.curves.map((curve, i) => ({ curve, point: points[i][index] }))
      .filter((row, i) => row.point && shown[i])
      .sort((a, b) => a.point.time_us - b.point.time_us);
    refill(readout,
      el("h3", {}, bytes(sizes[index])),
      table([
        ["", (row) => el("span", {}, row.curve.name,
          row.point.chosen ? el("span", { class: "note" }, ` ${row.point.chosen}`) : null), "name"],
        ["time", (row) => time(row.point.time_us), true],
        ["busbw", (row) => gbps(busbw(chart, row.point)), true],
        ["bench", (row) => (row.point.bench_us ? time(row.point.bench_us) : ""), true],
        ["\u00b1", (row) => (row.point.error ? percent(row.point.error) : ""), true],
        ["of the bound", (row) => (row.point.fraction ? percent(row.point.fraction) : ""), true],
        ["vs NCCL", (row) => (row.point.speedup ? digits(row.point.speedup) + "x" : ""), true],
        ["command", (row) => (row.point.command ? el("code", {}, row.point.command) : ""), "wide"],
      ], rows.slice(0, 12)),
      rows.length > 12 ? el("p", { class: "note" }, `and ${rows.length - 12} more in the table`) : null);
  }
  const hover = (index) => {
    if (!pinned && index !== null && index !== undefined) read(index);
  };
  const pin = () => {
    pinned = !pinned;
    for (const figure of figures) figure.element.classList.toggle("pinned", pinned);
  };

  let logBandwidth = false;
  const specs = [
    { title: "Time of a call", unit: time, value: (p) => p.time_us, log: () => true },
    { title: "Bus bandwidth, GB/s", unit: (v) => digits(v), value: (p) => busbw(chart, p), mostFirst: true,
      log: () => logBandwidth },
  ];
  const draw = () => {
    for (const figure of figures) figure.draw();
  };
  for (const spec of specs) {
    const plot = el("div", { class: "plot", role: "img",
      "aria-label": `${spec.title} over size; the table has all figures` });
    const element = el("figure", { class: "chart" }, el("figcaption", {}, spec.title), plot);
    const lines = () => chart.curves.map((curve, i) => ({
      name: curve.name, ...strokeOfCurve(curve, i, chart), shown: shown[i],
      values: points[i].map((p) => (p && (spec.value(p) > 0 || !spec.log()) ? spec.value(p) : null)),
      bands: points[i].map((p) => (banded[i] && p && (p.error || p.max_us) ? bandOf(spec.value, p) : null)),
    }));
    figures.push({ element, draw: () => {
      const width = Math.max(260, element.clientWidth || 500);
      const given = { sizes, lines: lines(), unit: spec.unit, log: spec.log(), mostFirst: spec.mostFirst, width,
        height: 310 };
      plot.replaceChildren();
      if (sizes.length === 1) drawAsBars(plot, given);
      else (hasUplot() ? drawWithUplot : drawAsSvg)(plot, given, hover, pin);
    } });
  }

  const entries = chart.curves.map((curve, i) => {
      const { colour, dash, width } = strokeOfCurve(curve, i, chart);
      return el("button", { type: "button", "aria-pressed": String(shown[i]), onclick: (event) => {
        shown[i] = !shown[i];
        event.currentTarget.setAttribute("aria-pressed", shown[i]);
        draw();
      } }, svg("svg", { width: 26, height: 8, "aria-hidden": true },
        svg("line", { x1: 0, y1: 4, x2: 26, y2: 4, stroke: curve.kind === "bound" ? "currentColor" : colour, "stroke-width": width + 0.4,
          "stroke-dasharray": dash.join(" ") })), curve.name);
    });
  // Candidates that are not drawn at first are many, and their names are long.
  const others = entries.filter((_, i) => !shown[i]);
  const legend = el("div", { class: "legend", role: "group", "aria-label": "curves" },
    ...entries.filter((_, i) => shown[i]),
    others.length ? el("details", {}, el("summary", {}, `${others.length} other candidates, to be drawn as well`), ...others) : null);
  const slider = el("input", { type: "range", min: 0, max: sizes.length - 1, value: 0,
    "aria-label": "size", oninput: (event) => read(Number(event.target.value)) });
  const rows = () => chart.curves.flatMap((curve) => curve.points.map((point) => ({ curve, point })));
  const section = el("section", { class: "curves", "data-series": chart.curves.length },
    el("h2", {}, chart.title),
    el("div", { class: "pair" }, ...figures.map((figure) => figure.element)),
    legend,
    sizes.length === 1 ? null : el("div", { class: "controls" },
      el("label", {}, "size", slider),
      el("label", {}, el("input", { type: "checkbox", onchange: (event) => {
        logBandwidth = event.target.checked;
        draw();
      } }), "bandwidth on a logarithmic axis"),
      el("span", { class: "note on-screen" }, "Point at a size to read it; a click holds it."),
      !banded.includes(true) ? null : el("span", { class: "note bands" }, "Bands: the expected error, or the fastest and slowest run" +
        (banded.filter(Boolean).length < points.filter((line) => line.some((p) => p && (p.error || p.max_us))).length
          ? ", of the fastest and of NCCL; the table has those of all." : "."))),
    hasZero ? el("p", { class: "note" }, "A message of 0 bytes has no place on a logarithmic axis: it is in the table.") : null,
    readout,
    tableBehind("All figures as a table", [
      ["curve", (row) => row.curve.name],
      ["size", (row) => bytes(row.point.size), true],
      ["bytes", (row) => String(row.point.size), true],
      ["time", (row) => time(row.point.time_us), true],
      ["busbw", (row) => gbps(busbw(chart, row.point)), true],
      ["\u00b1", (row) => (row.point.error ? percent(row.point.error) : ""), true],
      ["of the bound", (row) => (row.point.fraction ? percent(row.point.fraction) : ""), true],
      ["vs NCCL", (row) => (row.point.speedup ? digits(row.point.speedup) + "x" : ""), true],
      ["chosen", (row) => row.point.chosen],
      ["command", (row) => (row.point.command ? el("code", {}, row.point.command) : "")],
    ], rows));
  section.start = () => {
    draw();
    read(sizes.length - 1);
    slider.value = sizes.length - 1;
    repaints.push(draw);
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      draw();
    });
  };
  return section;
}

/// Of a single size there are no curves.
function drawAsBars(plot, given) {
  const lines = given.lines.filter((line) => line.shown && line.values[0] !== null)
    .sort((a, b) => (given.mostFirst ? -1 : 1) * (a.values[0] - b.values[0]));
  const [left, row] = [Math.min(190, given.width * 0.4), 24];
  const most = Math.max(...lines.map((line) => Math.max(line.values[0], line.bands[0] ? line.bands[0][1] : 0)));
  const x = (value) => left + (most > 0 ? value / most : 0) * (given.width - left - 70);
  const root = svg("svg", { width: given.width, height: lines.length * row + 8, role: "img",
    "aria-label": "bars; the table has all figures" });
  lines.forEach((line, i) => {
    const y = i * row + row / 2 + 4;
    const name = line.name.length > 27 ? line.name.slice(0, 26) + "\u2026" : line.name;
    root.append(svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, name, svg("title", {}, line.name)),
      svg("rect", { x: left, y: y - 7, width: Math.max(1, x(line.values[0]) - left), height: 14,
        fill: line.colour, "fill-opacity": 0.75 }));
    let end = x(line.values[0]);
    if (line.bands[0]) {
      const [from, to] = line.bands[0].map(x);
      root.append(svg("line", { x1: from, x2: to, y1: y, y2: y, stroke: style("--ink"), "stroke-width": 1 }));
      end = Math.max(end, to);
    }
    root.append(svg("text", { x: end + 6, y: y + 4 }, given.unit(line.values[0])));
  });
  plot.append(root);
}

/// Ticks of a logarithmic axis.
function decades(u, axis, low, high) {
  const ticks = [];
  for (let at = Math.ceil(Math.log10(low) - 1e-9); at <= Math.log10(high) + 1e-9; ++at) ticks.push(10 ** at);
  return ticks;
}

function drawWithUplot(plot, given, hover, pin) {
  const data = [given.sizes];
  const series = [{ label: "size" }];
  const bands = [];
  for (const line of given.lines) {
    const has = line.bands.some((band) => band);
    series.push({ label: "", show: line.shown, stroke: line.colour, width: line.width,
      dash: line.dash, spanGaps: true, points: { show: true, size: 5, fill: line.colour } });
    data.push(line.values);
    if (!has) continue;
    for (const end of [1, 0]) {
      series.push({ label: "", show: line.shown, width: 0, points: { show: false }, spanGaps: true });
      data.push(line.bands.map((band) => (band ? band[end] : null)));
    }
    const last = series.length - 1;
    bands.push({ series: [last - 1, last], fill: line.colour + "22" });
  }
  const axis = { stroke: style("--soft"), grid: { stroke: style("--line"), width: 1 },
    ticks: { stroke: style("--line"), width: 1 }, font: "11px system-ui, sans-serif" };
  const single = given.sizes.length === 1;
  const chart = new uPlot({
    width: given.width, height: given.height, padding: [null, 24, null, null], legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 8 } },
    scales: {
      x: { time: false, distr: 3, log: 2,
        range: single ? [given.sizes[0] / 2, given.sizes[0] * 2] : undefined },
      y: given.log ? { distr: 3 } : { range: (u, low, high) => [0, (high || 1) * 1.08] },
    },
    axes: [
      { ...axis, space: 55, values: (u, splits) => splits.map((v) => (v && v >= 1 ? bytes(v) : "")) },
      { ...axis, size: 62, splits: given.log ? decades : undefined, values: (u, splits) => splits.map((v) => (v ? given.unit(v) : v)) },
    ],
    series, bands,
    hooks: { setCursor: [(u) => hover(u.cursor.idx)] },
  }, data, plot);
  chart.over.addEventListener("click", pin);
}

function drawAsSvg(plot, given, hover, pin) {
  const [left, right, top, bottom] = [62, 10, 10, 26];
  const [width, height] = [given.width, given.height];
  const x0 = Math.log2(Math.max(1, given.sizes[0])) - (given.sizes.length === 1 ? 1 : 0);
  const x1 = Math.log2(Math.max(1, given.sizes[given.sizes.length - 1])) +
    (given.sizes.length === 1 ? 1 : 0);
  const x = (size) =>
    left + ((Math.log2(Math.max(1, size)) - x0) / (x1 - x0 || 1)) * (width - left - right);
  const values = given.lines.filter((line) => line.shown)
    .flatMap((line) => line.values).filter((v) => v > 0);
  const low = given.log ? Math.log10(Math.min(...values)) : 0;
  const high = given.log ? Math.log10(Math.max(...values)) : Math.max(...values) * 1.08;
  const y = (value) => height - bottom -
    (((given.log ? Math.log10(value) : value) - low) / (high - low || 1)) * (height - top - bottom);
  const root = svg("svg", { width, height, role: "img", "aria-label": "curves; the table has all figures" });
  const ticks = given.log
    ? Array.from({ length: Math.max(1, Math.floor(high) - Math.ceil(low) + 1) },
      (_, i) => 10 ** (Math.ceil(low) + i))
    : Array.from({ length: Math.floor(high / niceStep(high / 5)) + 1 }, (_, i) => niceStep(high / 5) * i);
  for (const tick of ticks) {
    root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
      svg("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, given.unit(tick)));
  }
  const every = Math.ceil(given.sizes.length / Math.max(2, Math.floor(width / 75)));
  given.sizes.forEach((size, i) => {
    if (i % every) return;
    const isLast = width - x(size) < 22;
    root.append(svg("text", { x: isLast ? width - 2 : x(size), y: height - 8, "text-anchor": isLast ? "end" : "middle" },
      bytes(size)));
  });
  for (const line of given.lines) {
    if (!line.shown) continue;
    const at = (pick) => given.sizes.map((size, i) => [size, pick(i)]).filter(([, v]) => v > 0)
      .map(([size, v]) => `${x(size).toFixed(1)},${y(v).toFixed(1)}`);
    const ends = [...at((i) => line.bands[i] && line.bands[i][1]),
      ...at((i) => line.bands[i] && line.bands[i][0]).reverse()];
    if (ends.length > 2) {
      root.append(svg("polygon", { class: "band", points: ends.join(" "), fill: line.colour, "fill-opacity": 0.13 }));
    }
    root.append(svg("polyline", { points: at((i) => line.values[i]).join(" "), fill: "none",
      stroke: line.colour, "stroke-width": line.width, "stroke-dasharray": line.dash.join(" ") }));
    given.sizes.forEach((size, i) => {
      if (line.values[i] > 0) {
        root.append(svg("circle", { cx: x(size), cy: y(line.values[i]), r: 2.5, fill: line.colour }));
      }
    });
  }
  root.addEventListener("mousemove", (event) => {
    const at = event.clientX - root.getBoundingClientRect().left;
    let best = 0;
    given.sizes.forEach((size, i) => {
      if (Math.abs(x(size) - at) < Math.abs(x(given.sizes[best]) - at)) best = i;
    });
    hover(best);
  });
  root.addEventListener("click", pin);
  plot.append(root);
}
