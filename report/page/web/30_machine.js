// SPDX-License-Identifier: Apache-2.0
"use strict";
// The machine as it was laid out when the page was made, its links coloured and drawn as thick as
// their load in the window of time that the slider or the timeline chose.

const PITCH = 62;
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
    Object.assign(this, change);
    for (const listener of this.listeners) listener(change);
  }
}

/// Loads are one character a bin: U+0100 is idle, U+01C8 the full capacity.
const loadAt = (channel, bin) => (channel.load.charCodeAt(bin) - 0x100) / 200;

/// The mean over a window, or over the whole run, which is known exactly.
function loadOf(run, channel, from, to) {
  if (to === null || !channel.load.length) return channel.utilization;
  const bins = channel.load.length;
  const first = Math.max(0, Math.min(bins - 1, Math.floor((from / run.time_us) * bins)));
  const last = Math.max(first, Math.min(bins - 1, Math.ceil((to / run.time_us) * bins) - 1));
  let sum = 0;
  for (let bin = first; bin <= last; ++bin) sum += loadAt(channel, bin);
  return sum / (last - first + 1);
}

const linksOf = (channel) => [...channel.forward, ...channel.backward];

const NODE_SIZE = { gpu: [0.92, 0.54], cpu: [1.05, 0.5], pcie_switch: [0.95, 0.42], nvswitch: [1.02, 0.46],
  nic: [0.85, 0.4], fabric: [1.7, 0.5], hosts: [1.8, 0.8] };

function drawNode(node, rank) {
  const [width, height] = NODE_SIZE[node.kind] || [0.95, 0.42];
  const label = rank === undefined ? node.label : `${node.label}`;
  const size = Math.min(13, (width * PITCH * 1.65) / Math.max(4, label.length));
  const group = svg("g", { class: `node ${node.kind}${rank === undefined ? "" : " rank"}` },
    svg("rect", { x: (node.x - width / 2) * PITCH, y: (node.y - height / 2) * PITCH,
      width: width * PITCH, height: height * PITCH, rx: node.kind === "fabric" ? 14 : 4 }),
    svg("text", { x: node.x * PITCH, y: node.y * PITCH - (rank === undefined ? 0 : 6),
      "font-size": size.toFixed(1) }, label));
  if (rank !== undefined) {
    group.append(svg("text", { x: node.x * PITCH, y: node.y * PITCH + 8, "font-size": 9.5 }, "rank " + rank));
  }
  group.append(svg("title", {}, node.name + (node.model ? `, ${node.model}` : "")));
  return group;
}

/// Corners around a set of points, in order (Andrew's monotone chain).
function hullOf(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  if (sorted.length < 3) return sorted;
  const cross = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && cross(chain[chain.length - 2], chain[chain.length - 1], point) <= 0) {
        chain.pop();
      }
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

/// Ends of one direction of a link: beside the line, on the right of whoever drives along it.
function lane(a, b, forward) {
  const [from, to] = forward ? [a, b] : [b, a];
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const [ox, oy] = [(-dy / length) * 4.2, (dx / length) * 4.2];
  return { x1: from.x * PITCH + ox, y1: from.y * PITCH + oy, x2: to.x * PITCH + ox, y2: to.y * PITCH + oy };
}

