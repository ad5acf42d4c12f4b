// SPDX-License-Identifier: Apache-2.0
"use strict";
// Words and elements. Names from the data become text nodes only, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
}
/// Puts these in the place of what a node holds; null stands for nothing.
const refill = (node, ...children) =>
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

function digits(value, count = 3) {
  if (value === 0) return "0";
  // Rounded first: 99.97 has three digits before the point then.
  const size = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(count)))));
  return size >= count ? value.toFixed(0) : value.toFixed(Math.max(0, count - 1 - size));
}
function time(us) {
  if (us === null || us === undefined) return "";
  if (us === 0) return "0";
  if (us < 1) return digits(us * 1e3) + " ns";
  if (us < 1e3) return digits(us) + " \u00b5s";
  if (us < 1e6) return digits(us / 1e3) + " ms";
  return digits(us / 1e6) + " s";
}
function bytes(count) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (count >= size) {
      return (count % size === 0 ? String(count / size) : digits(count / size)) + " " + unit;
    }
  }
  return `${Math.round(count)} B`;
}
const counted = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;
const percent = (share) => digits(100 * share) + " %";
const gbps = (rate) => digits(rate) + " GB/s";

/// Rows behind a chart, made when somebody opens them, up to a number; `refresh` when they are
/// others. A column is [title, of row, is a number].
const MOST_ROWS = 1000;
function tableBehind(title, columns, rows) {
  const box = el("details", {}, el("summary", {}, title));
  const make = () => {
    const all = rows();
    refill(box, box.querySelector("summary"),
      all.length > MOST_ROWS ? el("p", { class: "note" }, `The first ${MOST_ROWS} of ${all.length}.`) : null,
      el("div", { class: "scroll", tabindex: 0 }, table(columns, all.slice(0, MOST_ROWS))));
  };
  box.refresh = () => {
    if (box.querySelector("table")) make();
  };
  box.addEventListener("toggle", () => {
    if (box.open && !box.querySelector("table")) make();
  });
  return box;
}
function table(columns, rows) {
  const kind = (column) => (column[2] === true ? "number" : column[2] || null);
  return el("table", {},
    el("thead", {}, el("tr", {}, ...columns.map((column) =>
      el("th", { scope: "col", class: kind(column) }, column[0])))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...columns.map((column) => {
      const value = column[1](row);
      return el("td", { class: kind(column) }, value === null || value === undefined ? "" : value);
    })))));
}

/// What colour-blind readers tell apart (Okabe and Ito), and dashes beside it.
const HUES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d00", "#7a7a7a"];
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 4]];
const strokeOf = (index) => ({
  colour: HUES[index % HUES.length],
  dash: DASHES[(index + Math.floor(index / HUES.length)) % DASHES.length],
});

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/// Called when colours change: dark and light, print.
const repaints = [];
function repaint() {
  for (const paint of repaints) paint();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
addEventListener("beforeprint", () => {
  document.documentElement.setAttribute("data-print", "");
  repaint();
});
addEventListener("afterprint", () => {
  document.documentElement.removeAttribute("data-print");
  repaint();
});

function mixed(a, b, share) {
  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [from, to] = [parts(a), parts(b)];
  const mix = from.map((value, i) => Math.round(value + (to[i] - value) * share));
  return `rgb(${mix.join(",")})`;
}
/// Of a load between 0 and 1.
function loadColour(load) {
  if (load <= 0) return style("--idle");
  return load < 0.5 ? mixed(style("--cool"), style("--warm"), load * 2)
                    : mixed(style("--warm"), style("--hot"), load * 2 - 1);
}
