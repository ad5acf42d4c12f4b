#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages for a browser: what is on them, and what it came from."""

import base64
import inspect
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest
import zlib

import espalier as es
import rings
from rings import ring


def data_of(path):
    """What the page shows."""
    packed = re.search(r'id="data">([^<]*)<', pathlib.Path(path).read_text())[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def commands_of(data):
    return [point["command"] for chart in data["charts"] for curve in chart["curves"]
            for point in curve["points"] if "command" in point]


class Pages(unittest.TestCase):
    def test_results_plans_and_tables(self):
        machine = es.Machine("dgx1-v100")
        program = ring.build(4)
        result = program.simulate(machine, "1MiB")
        table = es.sweep(machine, "allgather", sizes=es.sizes("1KiB", "4KiB"), algorithms=["ring"],
                         gpus="0-3")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            for items in (result, table, [result, es.plan(machine, gpus="0-3"), table],
                          [program.execute(1024)]):
                with self.subTest(items=items):
                    es.report(items, path, title="mine")
                    with open(path) as file:
                        self.assertIn("<title>", file.read())
            for nothing in ([], es.Table([])):
                with self.assertRaisesRegex(es.Error, "nothing to report"):
                    es.report(nothing, path)

    def reported(self, items):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "report.html")
        es.report(items, path)
        return data_of(path)

    def test_points_have_the_lines_that_ask_for_them(self):
        table = es.sweep("dgx1-v100", "allgather", sizes=["1KiB", "1MiB"], algorithms=["ring"], gpus="0-3",
                         profile="ideal", nccl=True)
        data = self.reported(table)
        line = "espalier sim --topology dgx1-v100 --gpus 0-3 --profile ideal --collective allgather"
        self.assertEqual([one for one in commands_of(data) if "--algorithm ring" in one],
                         [f"{line} --algorithm ring --size {size}" for size in (1024, 1 << 20)])
        program = os.environ.get("ESPALIER_PROGRAM")
        if not program:
            self.skipTest("no program is named")
        for command, result in zip(commands_of(data), table):
            words = shlex.split(command)
            ran = subprocess.run([program, *words[1:], "--json", "-"], capture_output=True, text=True,
                                 check=True)
            self.assertAlmostEqual(json.loads(ran.stdout)["results"][0]["time_s"], result.time, delta=1e-6 * result.time)

    def test_provenance_names_what_answers_come_from(self):
        program = ring.build(4)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.esp")
            program.export(path)
            loaded = es.Program.load(path)
            here = inspect.currentframe().f_lineno + 1
            data = self.reported([program.simulate("dgx1-v100", 1024), loaded.simulate("dgx1-v100", 4096)])
            self.assertEqual([one for one in commands_of(data) if path in one], [
                f"espalier sim --topology dgx1-v100 --gpus 0-3 --collective allgather --algorithm {path} "
                "--size 4096"])
        where = f"{rings.__file__}:{ring.function.__code__.co_firstlineno}"
        self.assertIn(f"# ring is written in {where}", commands_of(data))
        provenance = data["provenance"]
        inputs = {file["name"]: file["bytes"] for file in provenance["inputs"]}
        self.assertEqual(inputs, {__file__: os.path.getsize(__file__), path: inputs[path],
                                  rings.__file__: os.path.getsize(rings.__file__)})
        reporting = Pages.reported.__code__
        self.assertRegex(provenance["command"], f"^espalier.report in {re.escape(__file__)}:[0-9]+$")
        line = int(provenance["command"].rsplit(":", 1)[1])
        self.assertTrue(reporting.co_firstlineno < line < here)
        self.assertEqual([machine["name"] for machine in provenance["machines"]], ["dgx1-v100"])

    def test_plans_have_lines_and_several_machines_are_not_called_one(self):
        plans = [es.plan("dgx1-v100", "broadcast", root=2, gpus="0-3", links="fabric"),
                 es.plan("dgx1-v100:without=gpu0-gpu3")]
        provenance = self.reported(plans)["provenance"]
        self.assertTrue(provenance["command"].endswith(
            "; espalier plan --topology dgx1-v100 --gpus 0-3 --links fabric --collective broadcast --root 2 "
            "--algorithm optimal; "
            "espalier plan --topology dgx1-v100:without=gpu0-gpu3 --algorithm optimal"), provenance["command"])
        self.assertEqual([machine["name"] for machine in provenance["machines"]],
                         ["dgx1-v100", "dgx1-v100:without=gpu0-gpu3"])

    def test_every_profile_has_its_constants(self):
        data = self.reported([es.simulate("dgx1-v100", "allreduce", "1MiB", "ring", profile=profile)
                              for profile in ("kernel", "copy_engine", "kernel")])
        machine, = data["provenance"]["machines"]
        self.assertEqual([profile["name"] for profile in machine["profiles"]], ["kernel", "copy_engine"])
        for profile in machine["profiles"]:
            self.assertTrue(all(one["grade"] for one in profile["constants"] + profile["figures"]))

    def test_the_verdict_is_about_what_the_title_names(self):
        result = es.simulate("dgx1-v100", "allgather", "1MiB", "ring", gpus="0-3")
        plan = es.plan("dgx1-v100", "allreduce")
        data = self.reported([plan, result])
        self.assertTrue(data["title"].startswith("allgather on"), data["title"])
        self.assertTrue(data["verdict"]["text"].startswith("ring moves 1 MiB"), data["verdict"]["text"])
        facts = {fact["label"]: fact for fact in data["verdict"]["facts"]}
        self.assertEqual(facts["verified"]["value"], "yes")
        self.assertIn("optimal plans allreduce", facts["plan"]["detail"])
        self.assertTrue(self.reported([plan])["verdict"]["text"].startswith("optimal plans allreduce"))


if __name__ == "__main__":
    unittest.main()
