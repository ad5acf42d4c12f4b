// SPDX-License-Identifier: Apache-2.0
"use strict";
// The machine, its links coloured and drawn as thick as their load in the window of time that the
// slider or the timeline chose.

const MAX_WIDTH = 6.5;

/// What machine and timeline of a page look at together: a run and a window of its time.
class View {
  constructor(runs) {
    this.runs = runs;
    this.run = 0;
    this.from = 0;
    this.to = null;
    this.channel = null;
    this.listeners = [];
  }
  get current() { return this.runs[this.run]; }
  set(change) {
    // A link that was chosen is one of its machine.
    if ("run" in change && this.runs[change.run].machine !== this.current.machine) this.channel = null;
    Object.assign(this, change);
    for (const listener of this.listeners) listener(change);
  }
}

/// Loads are one character a bin: U+0100 is idle, U+01C8 the full capacity.
const shareAt = (shares, bin) => (shares.charCodeAt(bin) - 0x100) / 200;
const loadAt = (channel, bin) => shareAt(channel.load, bin);

/// The mean over a window, or over the whole run, which is known exactly.
function loadOf(run, channel, from, to) {
  if (to === null || !channel.load.length) return channel.utilization;
  if (from >= run.time_us) return 0;
  const bins = channel.load.length;
  const first = Math.max(0, Math.min(bins - 1, Math.floor((from / run.time_us) * bins)));
  const last = Math.max(first, Math.min(bins - 1, Math.ceil((to / run.time_us) * bins) - 1));
  let sum = 0;
  for (let bin = first; bin <= last; ++bin) sum += loadAt(channel, bin);
  return sum / (last - first + 1);
}

const linksOf = (channel) => [...channel.forward, ...channel.backward];

