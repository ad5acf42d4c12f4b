// SPDX-License-Identifier: Apache-2.0
"use strict";
// Trees of plans, each of which can be drawn on the machine.

function treesControls(section, view) {
  const { layers, machine } = section;
  const marks = svg("g", { class: "layer-trees" });
  layers.hit.before(marks);
  const byName = new Map(machine.nodes.map((node) => [node.name, node]));
  const choice = el("select", { "aria-label": "tree" });
  const list = () => view.current.report.trees;
  const offer = () => {
    choice.replaceChildren(el("option", { value: -1 }, "none"), ...list().slice(0, 500).map((tree, i) =>
      el("option", { value: i }, `${i + 1}: ${tree.part} of the message, root ${tree.root}`)));
  };
  const draw = () => {
    const tree = list()[Number(choice.value)];
    const lines = [];
    for (const edge of (tree && tree.edges) || []) {
      const path = [edge.parent, ...(edge.via || []), edge.child].map((name) => byName.get(name));
      if (path.some((node) => !node)) continue;
      lines.push(svg("polyline", { class: "tree",
        points: path.map((node) => `${node.x * PITCH},${node.y * PITCH}`).join(" ") },
      svg("title", {}, `${edge.parent} > ${edge.child}`)));
    }
    marks.replaceChildren(...lines);
    layers.flow.classList.toggle("behind", lines.length > 0);
  };
  choice.addEventListener("change", draw);
  section.querySelector(".controls").append(el("label", {}, "tree", choice));
  section.append(tableBehind("Trees as a table", [
    ["part", (tree) => tree.part, true], ["root", (tree) => tree.root],
    ["height", (tree) => String(tree.height), true],
    ["edges", (tree) => tree.edges.map((edge) =>
      `${edge.parent}>${[...(edge.via || []), edge.child].join(">")}`).join(", "), "wide"],
  ], list));
  view.listeners.push((change) => {
    if (!("run" in change)) return;
    offer();
    draw();
  });
  offer();
}
