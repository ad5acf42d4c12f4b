// SPDX-License-Identifier: Apache-2.0
"use strict";
// Ops by lane and links by load over time, on a canvas. A window chosen here is that of the machine.

const ROW = 13;
const AXIS = 20;
const STRIPS = 8;
const LABELS = 132;

function timelineSection(view) {
  const longest = Math.max(...view.runs.map((run) => run.time_us));
  const span = { from: 0, to: longest };  // what is seen, of all runs
  const hint = el("div", { class: "hint", "aria-live": "polite" },
    "Point at an op to read it. Drag to choose a time for the machine; Escape chooses all of it.");
  const charts = view.runs.map((run, number) => timeline(run, number, view, span, hint));
  const paint = () => {
    for (const chart of charts) chart.paint();
  };
  const zoom = (from, to) => {
    Object.assign(span, { from: Math.max(0, from), to: Math.min(longest, to) });
    paint();
  };
  const key = (kind, words) =>
    el("span", { class: "note" }, el("i", { class: "swatch kind-" + kind }), words || kind);
  const section = el("section", { class: "timelines" },
    el("h2", {}, view.runs.length > 1 ? "Timelines, side by side" : "Timeline"),
    el("div", { class: "controls" },
      el("button", { type: "button", onclick: () => {
        if (view.to !== null) zoom(view.from, view.to);
      } }, "zoom to the chosen time"),
      el("button", { type: "button", onclick: () => zoom(0, longest) }, "all of it"),
      key("copy"), key("combine"), key("compute"), key("critical", "critical path"),
      el("span", { class: "note" }, "strips above the lanes, as tall as it is high: load of the busiest links")),
    ...charts.map((chart) => chart.element), hint);
  section.start = () => {
    view.listeners.push(paint);
    repaints.push(paint);
    addEventListener("resize", paint);
    paint();
  };
  return section;
}

/// What an op does is told by its pattern as well: copies are plain, combines striped, computation
/// dotted, waits crossed out. Drawn once for all ops, as bars are a few pixels tall.
function patternOf(pen, kind) {
  const colour = style("--" + kind);
  if (kind === "copy") return colour;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const brush = tile.getContext("2d");
  brush.fillStyle = colour;
  brush.fillRect(0, 0, 6, 6);
  brush.fillStyle = brush.strokeStyle = style("--ink");
  brush.globalAlpha = 0.55;
  if (kind === "compute") {
    brush.fillRect(1, 1, 1.5, 1.5);
    brush.fillRect(4, 4, 1.5, 1.5);
  } else {
    brush.beginPath();
    // Beyond the tile, so that stripes go on in the next one.
    for (const shift of [-6, 0, 6]) {
      brush.moveTo(shift, 6);
      brush.lineTo(shift + 6, 0);
      if (kind === "wait") {
        brush.moveTo(shift, 0);
        brush.lineTo(shift + 6, 6);
      }
    }
    brush.stroke();
  }
  return pen.createPattern(tile, "repeat");
}