function machineSection(data, view, hasTime) {
  let drawing = null;
  let machine = null;
  const details = el("div", { class: "panel", "aria-live": "polite" });
  const scrolls = el("p", { class: "note on-screen" }, "It is wider than the window: scroll it sideways for the rest.");
  const figure = el("figure");
  const side = el("div", { class: "side" }, figure, details);
  const about = el("p", { class: "note" });

  /// By drawn link and direction, the busiest of what it stands for.
  function busiest() {
    const found = new Map();
    for (const channel of view.current.channels || []) {
      const load = loadOf(view.current, channel, view.from, view.to);
      [channel.forward, channel.backward].forEach((links, way) => {
        for (const link of links) {
          const key = link * 2 + way;
          const known = found.get(key);
          if (!known || known.load < load) found.set(key, { channel, load, forward: way === 0 });
        }
      });
    }
    return found;
  }
  function paint() {
    const flows = [];
    const words = new Map();
    for (const [key, { channel, load, forward }] of busiest()) {
      const index = key >> 1;
      const link = machine.links[index];
      const ends = lane(machine.nodes[link.a], machine.nodes[link.b], forward);
      flows.push(svg("line", { class: "flow", ...ends, stroke: loadColour(load),
        "stroke-width": (load > 0 ? 1.2 + load * (MAX_WIDTH - 1.2) : 0).toFixed(2) }));
      words.set(index, [...new Set([...(words.get(index) || []), `${channel.name}: ${percent(load)}`])]);
    }
    drawing.layers.flow.replaceChildren(...flows);
    drawing.hits.forEach((hit, index) => {
      hit.replaceChildren(svg("title", {}, (words.get(index) || ["idle"]).join("\n")));
      hit.classList.toggle("chosen", view.channel === index);
    });
  }

  function showDetails() {
    const run = view.current;
    if (view.channel === null) {
      const most = [...(run.channels || [])].slice(0, 8);
      details.replaceChildren(el("h3", {}, "Busiest links"),
        table([["link", (c) => c.name, "wide"], ["of the time", (c) => percent(c.utilization), true]], most),
        el("p", { class: "note on-screen" }, "Click a link, or reach it with Tab and press Enter, for what crosses it."));
      return;
    }
    const link = machine.links[view.channel];
    const title = `${machine.nodes[link.a].name} \u2013 ${machine.nodes[link.b].name}`;
    const channels = (run.channels || []).map((channel, number) => ({ channel, number }))
      .filter((one) => linksOf(one.channel).includes(view.channel));
    const children = [el("h3", {}, title), el("p", { class: "note" },
      `${link.kind}${link.count > 1 ? ` x${link.count}` : ""}${link.alike > 1 ? `, ${link.alike} such links` : ""}`)];
    const inProof = costInProof(run.proof, view.channel);
    if (inProof) children.push(el("p", { class: "in-proof" }, inProof));
    for (const { channel, number } of channels.slice(0, 4)) {
      const figures = [["load now", percent(loadOf(run, channel, view.from, view.to))],
        ["of the whole time", percent(channel.utilization)],
        ["capacity", gbps(channel.capacity_gbps)]];
      if (channel.bytes) figures.push(["carries", bytes(channel.bytes)]);
      children.push(el("h3", {}, channel.name), el("dl", { class: "plain" },
        ...figures.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
      if (run.ops) children.push(opsOver(run, channel, number));
    }
    if (!channels.length) children.push(el("p", {}, "It carries nothing."));
    details.replaceChildren(...children);
  }
  function opsOver(run, channel, number) {
    const rows = [];
    run.ops.channels.forEach((over, at) => {
      if (!over.includes(number)) return;
      const start = run.ops.start_us[at];
      const inside = view.to === null || (start <= view.to && start + run.ops.hold_us[at] >= view.from);
      if (inside) rows.push(at);
    });
    return el("div", { class: "ops", "data-ops": rows.length },
      el("p", { class: "note" }, `${rows.length} of its ${counted(channel.ops, "op")}` +
        (view.to === null ? "" : " in this time") + (rows.length > 40 ? ", the first 40" : "")),
      el("div", { class: "scroll" }, table([
        ["start", (at) => time(run.ops.start_us[at]), true],
        ["takes", (at) => time(run.ops.hold_us[at]), true],
        ["op", (at) => el("span", { class: "mono" }, run.ops.what[at]), "wide"],
      ], rows.slice(0, 40))));
  }

  const proofText = el("p", { class: "note" });
  let showsProof = true;
  function drawProof() {
    drawing.clearProof();
    const proof = view.current.proof;
    const undrawn = proof ? proof.counted.filter((one) => !one.on.length) : [];
    const rest = undrawn.reduce((sum, one) => sum + one.gbps, 0);
    proofText.textContent = !proof || !proof.certificate ? ""
      : `The bound of ${gbps(proof.algbw_gbps)} (${proof.kind}): ${proof.certificate}.` +
        (rest > 0 ? ` Of these links, some are not drawn, which carry ${gbps(rest)}.` : "");
    if (proof && showsProof) drawing.drawProof(proof);
  }

  const label = el("output", { class: "window" });
  const slider = el("input", { type: "range", min: 0, max: 1000, value: 0, "aria-label": "time",
    oninput: () => {
      const width = view.current.time_us / 1000;
      const at = Math.min(Number(slider.value), 999) * width;
      view.set({ from: at, to: at + width });
    } });
  const whole = el("button", { type: "button", onclick: () => view.set({ from: 0, to: null }) }, "whole run");
  const controls = el("div", { class: "controls" });
  // What was executed is on no machine.
  const placed = view.runs.map((run, number) => ({ run, number })).filter(({ run }) => run.machine !== null);
  const machines = new Set(placed.map(({ run }) => run.machine)).size;
  const onMachine = (run) => (machines > 1 ? `${run.name} on ${data.machines[run.machine].name}` : run.name);
  /// With whatever else tells it from others of its name.
  const traits = (run) => [run.collective || run.report.collective, counted(run.ranks.length, "GPU"),
    run.size_bytes === undefined ? "" : bytes(run.size_bytes)];
  const named = (run) => {
    const others = placed.filter((one) => onMachine(one.run) === onMachine(run));
    const telling = traits(run).filter((trait, i) => others.some((one) => traits(one.run)[i] !== trait));
    return [onMachine(run), ...telling].join(", ");
  };
  const choice = el("select", { "aria-label": hasTime ? "run" : "plan", onchange: (event) =>
    view.set({ run: Number(event.target.value), from: 0, to: null }) },
  ...placed.map(({ run, number }) => el("option", { value: number }, named(run))));
  if (placed.length > 1) controls.append(el("label", {}, hasTime ? "run" : "plan", choice));
  if (hasTime) controls.append(el("label", {}, "time", slider), label, whole);
  const hasProof = view.runs.some((run) => run.proof && run.proof.kind);
  if (hasProof) {
    controls.append(el("label", {}, el("input", { type: "checkbox", checked: true, onchange: (event) => {
      showsProof = event.target.checked;
      drawProof();
    } }), "what proves the bound"));
  }
  const scale = el("span", { class: "scale" }, "load", ...[0.1, 0.35, 0.6, 0.85, 1].map((load) =>
    el("i", { "data-load": load })), "0 to 100 %; traffic keeps to the right");
  const paintScale = () => {
    for (const step of scale.querySelectorAll("i")) {
      const load = Number(step.getAttribute("data-load"));
      step.style.background = loadColour(load);
      step.style.height = 1.2 + load * (MAX_WIDTH - 1.2) + "px";
    }
  };

  const sayIfScrolled = () => {
    scrolls.hidden = figure.scrollWidth <= figure.clientWidth + 1;
    figure.tabIndex = scrolls.hidden ? -1 : 0;
  };
  /// Another machine, another drawing.
  function rebuild() {
    machine = data.machines[view.current.machine];
    drawing = new Drawing(machine, (channel) => view.set({ channel }));
    refill(figure, drawing.root, scrolls, scale);
    side.classList.toggle("wide", drawing.isWide);
    about.textContent = (machine.title || machine.name) +
      (machine.links_in_all > machine.links.length
        ? `; drawn are ${machine.links.length} of ${machine.links_in_all} links, the busiest` : "");
    section.dataset.links = machine.links.length;
    section.dataset.nodes = machine.nodes.length;
    section.drawing = drawing;
  }
  const links = tableBehind("All links as a table", [
    ["link", (c) => c.name], ["capacity", (c) => gbps(c.capacity_gbps), true],
    ["bytes", (c) => (c.bytes ? bytes(c.bytes) : ""), true], ["busy", (c) => time(c.busy_us), true],
    ["of the time", (c) => percent(c.utilization), true], ["ops", (c) => String(c.ops), true],
  ], () => view.current.channels || []);
  const section = el("section", { class: "machine" },
    el("h2", {}, hasTime ? "The machine, and what its links carry" : "The machine, and what the plan puts on its links"),
    about, controls, side, proofText, links);

  /// A time that was chosen in the timeline of what was executed, which is on no machine, may be one
  /// that this run does not have.
  function windowText() {
    const whole = view.current.time_us;
    if (view.to === null) return "mean of the whole run";
    if (view.from >= whole) return `${view.current.name} is over at ${time(view.from)}`;
    return `${time(view.from)} to ${time(Math.min(view.to, whole))} of ${time(whole)}`;
  }
  const update = (change = {}) => {
    if (view.current.machine === null) return;
    if ("run" in change) {
      if (machine !== data.machines[view.current.machine]) rebuild();
      choice.value = view.run;
      drawing.drawNodes(view.current.ranks);
      drawProof();
      links.refresh();
    }
    label.textContent = windowText();
    if (view.to === null) slider.value = 0;
    paint();
    showDetails();
  };
  // Before those of whoever draws on the machine.
  view.listeners.push(update);
  section.start = () => {
    repaints.push(() => { paint(); paintScale(); });
    new ResizeObserver(sayIfScrolled).observe(figure);
    paintScale();
    view.set({ run: view.run });
  };
  return section;
}
