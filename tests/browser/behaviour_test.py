#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of unusual questions in a real browser, on unusual windows and paper: several machines, nothing to
send, clusters, hostile names; and how long a page takes to be seen.

    behaviour_test.py ESPALIER [TEST...]
"""

import json
import pathlib
import re
import zlib

from pages import PageCase, data_of, main, with_data

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


class Behaviour(PageCase):
    def beside(self, name, kind, first, second):
        """A page that shows what two commands do, the second on a machine of its own."""
        path = self.report(name, *first)
        data = data_of(path)
        other = data_of(self.report(name + "-other", *second))
        for one in other[kind]:
            one["machine"] += len(data["machines"])
            data[kind].append(one)
        data["machines"] += other["machines"]
        with_data(path, data)
        return self.browser.open(path), data

    def test_runs_on_two_machines(self):
        common = ("--size", "1MiB", "--algorithm", "ring", "--no-nccl")
        tab, data = self.beside("two", "runs", ("sim", "--topology", "dgx1-v100", *common),
                                ("sim", "--topology", "dgx-a100", *common))
        options = tab.js("[...document.querySelectorAll('.machine select option')].map((one) => one.text)")
        self.assertEqual(options, ["ring on dgx1-v100", "ring on dgx-a100"])
        self.press_link(tab, 0)
        for run in (1, 0):
            self.choose(tab, ".machine select", run)
            machine = data["machines"][data["runs"][run]["machine"]]
            self.assertEqual(self.count(tab, ".machine .node"), len(machine["nodes"]))
            self.assertEqual(self.count(tab, ".machine .hit"), len(machine["links"]))
            self.assertIn(machine["title"], self.text(tab, ".machine .note"))
            # The link that was chosen is one of the other machine.
            self.assertEqual(self.count(tab, ".machine .hit.chosen"), 0)
        self.check_quiet(tab)
        # Brushing a timeline shows its run.
        tab.drag(".timelines canvas", 0.15, 0.25, 0.3, at=1)
        self.assertEqual(tab.js("document.querySelector('.machine select').value"), "1")
        self.assertEqual(self.count(tab, ".machine .node"), len(data["machines"][1]["nodes"]))
        whole = tab.js(f"time({data['runs'][1]['time_us']})")
        self.assertTrue(self.text(tab, ".machine .window").endswith("of " + whole))
        self.check_quiet(tab)

    def test_runs_of_one_name_are_told_apart(self):
        common = ("sim", "--topology", "dgx1-v100", "--size", "1MiB", "--algorithm", "ring", "--no-nccl")
        tab, _ = self.beside("alike", "runs", common, (*common, "--gpus", "0-3"))
        options = tab.js("[...document.querySelectorAll('.machine select option')].map((one) => one.text)")
        self.assertEqual(options, ["ring on dgx1-v100, 8 GPUs", "ring on dgx1-v100, 4 GPUs"])
        # A timeline that is higher than its window says so.
        self.assertEqual(tab.js("[...document.querySelectorAll('.timelines figure > .note')].map((one) => one.hidden)"),
                         [frame["scroll"] <= frame["client"] + 1 for frame in tab.js(
                             "[...document.querySelectorAll('.timeline')].map((one) => ({ scroll: one.scrollHeight, client: one.clientHeight }))")])
        self.check_quiet(tab)

    def test_plans_on_two_machines(self):
        tab, data = self.beside("plans", "plans", ("plan", "--topology", "dgx1-v100", "--algorithm", "optimal"),
                                ("plan", "--topology", "dgx-a100", "--algorithm", "optimal"))
        self.choose(tab, ".machine select[aria-label=plan]", 1)
        self.choose(tab, ".machine select[aria-label=tree]", 0)
        self.assertEqual(self.count(tab, ".machine .tree"), len(data["plans"][1]["report"]["trees"][0]["edges"]))
        self.assertEqual(self.count(tab, ".machine .node"), len(data["machines"][1]["nodes"]))
        self.check_quiet(tab)

    def test_a_time_that_the_other_run_does_not_have(self):
        path = self.report("later", "compare", "--ranks", "2", "--algorithm", "ring", "--size", "64KiB", "--iters", "1")
        data = data_of(path)
        data["runs"][1]["time_us"] = 100 * data["runs"][0]["time_us"]  # what was executed took much longer
        with_data(path, data)
        tab = self.browser.open(path)
        tab.drag(".timelines canvas", 0.6, 0.8, 0.5, at=1)
        self.assertRegex(self.text(tab, ".machine .window"), r"^ring, simulated is over at [\d.]+ ")
        self.assertEqual(tab.js("""[...document.querySelectorAll(".machine .layer-flow line")]
            .filter((one) => Number(one.getAttribute("stroke-width")) > 0).length"""), 0)
        self.check_quiet(tab)

    def test_what_a_cut_counts(self):
        for topology, words in (("dgx-h100:nodes=2", ()), ("gb200-nvl72", ("--collective", "broadcast")),
                                ("dgx1-v100", ("--gpus", "0-3", "--collective", "broadcast"))):
            tab, data = self.open("cut", "sim", "--topology", topology, "--size", "1MiB", "--algorithm", "ring",
                                  "--no-nccl", *words)
            proof = data["runs"][0]["proof"]
            self.assertIn(proof["kind"], ("cut", "partition"))
            # What is marked adds up to what the certificate says.
            marked = set(tab.js("[...document.querySelectorAll('.crossing')].map((one) => Number(one.dataset.link))"))
            self.assertEqual(marked, {link for one in proof["counted"] for link in one["on"]})
            stated = float(re.search(r"carry ([0-9.e+]+) GB/s", proof["certificate"]).group(1))
            self.assertAlmostEqual(sum(one["gbps"] for one in proof["counted"]) / stated, 1, 4)
            # And a link that is clicked says so, or that it is not counted.
            links = range(len(data["machines"][0]["links"]))
            for link, says in ((min(marked), "that proves the bound counts "),
                               (next(i for i in links if i not in marked), "that proves the bound does not count it")):
                self.press_link(tab, link)
                self.assertIn(says, self.text(tab, ".machine .in-proof"), topology)

    def test_nothing_to_send(self):
        for name, words in (("one-gpu", ("sim", "--topology", "dgx1-v100", "--gpus", "0", "--size", "1MiB")),
                            ("one-rank", ("exec", "--ranks", "1", "--size", "1KiB", "--iters", "1")),
                            ("no-bytes", ("sim", "--topology", "dgx1-v100", "--size", "0", "--algorithm", "ring"))):
            tab, data = self.open(name, *words)
            self.assertGreater(self.count(tab, ".curves .plot rect"), 0, name)
            self.assertNotIn("NaN", tab.js("document.querySelector('.curves').outerHTML"))
            self.assertNotIn("proof by a )", json.dumps(data["verdict"]))
        # Beside other sizes there is no place for 0 on the axis.
        tab, data = self.open("some-bytes", "sim", "--topology", "dgx1-v100", "--size", "0,1KiB,1MiB",
                              "--algorithm", "ring", "nccl")
        self.assertEqual(self.count(tab, ".curves canvas, .curves .plot svg"), 2)
        self.assertIn("0 bytes has no place", self.text(tab, ".curves"))
        tab.click(".curves details summary")
        tab.wait("document.querySelector('.curves details table tbody tr') !== null")
        self.assertEqual(self.count(tab, ".curves details tbody tr"),
                         sum(len(curve["points"]) for curve in data["charts"][0]["curves"]))
        self.check_quiet(tab)

    def test_bands_of_many_curves(self):
        path = self.report("bands", "sim", "--topology", "dgx1-v100", "--size", "1KiB,1MiB,64MiB", "--algorithm", "all")
        text = path.read_text(encoding="utf-8")  # as plain SVG, whose bands can be counted
        path.write_text("".join(piece for piece in re.split(r"(?=<script )", text) if "var uPlot=" not in piece),
                        encoding="utf-8")
        tab = self.browser.open(path)
        self.assertGreater(len(data_of(path)["charts"][0]["curves"]), 9)
        self.assertEqual(self.count(tab, ".curves figure:first-child .band"), 2)
        self.assertIn("of the fastest and of NCCL", self.text(tab, ".curves .bands"))

    def test_a_cluster_on_paper(self):
        tab, _ = self.open("paper", "sim", "--topology", "dgx-h100:nodes=16", "--size", "64MiB", "--algorithm", "ring")
        # On a screen it is wider than the window, which is said.
        self.assertTrue(tab.js("document.querySelector('.machine figure').scrollWidth > "
                               "document.querySelector('.machine figure').clientWidth"))
        self.assertIn("scroll it sideways", self.text(tab, ".machine figure p:not([hidden])"))
        tab.resize(720, 1000)
        tab.call("Emulation.setEmulatedMedia", media="print")
        right = tab.js("""Math.max(...[...document.querySelectorAll(".machine .node")]
            .map((one) => one.getBoundingClientRect().right))""")
        self.assertLessEqual(right, 720)
        self.assertEqual(tab.js("getComputedStyle(document.querySelector('.machine figure')).overflowX"), "visible")
        self.picture(tab, "paper")
        tab.call("Emulation.setEmulatedMedia", media="")

    def test_narrow_windows(self):
        for name, words in (("cluster", ("sim", "--topology", "dgx-h100:nodes=16", "--size", "64MiB", "--algorithm",
                                         "ring")),
                            ("study", ("run", "ring-allreduce")),
                            ("long-name", ("sim", "--topology", "dgx1-v100", "--size", "1MiB", "--algorithm",
                                           "auto:ring|nccl_rings|hierarchical_leaders|double_binary_tree")),
                            ("training", ("train", "--model", "resnet50", "--topology", "dgx1-v100", "--algorithm",
                                          "ring", "hierarchical_leaders")),
                            ("curves", ("sim", "--topology", "dgx-a100", "--size", "1KiB..1MiB", "--algorithm", "ring",
                                        "nccl"))):
            tab, _ = self.open("narrow-" + name, *words, width=320, height=700)
            self.assertLessEqual(self.overflow(tab), 0, name)
            self.picture(tab, "narrow-" + name)

    def test_tables_say_what_is_missing(self):
        tab, data = self.open("tables", "sim", "--topology", "dgx-h100:nodes=2", "--size", "64MiB", "--algorithm",
                              "ring", "--no-nccl", "--chunk", "64KiB")
        run = data["runs"][0]
        self.assertGreater(run["ops_in_rows"], len(run["ops"]["id"]))
        self.assertIn(f"{len(run['ops']['id'])} of their {run['ops_in_rows']} ops", self.text(tab, ".timelines figcaption"))
        self.assertTrue(all("busy" in row for row in run["rows"]))
        tab.click(".timelines details summary")
        tab.wait("document.querySelector('.timelines details tbody tr') !== null")
        self.assertEqual(self.count(tab, ".timelines details[open] tbody tr"), 1000)
        self.assertEqual(self.text(tab, ".timelines details[open] .note"), f"The first 1000 of {len(run['ops']['id'])}.")

    def test_a_link_marks_its_ops(self):
        tab, data = self.open("marks", "sim", "--topology", "dgx1-v100", "--size", "1MiB", "--algorithm", "ring",
                              "--no-nccl")
        pixels = """(() => {
            const canvas = document.querySelector(".timelines canvas");
            return [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data].reduce((a, b) => a + b);
        })()"""
        before = tab.js(pixels)
        channel = data["runs"][0]["channels"][0]
        self.press_link(tab, (channel["forward"] + channel["backward"])[0])
        self.assertNotEqual(tab.js(pixels), before)

    def test_hostile_names(self):
        folder = pathlib.Path(self.folder.name)
        name = json.dumps(HOSTILE)
        machine = folder / "<img src=x onerror=alert(3)>'$(x).yaml"
        machine.write_text(f"""schema: espalier.topology/1
