#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What works is what the stubs say: mypy reads the examples of docs/python.md, and calls in all forms.

Without mypy (Debian's package of that name) it is skipped.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import espalier
from documents_test import examples

# Parameters of algorithms have no types in the examples, for whoever reads them; mypy is told.
TYPED = (re.compile(r"^(\s*def \w+)\(p, n((?:, \w+)*)\)", re.M),
         lambda found: found[1] + "(p: es.Sketch, n: int" + re.sub(r"(\w+)", r"\1: int", found[2]) + ") -> None")

FORMS = """
import pathlib
import numpy
import espalier as es

@es.algorithm("allreduce", blocks=numpy.int64(1))
def server(p: es.Sketch, n: int) -> None:
    p.host().combine(block=0, sources=range(n))
    p.host().combine(block=numpy.int64(0), sources=(1, p.rank(2)))
    p.rank(0).combine(block=range(1), sources=(rank for rank in range(1, n)))
    p.rank(numpy.int32(0)).combine(block=0, sources=numpy.arange(1, n))
    p.in_switch((p.rank(0).input(0),), [p.rank(1).output(0)])
    p.host().copy(block=0, to=numpy.int64(1), via="sw0")

program = server.build(numpy.int64(4), root=numpy.int32(0), name="mine")
program.verify(pathlib.Path("mine.yaml"), gpus=range(4), relays=(4, 5))
program.simulate("dgx1-v100", numpy.int64(4096), gpus=numpy.arange(4), chunk="auto")
program.simulate(es.Machine(pathlib.Path("mine.yaml")), "1MiB", gpus="0-3", chunk=0)
program.execute("1MiB", iterations=numpy.int64(2), devices=(0, 1))
es.sweep(["dgx1-v100", es.Machine("dgx-a100")], sizes=numpy.array([1024]), algorithms=("ring", program))
es.simulate("dgx1-v100", "allreduce", numpy.int64(1024), program, gpus=(0, 1, 2, 3))
es.tune("dgx1-v100", sizes=range(1024, 4096, 1024), algorithms=("ring",), budget=3)
es.plan("dgx1-v100", gpus={0, 1}, budget=1.5).program().export(pathlib.Path("plan.esp"))
es.report((program.simulate("dgx1-v100", 1024),), pathlib.Path("report.html"))
"""

TOUR = """
import espalier as es
m = es.Machine("dgx1-v100:without=gpu0-gpu3")
df = es.sweep(m, "allreduce", sizes=es.sizes("1KiB", "1GiB"), algorithms="all", gpus="0-5", jobs=2).to_pandas()
@es.algorithm("allgather")
def ring(p: es.Sketch, n: int) -> None:
    for step in range(n - 1):
        for r in range(n):
            p.rank(r).copy(block=(r - step) % n, to=(r + 1) % n)
prog = ring.build(ranks=6)
prog.verify(m, gpus="0-5").raise_for_errors()
r = prog.simulate(m, "64MiB")
print(r.busbw, r.bound.fraction, r.error, r.links)
plan = es.plan(m, "allreduce")
print(plan.rate, plan.certificate)
plan.program().export("ar.json")
es.tune(m, "allreduce").export("nccl_tuner.conf")
es.report([r, plan], "report.html")
print(prog.execute("64MiB").wrong)
"""

WRONG = """
import espalier as es
es.Machine("dgx1-v100").simulate
es.plan("dgx1-v100", budget="long")
es.sizes(1.5)
"""


@unittest.skipIf(shutil.which("mypy") is None, "there is no mypy")
class Types(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def checked(self, *options, **files):
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text)
        package = pathlib.Path(espalier.__file__).parent.parent
        ran = subprocess.run(
            ["mypy", "--strict", *options, "--python-executable", sys.executable, "--cache-dir",
             package / ".mypy_cache"] + [f"{name}.py" for name in files],
            cwd=self.folder, env={**os.environ, "MYPYPATH": str(package)}, capture_output=True, text=True)
        self.assertEqual(ran.stderr, "")
        return [line for line in ran.stdout.splitlines() if ": error: " in line]

    def test_examples(self):
        files = {}
        for name, text, _ in examples():
            code = "\n".join(line[4:] for line in text.split("\n") if line.startswith((">>> ", "... ")))
            files[re.sub(r"\W", "_", name)] = re.sub(*TYPED, code)
        self.assertGreaterEqual(len(files), 5)
        self.assertTrue(all("p: es.Sketch" in text for text in files.values() if "@es.algorithm" in text))
        # They have lambdas of their own.
        self.assertEqual(self.checked("--allow-untyped-calls", **files), [])

    def test_calls_pass_as_strictly_as_can_be(self):
        self.assertEqual(self.checked(forms=FORMS, tour=TOUR), [])

    def test_what_is_wrong_is_found(self):
        lines = [int(line.split(":")[1]) for line in self.checked(wrong=WRONG)]
        self.assertEqual(lines, [3, 4, 5])


if __name__ == "__main__":
    unittest.main()