function timeline(run, number, view, span, hint) {
  const strips = (run.channels || []).filter((channel) => channel.load.length).slice(0, STRIPS);
  // Links above lanes, which are often more than a window shows.
  const lanes = AXIS + (strips.length ? strips.length * ROW + 6 : 0);
  const height = lanes + run.rows.length * ROW + 8;
  const canvas = el("canvas", { tabindex: 0, role: "img", "data-run": number,
    "aria-label": `timeline of ${run.name}; arrow keys move the chosen time, plus and minus zoom; a table has its ops` });
  const critical = new Set(run.critical.op);
  let drag = null;
  /// A window of this run, which the machine then shows if the run is on one.
  const choose = (change) =>
    view.set(run.machine !== null && number !== view.run ? { run: number, ...change } : change);
  /// Numbers of the channels that lie on the chosen link.
  const chosen = () => new Set(view.channel === null || number !== view.run ? []
    : run.channels.map((_, i) => i).filter((i) => linksOf(run.channels[i]).includes(view.channel)));
  const width = () => canvas.clientWidth || 600;
  const x = (us) => LABELS + ((us - span.from) / (span.to - span.from)) * (width() - LABELS - 8);
  const us = (at) => span.from + ((at - LABELS) / (width() - LABELS - 8)) * (span.to - span.from);

  function paint() {
    const ratio = devicePixelRatio || 1;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width() * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, width(), height);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const colours = {};
    const patterns = {};
    for (const kind of ["copy", "combine", "compute", "wait"]) {
      colours[kind] = style("--" + kind);
      patterns[kind] = patternOf(pen, kind);
    }
    axis(pen);
    pen.fillStyle = style("--soft");
    run.rows.forEach((row, i) => {
      if (run.rows.length <= 64 || i % 4 === 0) {
        pen.fillText(row.name, 4, lanes + i * ROW + ROW / 2, LABELS - 10);
      }
    });
    const marked = chosen();
    pen.save();
    pen.beginPath();
    pen.rect(LABELS, 0, width() - LABELS, height);
    pen.clip();
    run.rows.forEach((row, i) => {
      if (row.busy) occupancy(pen, row.busy, lanes + i * ROW);
    });
    const ops = run.ops;
    const outline = style("--critical");
    pen.strokeStyle = outline;
    for (let i = 0; i < ops.id.length; ++i) {
      const [left, right] = [x(ops.start_us[i]), x(ops.start_us[i] + ops.hold_us[i])];
      if (right < LABELS || left > width()) continue;
      const top = lanes + ops.row[i] * ROW + 1;
      const wide = Math.max(0.7, right - left - (right - left > 3 ? 0.5 : 0));
      pen.fillStyle = (wide < 5 ? colours : patterns)[ops.kind[i]];
      pen.globalAlpha = marked.size && !ops.channels[i].some((channel) => marked.has(channel)) ? 0.25 : 1;
      pen.fillRect(left, top, wide, ROW - 3);
      if (critical.has(ops.id[i])) {
        if (wide < 4) {
          pen.fillStyle = outline;
          pen.fillRect(left, top + ROW - 5, wide, 2);
        } else {
          pen.lineWidth = 1;
          pen.strokeRect(left + 0.5, top + 0.5, wide - 1, ROW - 4);
        }
      }
    }
    pen.globalAlpha = 1;
    strips.forEach((channel, i) => strip(pen, channel, AXIS + i * ROW));
    if (view.to !== null) {
      pen.fillStyle = style("--accent");
      pen.globalAlpha = 0.16;
      pen.fillRect(x(view.from), 0, Math.max(1.5, x(view.to) - x(view.from)), height);
      pen.globalAlpha = 1;
    }
    pen.restore();
    pen.fillStyle = style("--soft");
    strips.forEach((channel, i) =>
      pen.fillText(channel.name, 4, AXIS + i * ROW + ROW / 2, LABELS - 10));
  }
  function axis(pen) {
    const step = niceStep((span.to - span.from) / Math.max(2, Math.floor((width() - LABELS) / 110)));
    pen.strokeStyle = style("--line");
    pen.fillStyle = style("--soft");
    pen.lineWidth = 1;
    for (let at = Math.ceil(span.from / step) * step; at <= span.to; at += step) {
      pen.beginPath();
      pen.moveTo(x(at), AXIS - 4);
      pen.lineTo(x(at), height);
      pen.stroke();
      pen.fillText(time(at), Math.min(x(at) + 3, width() - 46), AXIS / 2 - 1);
    }
  }
  function strip(pen, channel, top) {
    const bins = channel.load.length;
    const each = run.time_us / bins;
    const first = Math.max(0, Math.floor(span.from / each));
    const last = Math.min(bins - 1, Math.ceil(span.to / each));
    const group = Math.max(1, Math.floor((last - first) / width()));
    for (let bin = first; bin <= last; bin += group) {
      let load = 0;
      for (let i = bin; i < Math.min(bins, bin + group); ++i) load = Math.max(load, loadAt(channel, i));
      if (load === 0) continue;
      pen.fillStyle = loadColour(load);
      const tall = 2 + load * (ROW - 4);
      pen.fillRect(x(bin * each), top + ROW - 2 - tall, x((bin + group) * each) - x(bin * each) + 0.4, tall);
    }
  }

  /// How busy a lane is with all of its ops, of which not every one is drawn.
  function occupancy(pen, busy, top) {
    const each = run.time_us / busy.length;
    pen.fillStyle = style("--soft");
    for (let bin = 0; bin < busy.length; ++bin) {
      const share = shareAt(busy, bin);
      const [left, right] = [x(bin * each), x((bin + 1) * each)];
      if (share === 0 || right < LABELS || left > width()) continue;
      pen.globalAlpha = 0.28 * share;
      pen.fillRect(left, top + 1, right - left, ROW - 3);
    }
    pen.globalAlpha = 1;
  }

  function opAt(event) {
    const box = canvas.getBoundingClientRect();
    const at = us(event.clientX - box.left);
    const row = Math.floor((event.clientY - box.top - lanes) / ROW);
    const slack = (span.to - span.from) / width();
    for (let i = run.ops.id.length - 1; i >= 0; --i) {
      if (run.ops.row[i] === row && run.ops.start_us[i] - slack <= at &&
          at <= run.ops.start_us[i] + run.ops.hold_us[i] + slack) {
        return i;
      }
    }
    return null;
  }
  function describe(i) {
    const ops = run.ops;
    const step = run.critical.op.indexOf(ops.id[i]);
    const over = ops.channels[i].map((channel) => run.channels[channel].name).slice(0, 6).join(", ");
    hint.replaceChildren(el("span", { class: "mono" }, ops.what[i]),
      ` \u2014 op ${ops.id[i]}, ${time(ops.start_us[i])} to ${time(ops.start_us[i] + ops.hold_us[i])}, takes ${time(ops.hold_us[i])}` +
      (ops.landing_us[i] ? `, lands ${time(ops.landing_us[i])} later` : "") +
      (over ? `; over ${over}` : "") +
      (step >= 0 ? `; on the critical path, waited for ${run.critical.waited_for[step]}` : ""));
  }
  canvas.addEventListener("pointerdown", (event) => {
    drag = us(event.clientX - canvas.getBoundingClientRect().left);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag === null) {
      const op = opAt(event);
      if (op !== null) describe(op);
      return;
    }
    const at = us(event.clientX - canvas.getBoundingClientRect().left);
    const [from, to] = [Math.max(0, Math.min(drag, at)), Math.min(run.time_us, Math.max(drag, at))];
    if (to - from > (span.to - span.from) / 400) choose({ from, to });
  });
  canvas.addEventListener("pointerup", (event) => {
    drag = null;
    const op = opAt(event);
    if (op !== null && run.ops.channels[op].length) {
      const links = linksOf(run.channels[run.ops.channels[op][0]]);
      if (links.length) choose({ channel: links[0] });
    }
  });
  canvas.addEventListener("keydown", (event) => {
    const seen = span.to - span.from;
    const window = view.to === null ? { from: span.from, to: span.from + seen / 50 } : view;
    if (event.key === "Escape") {
      view.set({ from: 0, to: null });
    } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const by = (window.to - window.from) * (event.key === "ArrowRight" ? 1 : -1);
      const from = Math.max(0, Math.min(run.time_us - (window.to - window.from), window.from + (view.to === null ? 0 : by)));
      choose({ from, to: from + window.to - window.from });
    } else if (event.key === "+" || event.key === "-") {
      const middle = view.to === null ? (span.from + span.to) / 2 : (view.from + view.to) / 2;
      const half = (seen / 2) * (event.key === "+" ? 0.5 : 2);
      Object.assign(span, { from: Math.max(0, middle - half), to: Math.min(run.time_us, middle + half) });
      view.set({});
    } else {
      return;
    }
    event.preventDefault();
  });

  const notes = [];
  const [fewLanes, fewOps] = [run.rows_in_all > run.rows.length, run.ops_in_rows > run.ops.id.length];
  if (fewLanes) notes.push(`${run.rows.length} of ${run.rows_in_all} lanes, those of the critical path and the busiest`);
  if (fewOps) {
    const around = run.counted_in ? ` of what comes before and after ${run.counted_in}` : "";
    notes.push(`${run.ops.id.length} of their ${run.ops_in_rows} ops, those of the critical path and the longest${around}; ` +
      "grey beneath them is how busy each lane is with all of its ops");
  } else if (fewLanes) {
    notes.push(`all of their ${run.ops_in_rows} ops`);
  }
  if (run.folded) notes.push("the ops of one group of ranks, as the others behave alike");
  const scrolls = el("p", { class: "note on-screen", hidden: true }, "It is higher than this window: scroll it for the other lanes.");
  const frame = el("div", { class: "timeline" }, canvas);
  new ResizeObserver(() => {
    scrolls.hidden = frame.scrollHeight <= frame.clientHeight + 1;
  }).observe(canvas);
  const element = el("figure", {},
    el("figcaption", {}, `${run.name}: ${time(run.time_us)}${notes.length ? "; shown are " + notes.join(", ") : ""}`),
    frame, scrolls,
    tableBehind(`Ops of ${run.name} as a table`, [
      ["op", (i) => String(run.ops.id[i]), true], ["lane", (i) => run.rows[run.ops.row[i]].name],
      ["start", (i) => time(run.ops.start_us[i]), true], ["takes", (i) => time(run.ops.hold_us[i]), true],
      ["what", (i) => run.ops.what[i]],
      ["critical", (i) => (critical.has(run.ops.id[i]) ? "yes" : "")],
    ], () => run.ops.id.map((_, i) => i)),
    run.critical.op.length ? tableBehind(`Critical path of ${run.name}, ${run.critical.op.length < run.critical.steps ? `the last ${run.critical.op.length} of ` : ""}${run.critical.steps} steps`, [
      ["op", (i) => String(run.critical.op[i]), true],
      ["start", (i) => time(run.critical.start_us[i]), true],
      ["end", (i) => time(run.critical.end_us[i]), true],
      ["what", (i) => run.critical.what[i]], ["waited for", (i) => run.critical.waited_for[i]],
    ], () => run.critical.op.map((_, i) => i)) : null);
  return { element, paint };
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= rough);
}
