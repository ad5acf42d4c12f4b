// SPDX-License-Identifier: Apache-2.0
"use strict";
// An iteration of training: what computes, when buckets are exchanged, what is exposed.

function iterationSection(iterations) {
  const choice = { at: 0 };
  const figure = el("figure", { class: "chart" });
  const section = el("section", { class: "iteration", "data-iterations": iterations.length },
    el("h2", {}, "The iteration"));
  if (iterations.length > 1) {
    section.append(el("div", { class: "controls" }, el("label", {}, "question",
      el("select", { onchange: (event) => {
        choice.at = Number(event.target.value);
        draw();
        buckets.refresh();
      } }, ...iterations.map((one, i) => el("option", { value: i },
        `${one.algorithm}, ${counted(one.ranks, "GPU")}, fusion ${bytes(one.fusion_bytes)}`))))));
  }
  const buckets = tableBehind("Buckets as a table", [
    ["bucket", (i) => String(i), true],
    ["bytes", (i) => bytes(iterations[choice.at].buckets[i].bytes), true],
    ["tensors", (i) => String(iterations[choice.at].buckets[i].tensors), true],
    ["algorithm", (i) => iterations[choice.at].buckets[i].algorithm],
    ["ready", (i) => time(iterations[choice.at].buckets[i].ready_us), true],
    ["begin", (i) => time(iterations[choice.at].buckets[i].begin_us), true],
    ["end", (i) => time(iterations[choice.at].buckets[i].end_us), true],
  ], () => iterations[choice.at].buckets.map((_, i) => i));
  section.append(figure, el("p", { class: "note" },
    "Thin line: the bucket's last gradient is made and it waits; bar: it is exchanged. What lies beyond computation is exposed."),
  tableBehind("Iterations as a table", [
    ["algorithm", (one) => one.algorithm], ["GPUs", (one) => String(one.ranks), true],
    ["fusion", (one) => bytes(one.fusion_bytes), true], ["iteration", (one) => time(one.iteration_us), true],
    ["computation", (one) => time(one.compute_us), true],
    ["communication", (one) => time(one.communication_us), true],
    ["exposed", (one) => time(one.exposed_us), true],
    ["samples/s", (one) => digits(one.samples_per_s, 4), true],
    ["efficiency", (one) => percent(one.efficiency), true],
  ], () => iterations),
  buckets);

  function draw() {
    const one = iterations[choice.at];
    const shown = one.buckets.slice(0, 60);
    const width = Math.max(280, figure.clientWidth || 700);
    const row = 16;
    const height = 60 + (shown.length + 1) * row;
    const left = 90;
    const x = (us) => left + (us / one.iteration_us) * (width - left - 12);
    const root = svg("svg", { width, height, role: "img",
      "aria-label": `computation ${time(one.compute_us)}, exposed ${time(one.exposed_us)}; the table has all buckets` });
    const bar = (y, from, to, name, title) => root.append(svg("rect", { x: x(from), y: y + 2,
      width: Math.max(1, x(to) - x(from)), height: row - 5, fill: style(name) }, svg("title", {}, title)));
    const label = (y, words) => root.append(svg("text", { x: 0, y: y + row - 5 }, words));
    const step = niceStep(one.iteration_us / Math.max(2, Math.floor((width - left) / 110)));
    for (let at = 0; at <= one.iteration_us; at += step) {
      root.append(svg("line", { class: "grid", x1: x(at), x2: x(at), y1: 16, y2: height }),
        svg("text", { x: x(at) + 3, y: 11 }, time(at)));
    }
    const exposed = one.iteration_us - one.exposed_us;
    root.append(svg("rect", { class: "exposed", x: x(exposed), y: 16, width: Math.max(0, x(one.iteration_us) - x(exposed)),
      height: height - 16, fill: style("--warn"), "fill-opacity": 0.12 }));
    label(20, "computation");
    bar(20, 0, one.compute_us, "--compute", `computation, ${time(one.compute_us)}`);
    shown.forEach((bucket, i) => {
      const y = 20 + (i + 1) * row;
      label(y, `bucket ${i}`);
      root.append(svg("line", { x1: x(bucket.ready_us), x2: x(bucket.begin_us), y1: y + row / 2,
        y2: y + row / 2, stroke: style("--soft") }));
      bar(y, bucket.begin_us, bucket.end_us, "--copy",
        `bucket ${i}, ${bytes(bucket.bytes)} by ${bucket.algorithm || one.algorithm}: ${time(bucket.begin_us)} to ${time(bucket.end_us)}`);
    });
    if (one.exposed_us > 0) {
      root.append(svg("text", { x: x(exposed) - 4, y: height - 6, "text-anchor": "end" },
        `${time(one.exposed_us)} exposed`));
    }
    figure.replaceChildren(el("figcaption", {},
      `${one.model} with ${one.algorithm} on ${counted(one.ranks, "GPU")} of ${one.topology}: ${time(one.iteration_us)}` +
      (one.buckets_in_all > shown.length ? `; the first ${shown.length} of ${one.buckets_in_all} buckets` : "")), root);
  }
  section.start = () => {
    draw();
    repaints.push(draw);
    addEventListener("resize", draw);
  };
  return section;
}