name: hostile
title: {name}
sources: [{name}]
nodes:
  - {{name: "gpu[0-1]", kind: gpu}}
links:
  - {{a: gpu0, b: gpu1, kind: nvlink2, gbps: 25, latency_us: 0.5}}
""")
        program = folder / "<img src=x onerror=alert(4)>.esp"
        program.write_text("""program </script><script>
collective allreduce
ranks 2
units 1
0: r1.tmp[0] <- r0.in[0]
1: r1.out[0] <- r1.in[0] + r1.tmp[0] after 0
2: r0.out[0] <- r1.out[0] after 1
""")
        tab, data = self.open("hostile", "sim", "--topology", str(machine), "--algorithm", "ring", str(program),
                              "--size", "1MiB")
        self.assertIn(HOSTILE, json.dumps(data).replace('\\"', '"'))
        self.assertEqual(self.count(tab, "img"), 0)
        self.assertEqual(self.count(tab, "script:not([nonce])"), 1)  # the data
        for part in (".provenance", ".machine", "h1"):
            self.assertIn("<img src=x", self.text(tab, part))
        machine_text = machine.read_bytes()
        self.assertIn({"name": str(machine), "bytes": len(machine_text), "crc32": f"{zlib.crc32(machine_text):08x}"},
                      data["provenance"]["inputs"])
        self.assertIn(str(program), [one["name"] for one in data["provenance"]["inputs"]])
        self.check_quiet(tab)

    def test_is_seen_at_once(self):
        path = self.report("fast", "sim", "--topology", "dgx-h100:nodes=16", "--size", "1KiB..64MiB", "--algorithm",
                           "ring", "hierarchical")
        seen = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime || 0"
        times = []
        for _ in range(3):  # on a busy computer the best of them says what the page takes
            tab = self.browser.open(path)
            tab.wait(f"({seen}) > 0")
            times.append(tab.js(seen))
        self.assertLess(min(times), 1000)


if __name__ == "__main__":
    main()
