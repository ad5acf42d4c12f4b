// SPDX-License-Identifier: Apache-2.0
"use strict";
// A machine as it was laid out when the page was made: frames, nodes and links, before anything is
// said of them.

const PITCH = 62;

function drawNode(node, rank) {
  const { width, height } = node;
  const size = Math.min(13, (width * PITCH * 1.65) / Math.max(4, node.label.length));
  const group = svg("g", { class: `node ${node.kind}${rank === undefined ? "" : " rank"}` },
    svg("rect", { x: (node.x - width / 2) * PITCH, y: (node.y - height / 2) * PITCH,
      width: width * PITCH, height: height * PITCH, rx: node.kind === "fabric" ? 14 : 4 }),
    svg("text", { x: node.x * PITCH, y: node.y * PITCH - (rank === undefined ? 0 : 6),
      "font-size": size.toFixed(1) }, node.label));
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

/// The machine, its layers by name, and by link what is pointed at and clicked.
class Drawing {
  constructor(machine, choose) {
    this.machine = machine;
    this.root = svg("svg", { role: "group", "aria-label": `drawing of ${machine.title || machine.name}`,
      viewBox: `0 0 ${machine.width * PITCH} ${machine.height * PITCH}` });
    this.root.style.maxWidth = `${machine.width * PITCH * 1.25}px`;
    // What many hosts are is read by scrolling, and not by guessing at labels.
    if (this.isWide) this.root.style.minWidth = `${machine.width * PITCH * 0.6}px`;
    this.layers = {};
    for (const name of ["frames", "parts", "base", "flow", "proof", "trees", "hit", "nodes", "labels", "prices"]) {
      this.layers[name] = svg("g", { class: "layer-" + name });
      this.root.append(this.layers[name]);
    }
    for (const frame of machine.frames) this.addFrame(frame);
    this.hits = machine.links.map((link, index) => this.addLink(link, index, choose));
  }
  get isWide() { return this.machine.width > 2 * this.machine.height; }

  addFrame(frame) {
    this.layers.frames.append(svg("rect", { class: "frame", rx: 8, x: frame.x * PITCH, y: frame.y * PITCH,
      width: frame.width * PITCH, height: frame.height * PITCH }));
    if (!frame.label) return;
    this.layers.labels.append(svg("text", { x: frame.x * PITCH + 8, y: frame.y * PITCH + 18, "font-size": 13 },
      frame.label));
  }
  addLink(link, index, choose) {
    const [a, b] = [this.machine.nodes[link.a], this.machine.nodes[link.b]];
    const ends = { x1: a.x * PITCH, y1: a.y * PITCH, x2: b.x * PITCH, y2: b.y * PITCH };
    this.layers.base.append(svg("line", { class: "base", ...ends }));
    const hit = svg("line", { class: "hit", ...ends, tabindex: 0, role: "button",
      "aria-label": `link ${a.name} to ${b.name}`, "data-link": index, onclick: () => choose(index),
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          choose(index);
        }
      } });
    this.layers.hit.append(hit);
    return hit;
  }
  drawNodes(ranks) {
    const rankOf = new Map((ranks || []).map((node, rank) => [node, rank]));
    this.layers.nodes.replaceChildren(...this.machine.nodes.map((node, index) =>
      drawNode(node, node.kind === "hosts" ? undefined : rankOf.get(index))));
  }
  centre(node) { return [this.machine.nodes[node].x * PITCH, this.machine.nodes[node].y * PITCH]; }

  clearProof() {
    for (const name of ["parts", "proof", "prices"]) this.layers[name].replaceChildren();
  }
  /// The GPUs of a cut or of the parts, the links that are counted, and what crossing a link costs.
  drawProof(proof) {
    for (const part of proof.parts) {
      if (part.length > 1 && proof.parts.length < 40) {
        this.layers.parts.append(svg("polygon", { class: "part", "stroke-width": 78,
          points: hullOf(part.map((node) => this.centre(node))).map((point) => point.join(",")).join(" ") }));
      }
      for (const node of part) {
        const [x, y] = this.centre(node);
        this.layers.proof.append(svg("rect", { class: "ring", x: x - 37, y: y - 24, width: 74, height: 48, rx: 9 }));
      }
    }
    for (const index of new Set(proof.counted.flatMap((one) => one.on))) {
      const link = this.machine.links[index];
      const [[x1, y1], [x2, y2]] = [this.centre(link.a), this.centre(link.b)];
      this.layers.proof.append(svg("line", { class: "crossing", x1, y1, x2, y2, "data-link": index }));
    }
    const priced = new Map();
    for (const one of proof.prices) priced.set(one.link, Math.max(priced.get(one.link) || 0, one.price));
    for (const [index, price] of [...priced].slice(0, 400)) {
      const link = this.machine.links[index];
      const [a, b] = [this.centre(link.a), this.centre(link.b)];
      const [x, y] = [a[0] * 0.6 + b[0] * 0.4, a[1] * 0.6 + b[1] * 0.4];
      this.layers.prices.append(svg("g", { class: "price" }, svg("circle", { cx: x, cy: y, r: 9 }),
        svg("text", { x, y }, String(price)), svg("title", {}, pricesInWords(proof, index))));
    }
  }
}

/// What crossing a link costs, by direction where it is one's price; nothing where it is free.
function pricesInWords(proof, index) {
  const prices = new Map(proof.prices.filter((one) => one.link === index).map((one) => [one.name, one.price]));
  return [...prices].map(([name, price]) => `${name} costs ${price}`).join(", ");
}

/// What the proof of the bound makes of a link, in words; nothing where only its certificate is known.
function costInProof(proof, index) {
  if (!proof) return "";
  if (proof.prices.length) {
    const prices = pricesInWords(proof, index);
    return prices ? `In the proof of the bound, crossing ${prices} per byte; another way is free.`
      : "In the proof of the bound, crossing it is free.";
  }
  if (!proof.counted.length) return "";
  const counted = proof.counted.filter((one) => one.on.includes(index));
  if (!counted.length) return `The ${proof.kind} that proves the bound does not count it.`;
  const each = counted.map((one) =>
    `${one.name}${one.links > 1 ? ` and ${one.links - 1} more drawn here` : ""} with ${gbps(one.gbps)}`);
  return `The ${proof.kind} that proves the bound counts ${each.join(", and ")}.`;
}
