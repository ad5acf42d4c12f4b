// SPDX-License-Identifier: Apache-2.0
"use strict";
// Trees of plans, each of which can be drawn on the machine.

function treesControls(section, view) {
  const offered = 500;
  const fewer = el("p", { class: "note" });
  const choice = el("select", { "aria-label": "tree" });
  const list = () => view.current.report.trees;
  const offer = () => {
    const [here, all] = [list().length, view.current.trees_in_all];
    fewer.textContent = here < all ? `The page has room for the first ${here} of ${all} trees.`
      : here > offered ? `The first ${offered} of ${here} trees can be drawn.` : "";
    choice.replaceChildren(el("option", { value: -1 }, "none"), ...list().slice(0, offered).map((tree, i) =>
      el("option", { value: i }, `${i + 1}: ${tree.part} of the message, root ${tree.root}`)));
  };
  const draw = () => {
    const { layers, machine } = section.drawing;
    const byName = new Map(machine.nodes.map((node) => [node.name, node]));
    const tree = list()[Number(choice.value)];
    const lines = [];
    for (const edge of (tree && tree.edges) || []) {
      const path = [edge.parent, ...(edge.via || []), edge.child].map((name) => byName.get(name));
      if (path.some((node) => !node)) continue;
      lines.push(svg("polyline", { class: "tree",
        points: path.map((node) => `${node.x * PITCH},${node.y * PITCH}`).join(" ") },
      svg("title", {}, `${edge.parent} > ${edge.child}`)));
    }
    layers.trees.replaceChildren(...lines);
    layers.flow.classList.toggle("behind", lines.length > 0);
  };
  choice.addEventListener("change", draw);
  section.querySelector(".controls").append(el("label", {}, "tree", choice));
  const trees = tableBehind("Trees as a table", [
    ["part", (tree) => tree.part, true], ["root", (tree) => tree.root],
    ["height", (tree) => String(tree.height), true],
    ["edges", (tree) => tree.edges.map((edge) =>
      `${edge.parent}>${[...(edge.via || []), edge.child].join(">")}`).join(", "), "wide"],
  ], list);
  section.append(fewer, trees);
  view.listeners.push((change) => {
    if (!("run" in change)) return;
    offer();
    draw();
    trees.refresh();
  });
}
