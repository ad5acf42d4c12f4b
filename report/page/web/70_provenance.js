// SPDX-License-Identifier: Apache-2.0
"use strict";
// Where the figures come from, what was expected of them, and what could not run.

function factsOf(verdict) {
  return el("dl", { class: "facts" }, ...verdict.facts.map((fact) => el("div", {},
    el("dt", {}, fact.label), el("dd", { class: "value" }, fact.value),
    fact.detail ? el("dd", { class: "detail" }, fact.detail) : null)));
}

function expectationsSection(expectations) {
  return el("section", { class: "expectations" }, el("h2", {}, "What the study expects"),
    el("div", { class: "scroll", tabindex: 0 }, table([
      ["expectation", (one) => one.title, "wide"], ["claim", (one) => one.claim],
      ["measure", (one) => one.measure],
      ["ours", (one) => (typeof one.ours === "number" ? digits(one.ours) : ""), true],
      ["paper", (one) => (one.paper === null || one.paper === undefined ? ""
        : [].concat(one.paper).map((v) => digits(v)).join(" to ")), true],
      ["verdict", (one) => one.verdict], ["as stated", (one) => (one.as_expected ? "yes" : "no")],
    ], expectations)));
}

function skippedSection(skipped) {
  return el("section", {}, tableBehind(`${counted(skipped.length, "algorithm")} could not run here`, [
    ["algorithm", (one) => one.algorithm], ["because it", (one) => one.reason, "wide"],
  ], () => skipped));
}

function provenanceSection(provenance) {
  const list = [["made by", `espalier ${provenance.version}`],
    ["reproduced by", el("code", {}, provenance.command)]];
  for (const file of provenance.inputs) {
    list.push(["input", `${file.name}, ${bytes(file.bytes)}, CRC-32 ${file.crc32}`]);
  }
  for (const machine of provenance.machines) {
    list.push(["machine", `${machine.title} (${machine.name})`]);
    for (const source of machine.sources) list.push(["source", source]);
    for (const note of machine.notes) list.push(["note", note]);
    for (const profile of machine.profiles) list.push(["profile", `${profile.name}: ${profile.title}`]);
  }
  list.push(["curves drawn by", provenance.curves_drawn_by]);
  const section = el("section", { class: "provenance" }, el("h2", {}, "Provenance"),
    el("dl", { class: "plain" }, ...list.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
  const all = provenance.machines.flatMap((machine) => machine.profiles.map((profile) => ({ machine, profile })));
  for (const { machine, profile } of all) {
    section.append(...constantsOf(profile, all.length > 1 ? `${profile.name} on ${machine.name}` : "the profile"));
  }
  return section;
}

/// How well the constants of a profile are known.
function constantsOf(profile, name) {
  const parts = [];
  if (profile.constants.length) {
    parts.push(el("h3", {}, `Links under ${name}`), el("div", { class: "scroll", tabindex: 0 }, table([
      ["kind", (c) => c.of], ["reaches", (c) => percent(c.efficiency), true],
      ["an op costs", (c) => c.cost], ["grade", (c) => c.grade], ["from", (c) => c.source, "wide"],
    ], profile.constants)));
  }
  if (profile.figures.length) {
    parts.push(tableBehind(`Constants of ${name}, and how well they are known`, [
      ["constant", (c) => c.name], ["value", (c) => digits(c.value), true], ["", (c) => c.unit],
      ["grade", (c) => c.grade], ["from", (c) => c.from, "wide"],
    ], () => profile.figures));
  }
  if (profile.errors.length) {
    parts.push(tableBehind(`Measurements that ${name} was compared with`, [
      ["collective", (e) => e.of], ["GPUs", (e) => e.on],
      ["median deviation", (e) => percent(e.relative), true], ["compared with", (e) => e.compared, "wide"],
    ], () => profile.errors));
  }
  return parts;
}