function machineSection(data, view, hasTime) {
  const machine = data.machines[view.current.machine];
  const root = svg("svg", { role: "group", "aria-label": `drawing of ${machine.title || machine.name}`,
    viewBox: `0 0 ${machine.width * PITCH} ${machine.height * PITCH}` });
  root.style.maxWidth = `${machine.width * PITCH * 1.25}px`;
  // What many hosts are is read by scrolling, and not by guessing at labels.
  if (machine.width > 2 * machine.height) root.style.minWidth = `${machine.width * PITCH * 0.6}px`;
  const details = el("div", { class: "panel", "aria-live": "polite" });
  const layers = {};
  for (const name of ["frames", "parts", "base", "flow", "proof", "hit", "nodes", "prices"]) {
    layers[name] = svg("g", { class: "layer-" + name });
    root.append(layers[name]);
  }
  for (const frame of machine.frames) {
    layers.frames.append(svg("rect", { class: "frame", rx: 8, x: frame.x * PITCH, y: frame.y * PITCH,
      width: frame.width * PITCH, height: frame.height * PITCH }));
    if (frame.label) {
      layers.frames.append(svg("text", { x: frame.x * PITCH + 8, y: frame.y * PITCH + 18,
        "font-size": 13 }, frame.label));
    }
  }
  const hits = machine.links.map((link, index) => {
    const [a, b] = [machine.nodes[link.a], machine.nodes[link.b]];
    const ends = { x1: a.x * PITCH, y1: a.y * PITCH, x2: b.x * PITCH, y2: b.y * PITCH };
    layers.base.append(svg("line", { class: "base", ...ends }));
    const choose = () => view.set({ channel: index });
    const hit = svg("line", { class: "hit", ...ends, tabindex: 0, role: "button",
      "aria-label": `link ${a.name} to ${b.name}`, "data-link": index, onclick: choose,
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          choose();
        }
      } });
    layers.hit.append(hit);
    return hit;
  });
  const drawNodes = () => {
    const rankOf = new Map((view.current.ranks || []).map((node, rank) => [node, rank]));
    layers.nodes.replaceChildren(...machine.nodes.map((node, index) =>
      drawNode(node, node.kind === "hosts" ? undefined : rankOf.get(index))));
  };

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
    layers.flow.replaceChildren(...flows);
    hits.forEach((hit, index) => {
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
    const inProof = costInProof(run.proof, link);
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
  /// What the proof of the bound makes of a link.
  function costInProof(proof, link) {
    if (!proof || !proof.kind) return "";
    if (proof.kind === "lp") {
      const prices = [...new Set(proof.prices.filter((one) => one.link === view.channel).map((one) => one.price))];
      return prices.length ? `In the proof of the bound, crossing it costs ${prices.join(" or ")} per byte.`
        : "In the proof of the bound, crossing it is free.";
    }
    const [a, b] = [proof.sides[link.a], proof.sides[link.b]];
    return a !== b && a >= 0 && b >= 0
      ? `It crosses the ${proof.kind} that proves the bound, and counts with its capacity.`
      : `It does not cross the ${proof.kind} that proves the bound, and costs nothing there.`;
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
      el("p", { class: "note" }, `${rows.length} of its ${channel.ops} ops` +
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
    for (const name of ["parts", "proof", "prices"]) layers[name].replaceChildren();
    const proof = view.current.proof;
    proofText.textContent = proof && proof.certificate
      ? `The bound of ${gbps(proof.algbw_gbps)} (${proof.kind}): ${proof.certificate}.` : "";
    if (!proof || !showsProof) return;
    const at = (node) => [machine.nodes[node].x * PITCH, machine.nodes[node].y * PITCH];
    proof.parts.forEach((part, number) => {
      const side = machine.nodes.map((_, node) => node).filter((node) => proof.sides[node] === number);
      if (side.length > 1 && proof.parts.length < 40) {
        layers.parts.append(svg("polygon", { class: "part", "stroke-width": 78,
          points: hullOf(side.map(at)).map((point) => point.join(",")).join(" ") }));
      }
      for (const node of part) {
        const [x, y] = at(node);
        layers.proof.append(svg("rect", { class: "ring", x: x - 37, y: y - 24, width: 74, height: 48, rx: 9 }));
      }
    });
    for (const link of machine.links) {
      const [a, b] = [proof.sides[link.a], proof.sides[link.b]];
      if (a === b || a < 0 || b < 0) continue;
      const [x1, y1] = at(link.a);
      const [x2, y2] = at(link.b);
      layers.proof.append(svg("line", { class: "crossing", x1, y1, x2, y2 }));
    }
    const priced = new Map();
    for (const one of proof.prices) priced.set(one.link, Math.max(priced.get(one.link) || 0, one.price));
    for (const [index, price] of [...priced].slice(0, 400)) {
      const link = machine.links[index];
      const [a, b] = [at(link.a), at(link.b)];
      const [x, y] = [a[0] * 0.6 + b[0] * 0.4, a[1] * 0.6 + b[1] * 0.4];
      layers.prices.append(svg("g", { class: "price" }, svg("circle", { cx: x, cy: y, r: 9 }),
        svg("text", { x, y }, String(price))));
    }
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
  if (view.runs.length > 1) {
    controls.append(el("label", {}, hasTime ? "run" : "plan", el("select", { "aria-label": "run", onchange: (event) =>
      view.set({ run: Number(event.target.value), from: 0, to: null }) },
    ...view.runs.map((run, i) => el("option", { value: i }, run.name)))));
  }
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

  const update = (change = {}) => {
    if (view.current.machine === null || view.current.machine === undefined) return;
    if ("run" in change) {
      drawNodes();
      drawProof();
    }
    label.textContent = view.to === null ? "mean of the whole run"
      : `${time(view.from)} to ${time(view.to)} of ${time(view.current.time_us)}`;
    if (view.to === null) slider.value = 0;
    paint();
    showDetails();
  };
  const section = el("section", { class: "machine", "data-links": machine.links.length,
    "data-nodes": machine.nodes.length },
    el("h2", {}, hasTime ? "The machine, and what its links carry" : "The machine, and what the plan puts on its links"),
    el("p", { class: "note" }, (machine.title || machine.name) +
      (machine.links_in_all > machine.links.length
        ? `; drawn are ${machine.links.length} of ${machine.links_in_all} links, the busiest` : "")), controls,
    el("div", { class: machine.width > 2 * machine.height ? "side wide" : "side" }, el("figure", {}, root, scale), details), proofText,
    tableBehind("All links as a table", [
      ["link", (c) => c.name], ["capacity", (c) => gbps(c.capacity_gbps), true],
      ["bytes", (c) => (c.bytes ? bytes(c.bytes) : ""), true], ["busy", (c) => time(c.busy_us), true],
      ["of the time", (c) => percent(c.utilization), true], ["ops", (c) => String(c.ops), true],
    ], () => view.current.channels || []));
  section.start = () => {
    view.listeners.push(update);
    repaints.push(() => { paint(); paintScale(); });
    paintScale();
    update({ run: view.run });
  };
  section.layers = layers;
  section.machine = machine;
  return section;
}
