#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens pages of --html in a real browser: what they show, that they can be clicked, hovered, brushed
and read on a narrow window, and that they complain of nothing and ask nobody for anything.

    page_test.py ESPALIER [TEST...]

Where there is no Chromium it says SKIPPED and exits with 77. ESPALIER_SCREENSHOTS names a folder to
keep pictures in.
"""

import json
import pathlib
import re

from pages import HERE, PageCase, data_of, main


class Pages(PageCase):
    def test_sim(self):
        tab, data = self.open("sim", "sim", "--topology", "dgx1-v100", "--size", "4KiB..64MiB",
                              "--algorithm", "ring", "nccl", "optimal", "double_binary_tree")
        chart = data["charts"][0]
        kinds = [curve["kind"] for curve in chart["curves"]]
        self.assertEqual(kinds.count("predicted"), 4)
        # nccl was asked. What uses the fabric alone has a bound of its own.
        self.assertEqual((kinds.count("bound"), kinds.count("nccl")), (2, 0))
        self.assertEqual([curve["name"] for curve in chart["curves"] if curve["kind"] == "bound"],
                         ["bound, all links", "bound, fabric links"])
        self.assertEqual(self.count(tab, ".curves .legend button"), len(kinds))
        self.assertEqual(int(tab.js("document.querySelector('.curves').dataset.series")), len(kinds))
        machine = data["machines"][0]
        self.assertEqual(self.count(tab, ".machine .hit"), len(machine["links"]))
        self.assertEqual(self.count(tab, ".machine .node"), len(machine["nodes"]))
        self.assertEqual(self.count(tab, ".machine .node.rank"), 8)
        self.picture(tab, "sim")

        # A size that is pointed at is read, with the line that asks for it.
        before = self.text(tab, ".readout")
        tab.hover(".curves .plot", 0.3, 0.4)
        tab.wait(f"document.querySelector('.readout').textContent !== {json.dumps(before)}")
        self.assertIn("espalier sim --topology dgx1-v100", self.text(tab, ".readout"))
        # A curve can be left out.
        tab.click(".legend button")
        self.assertEqual(tab.js("document.querySelector('.legend button').ariaPressed"), "false")

        # A link that is clicked lists its ops; the drawing is a cube, so that ends lie apart.
        busiest = data["runs"][0]["channels"][0]
        tab.js(f"document.querySelectorAll('.machine .hit')[{(busiest['forward'] + busiest['backward'])[0]}].focus()")
        tab.press("Enter")
        self.assertIn(busiest["name"], self.text(tab, ".machine .panel"))
        listed = int(tab.js("document.querySelector('.machine .ops').dataset.ops"))
        self.assertGreater(listed, 0)
        self.assertIn("partition that proves the bound counts " + busiest["name"], self.text(tab, ".machine .in-proof"))
        # Another one with the mouse, where no other line crosses it.
        tab.box(".machine svg")
        where = tab.js("""(() => {
            const hits = [...document.querySelectorAll('.machine .hit')];
            for (const hit of hits.slice(1)) {
              const ends = [0.25, 0.5, 0.75].map((share) => new DOMPoint(
                hit.x1.baseVal.value + (hit.x2.baseVal.value - hit.x1.baseVal.value) * share,
                hit.y1.baseVal.value + (hit.y2.baseVal.value - hit.y1.baseVal.value) * share)
                .matrixTransform(hit.getScreenCTM()));
              for (const at of ends) {
                if (document.elementFromPoint(at.x, at.y) === hit && !hit.classList.contains("chosen"))
                  return [at.x, at.y, Number(hit.dataset.link)];
              }
            }
            return null;
        })()""")
        self.assertIsNotNone(where)
        tab.point("mouseMoved", where[0], where[1])
        tab.point("mousePressed", where[0], where[1], "left")
        tab.point("mouseReleased", where[0], where[1], "left")
        self.assertTrue(tab.js(f"document.querySelectorAll('.machine .hit')[{where[2]}].classList.contains('chosen')"))

        # The slider shows one moment.
        self.assertEqual(self.text(tab, ".machine .window"), "mean of the whole run")
        flows = tab.js("document.querySelector('.machine .layer-flow').innerHTML")
        tab.js("document.querySelector('.machine input[type=range]').focus()")
        for _ in range(4):
            tab.press("ArrowRight")
        self.assertRegex(self.text(tab, ".machine .window"), r"^[\d.]+ .* to [\d.]+ ")
        self.assertNotEqual(tab.js("document.querySelector('.machine .layer-flow').innerHTML"), flows)

        # What proves the bound is drawn, and can be taken away.
        self.assertIn(data["runs"][0]["proof"]["certificate"][:40], self.text(tab, ".machine > p:last-of-type"))
        rings = sum(len(part) for part in data["runs"][0]["proof"]["parts"])
        self.assertGreater(rings, 0)
        self.assertEqual(self.count(tab, ".machine .ring"), rings)
        tab.click(".machine input[type=checkbox]")
        self.assertEqual(self.count(tab, ".machine .ring"), 0)

        # Two timelines; a stretch brushed in one is the machine's, and Escape ends it.
        self.assertEqual(self.count(tab, ".timelines canvas"), 2)
        painted, striped = tab.js("""(() => {
            const canvas = document.querySelector(".timelines canvas");
            const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            const colours = new Uint32Array(pixels.buffer);
            const [left, top] = [Math.round(canvas.width * 0.3), Math.round(canvas.height * 0.6)];
            const bar = [...colours].filter((_, at) => {
              const [x, y] = [at % canvas.width - left, Math.floor(at / canvas.width) - top];
              return x >= 0 && x < 24 && y >= 0 && y < 24;
            });
            return [new Set(colours).size, new Set(bar).size];
        })()""")
        self.assertGreater(painted, 5)
        # Combines are striped: beside what lies between bars there are two colours.
        self.assertEqual(self.count(tab, ".timelines .swatch"), 4)
        self.assertGreater(striped, 2)
        before = self.text(tab, ".machine .window")
        tab.drag(".timelines canvas", 0.4, 0.6, 0.3)
        self.assertNotEqual(self.text(tab, ".machine .window"), before)
        self.picture(tab, "sim-brushed")
        # One brushed in the other timeline is of its run.
        tab.drag(".timelines canvas", 0.4, 0.6, 0.5, at=1)
        self.assertEqual(tab.js("document.querySelector('.machine select').value"), "1")
        self.assertTrue(self.text(tab, ".machine .window").endswith(
            "of " + tab.js(f"time({data['runs'][1]['time_us']})")))
        tab.hover(".timelines canvas", 0.5, 0.3)
        tab.wait("/op \\d+/.test(document.querySelector('.timelines .hint').textContent)")
        tab.press("Escape") if tab.js("document.querySelector('.timelines canvas').focus() || true") else None
        self.assertEqual(self.text(tab, ".machine .window"), "mean of the whole run")

        # Tables stand behind the charts.
        tab.click(".curves details summary")
        tab.wait("document.querySelector('.curves details table tbody tr') !== null")
        self.assertEqual(self.count(tab, ".curves details tbody tr"),
                         sum(len(curve["points"]) for curve in chart["curves"]))
        tab.dark(True)
        self.picture(tab, "sim-dark")
        tab.dark(False)
        # On paper there is nothing to press, and the figures of a size are.
        tab.call("Emulation.setEmulatedMedia", media="print")
        seen = """(() => [...document.querySelectorAll("button, input, summary, .hint, .readout table")]
            .filter((one) => one.offsetParent !== null && one.closest(".legend") === null)
            .map((one) => one.localName))()"""
        self.assertEqual(set(tab.js(seen)), {"table", "summary"})
        self.picture(tab, "sim-print")
        tab.call("Emulation.setEmulatedMedia", media="")
        self.check_quiet(tab)

    def test_narrow(self):
        tab, _ = self.open("narrow", "sim", "--topology", "dgx-a100", "--size", "1MiB,64MiB",
                           "--algorithm", "ring", "nccl", width=390, height=800)
        self.assertLessEqual(self.overflow(tab), 0)
        self.picture(tab, "narrow")

    def test_without_uplot(self):
        # As of a build that has none: its script is not in the page.
        path = self.report("plain", "sim", "--topology", "dgx1-v100", "--size",
                      "4KiB..64MiB", "--algorithm", "ring", "optimal")
        text = path.read_text(encoding="utf-8")
        pieces = re.split(r"(?=<script )", text)
        kept = [piece for piece in pieces if "var uPlot=" not in piece]
        path.write_text("".join(kept), encoding="utf-8")
        tab = self.browser.open(path)
        self.assertEqual(tab.js("typeof uPlot"), "undefined")
        self.assertEqual(self.count(tab, ".curves .plot svg"), 2)
        curves = len(data_of(path)["charts"][0]["curves"])
        self.assertEqual(self.count(tab, ".curves .plot polyline"), 2 * curves)
        tab.hover(".curves .plot svg", 0.2, 0.5)
        tab.wait("document.querySelector('.readout h3').textContent !== '64 MiB'")
        tab.click(".legend button")
        self.assertEqual(self.count(tab, ".curves .plot polyline"), 2 * (curves - 1))
        self.picture(tab, "without-uplot")
        self.check_quiet(tab)

    def test_cluster(self):
        tab, data = self.open("cluster", "sim", "--topology", "dgx-h100:nodes=16", "--size", "64MiB",
                              "--algorithm", "ring")
        self.assertIn("hosts", [node["kind"] for node in data["machines"][0]["nodes"]])
        self.assertEqual(self.count(tab, ".machine .node"), len(data["machines"][0]["nodes"]))
        # What folded hosts are joined by is one link, and it carries something.
        fold = next(i for i, node in enumerate(data["machines"][0]["nodes"]) if node["kind"] == "hosts")
        links = data["machines"][0]["links"]
        joins = {i for i, link in enumerate(links) if fold in (link["a"], link["b"])}
        carrying = {link for channel in data["runs"][0]["channels"] for link in channel["forward"]}
        self.assertTrue(joins & carrying)
        self.picture(tab, "cluster")

    def test_tune(self):
        tab, data = self.open("tune", "tune", "--topology", "v100-pcie", "--size", "4KiB..4MiB",
                              "--algorithm", "ring", "all_pairs")
        self.assertEqual(data["verb"], "tune")
        curves = {curve["name"]: curve for curve in data["charts"][0]["curves"]}
        self.assertEqual(curves["ring"]["kind"], "candidate")
        self.assertTrue({"the choice", "NCCL", "bound", "ring", "all_pairs"} <= set(curves))
        for curve in curves.values():
            for point in curve["points"] if curve["kind"] == "candidate" else []:
                self.assertIn("--algorithm " + curve["name"], point["command"])
        self.assertIn("--algorithm nccl", curves["NCCL"]["points"][0]["command"])
        self.assertTrue(all(point["chosen"].startswith(("ring", "all_pairs"))
                            for point in curves["the choice"]["points"]))
        # NCCL is beside the choice, and the constants of the profile have grades.
        self.assertEqual(len(data["runs"]), 2)
        self.assertTrue(all(run["proof"]["certificate"] for run in data["runs"]))
        figures = {one["name"]: one for one in data["provenance"]["machines"][0]["profiles"][0]["figures"]}
        self.assertEqual(figures["call_overhead_us"]["grade"], "fitted")
        tab.js("[...document.querySelectorAll('.provenance summary')].find((one) => one.textContent.startsWith('Constants')).click()")
        tab.wait("document.querySelector('.provenance details[open] tbody tr') !== null")
        self.assertEqual(self.count(tab, ".provenance details[open] tbody tr"), len(figures))
        self.picture(tab, "tune")

    def test_many_candidates(self):
        tab, data = self.open("candidates", "tune", "--topology", "v100-pcie", "--size", "4KiB,4MiB",
                              width=390, height=800)
        self.assertGreater(len([one for one in data["charts"][0]["curves"] if one["kind"] == "candidate"]), 20)
        self.assertLess(self.count(tab, ".legend > button"), 12)
        tab.click(".legend summary")
        before = self.count(tab, ".legend button[aria-pressed=true]")
        tab.click(".legend details button")
        self.assertEqual(self.count(tab, ".legend button[aria-pressed=true]"), before + 1)
        self.assertLessEqual(self.overflow(tab), 0)

    def test_plan(self):
        tab, data = self.open("plan", "plan", "--topology", "dgx1-v100", "--algorithm", "optimal")
        plan = data["plans"][0]
        self.assertGreater(len(plan["report"]["trees"]), 1)
        self.assertEqual(self.count(tab, ".machine select option"), len(plan["report"]["trees"]) + 1)
        self.choose(tab, ".machine select[aria-label=tree]", 0)
        self.assertEqual(self.count(tab, ".machine .tree"), len(plan["report"]["trees"][0]["edges"]))
        # A link that is clicked says what it costs in the proof.
        self.assertEqual(plan["proof"]["kind"], "lp")
        prices = {one["link"]: one["price"] for one in plan["proof"]["prices"]}
        # Of a direction, where only that one costs anything.
        one = next(one for one in plan["proof"]["prices"] if "->" in one["name"])
        for link, said in ((one["link"], f"crossing {one['name']} costs {one['price']:g}"),
                           (next(i for i in range(100) if i not in prices), "crossing it is free")):
            self.press_link(tab, link)
            self.assertIn(said, self.text(tab, ".machine .in-proof"))
        self.picture(tab, "plan")

    def test_prices(self):
        tab, data = self.open("prices", "plan", "--topology", "dgx1-p100", "--collective", "allgather",
                              "--algorithm", "optimal")
        prices = data["plans"][0]["proof"]["prices"]
        self.assertEqual(data["plans"][0]["proof"]["kind"], "lp")
        self.assertGreater(len(prices), 0)
        self.assertEqual(self.count(tab, ".machine .price"), len({one["link"] for one in prices}))
        self.picture(tab, "prices")

    def test_train(self):
        tab, data = self.open("train", "train", "--model", "resnet50", "--topology", "dgx1-v100",
                              "--fusion", "16MiB")
        self.assertEqual(self.count(tab, ".iteration rect:not(.exposed)"),
                         1 + len(data["iterations"][0]["buckets"]))
        self.assertEqual(self.count(tab, ".timelines canvas"), 1)
        # Links that are busy for a moment bind nothing.
        facts = {fact["label"]: fact for fact in data["verdict"]["facts"]}
        self.assertNotIn("binding links", facts)
        self.assertRegex(facts["busiest links"]["detail"], r"^busy [\d.]+ % of the iteration$")
        self.picture(tab, "train")

    def test_run(self):
        tab, data = self.open("run", "run", "ring-allreduce")
        self.assertGreater(len(data["expectations"]), 0)
        self.assertEqual(self.count(tab, ".expectations tbody tr"), len(data["expectations"]))
        self.assertEqual(self.count(tab, ".curves"), len(data["charts"]))
        self.assertIn("over NCCL", [fact["label"] for fact in data["verdict"]["facts"]])
        self.picture(tab, "run")

    def test_exec(self):
        tab, data = self.open("exec", "exec", "--ranks", "3", "--algorithm", "ring", "--size",
                              "1KiB,64KiB", "--iters", "2")
        self.assertTrue(all(curve["kind"] == "measured" for curve in data["charts"][0]["curves"]))
        self.assertIn("every element right", data["verdict"]["text"])
        self.assertEqual(self.count(tab, ".timelines canvas"), 1)
        self.picture(tab, "exec")

    def test_compare(self):
        tab, data = self.open("compare", "compare", "--ranks", "2", "--algorithm", "ring", "--size",
                              "64KiB,1MiB", "--iters", "2")
        self.assertEqual([run["backend"] for run in data["runs"]], ["sim", "host"])
        self.assertEqual(self.count(tab, ".timelines canvas"), 2)
        self.assertIn("off by", data["verdict"]["text"])
        curves = {curve["kind"]: curve for curve in data["charts"][0]["curves"]}
        # The bound is a curve, and every point has the line that makes it, on a machine that is probed again.
        self.assertEqual(len(curves["bound"]["points"]), 2)
        for kind in ("predicted", "measured"):
            for point in curves[kind]["points"]:
                self.assertEqual(point["command"], f"espalier compare --ranks 2 --algorithm ring --size {point['size']}")
        # What was measured has the colour of what is simulated, and other dashes.
        strokes = tab.js("""[...document.querySelectorAll('.legend line')].map((line) =>
            [line.getAttribute("stroke"), line.getAttribute("stroke-dasharray")])""")
        self.assertEqual(strokes[0][0], strokes[1][0])
        self.assertNotEqual(strokes[0][1], strokes[1][1])
        self.picture(tab, "compare")

    def test_compare_with_a_log(self):
        tab, data = self.open("log", "compare", "--measured", str(HERE.parent / "golden/inputs/nccl.log"),
                              "--topology", "dgx1-v100", "--algorithm", "nccl")
        self.assertEqual([run["backend"] for run in data["runs"]], ["sim"])
        curves = {curve["kind"]: curve for curve in data["charts"][0]["curves"]}
        self.assertIn("espalier sim --topology dgx1-v100", curves["predicted"]["points"][0]["command"])
        self.assertNotIn("command", curves["measured"]["points"][0])
        for point in curves["predicted"]["points"]:  # bench is drawn, shares are those of a call
            self.assertEqual(point["time_us"], point["bench_us"])
            self.assertAlmostEqual(point["speedup"], 1, 3)
        self.assertEqual(self.count(tab, ".machine svg"), 1)
        self.picture(tab, "log")


if __name__ == "__main__":
    main()
