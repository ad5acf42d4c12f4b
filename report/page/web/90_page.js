// SPDX-License-Identifier: Apache-2.0
"use strict";

async function pageData() {
  const packed = atob(document.getElementById("data").textContent);
  const raw = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function sectionsOf(data) {
  const sections = [];
  if (data.charts.length) {
    const charts = data.charts.map(curvesSection);
    sections.push(...charts);
  }
  if (data.iterations.length) sections.push(iterationSection(data.iterations));
  if (data.plans.length) {
    const view = new View(data.plans);
    const section = machineSection(data, view, false);
    treesControls(section, view);
    sections.push(section);
  }
  if (data.runs.length) {
    const view = new View(data.runs);
    const placed = data.runs.findIndex((run) => run.machine !== null);
    if (placed >= 0) {
      view.run = placed;
      sections.push(machineSection(data, view, true));
    }
    sections.push(timelineSection(view));
  }
  if (data.expectations.length) sections.push(expectationsSection(data.expectations));
  if (data.skipped.length) sections.push(skippedSection(data.skipped));
  sections.push(provenanceSection(data.provenance));
  return sections;
}

/// One section at a time, so that the first can be read while the others are made.
function start(sections) {
  const [section, ...rest] = sections;
  if (!section) {
    document.documentElement.setAttribute("data-ready", "");
    return;
  }
  document.getElementById("page").append(section);
  if (section.start) section.start();
  setTimeout(() => start(rest));
}

pageData().then((data) => {
  document.querySelector("header").append(factsOf(data.verdict));
  start(sectionsOf(data));
}).catch((error) => {
  document.getElementById("page").append(el("p", { class: "error" }, `This page cannot be shown: ${error.message}`));
  throw error;
});
