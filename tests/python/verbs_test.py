#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training, fits, probing and comparisons: what the command line says, as objects."""

import gzip
import json
import os
import pathlib
import pickle
import subprocess
import tempfile
import unittest

import espalier as es
from rings import ring_allreduce

LOG = pathlib.Path(__file__).resolve().parents[1] / "scenarios" / "measured" / "a100x8_all_reduce.txt"


def in_folder(test):
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    return pathlib.Path(folder.name)


def said_by_the_command_line(test, *words):
    """The first result of its JSON."""
    program = os.environ.get("ESPALIER_PROGRAM")
    if not program:
        test.skipTest("no program is named")
    ran = subprocess.run([program, *words, "--json", "-"], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


class Training(unittest.TestCase):
    machine = es.Machine("dgx1-v100")

    def test_figures_are_those_of_the_command_line(self):
        trained = es.train(self.machine, "resnet50", "ring", gpus="0-3", batch=32, fusion="16MiB")
        said = said_by_the_command_line(
            self, "train", "--model", "resnet50", "--topology", "dgx1-v100", "--algorithm", "ring", "--gpus",
            "0-3", "--batch", "32", "--fusion", "16MiB")["results"][0]
        record = trained.record
        for one in (record, said):
            one.pop("wall_s")
        self.assertEqual(record, said)
        self.assertEqual((trained.model, trained.algorithm, trained.batch, trained.ranks),
                         ("resnet50", "ring", 32, 4))
        self.assertAlmostEqual(trained.exposed + trained.compute, trained.time)
        self.assertAlmostEqual(trained.exposed + trained.hidden, trained.communication)
        self.assertAlmostEqual(trained.samples_per_s * trained.time, 4 * 32)
        self.assertEqual(len(trained.buckets), len(record["buckets"]))

    def test_a_time_may_be_given(self):
        trained = es.train(self.machine, "vgg16", compute=0.1, batch=32, gpus="0-1", overlap=False)
        self.assertAlmostEqual(trained.compute, 0.1)
        self.assertEqual(trained.hidden, 0)
        for wrong, what in (({"compute": 0.1}, "also needs a batch"),
                            ({"compute": 0, "batch": 1}, "0 s for an iteration"),
                            ({"compute": 1, "batch": 1, "gpu_type": "v100"}, "exclude each other"),
                            ({"batch": 0}, "a batch of 0 samples"),
                            ({"dtype": "flot"}, "unknown type")):
            with self.assertRaisesRegex(es.Error, what):
                es.train(self.machine, "vgg16", **wrong)
        with self.assertRaisesRegex(es.Error, "did you mean 'resnet50'"):
            es.train(self.machine, "resnet5")

    def test_copies_traces_and_pages(self):
        folder = in_folder(self)
        trained = es.train("dgx1-v100", "lenet", compute=1e-3, batch=8, gpus="0-1")
        back = pickle.loads(pickle.dumps(trained))
        self.assertEqual((back.record, repr(back)), (trained.record, repr(trained)))
        back.trace(folder / "one.json.gz")
        with gzip.open(folder / "one.json.gz", "rt") as file:
            names = {event.get("name") for event in json.load(file)["traceEvents"]}
        self.assertTrue(any("forward" in str(name) for name in names), names)
        es.report([trained, back], folder / "report.html")
        self.assertIn("training lenet on dgx1-v100", (folder / "report.html").read_text())


class Fits(unittest.TestCase):
    def test_a_log(self):
        folder = in_folder(self)
        # Fewer times take less time.
        rows = [line for line in LOG.read_text().splitlines(True)
                if line.startswith("#") or int(line.split()[0]) in (8, 32768, 1 << 20, 1 << 24, 1 << 26)]
        log = folder / "few.log"
        log.write_text("".join(rows))
        fitted = es.fit(log, "dgx-a100", nccl_version="2.11")
        said = said_by_the_command_line(self, "fit", str(log), "--topology", "dgx-a100", "--nccl-version",
                                        "2.11")
        self.assertEqual(fitted.record, said)
        self.assertEqual(fitted.times, said["results"])
        self.assertEqual(fitted.constants, said["constants"])
        self.assertEqual(len(fitted.times), 5)
        back = pickle.loads(pickle.dumps(fitted))
        self.assertEqual((back.record, back.profile, back.notes),
                         (fitted.record, fitted.profile, fitted.notes))
        fitted.export(folder / "fitted.yaml")
        time = es.simulate("dgx-a100", "allreduce", "64MiB", "nccl",
                           profile=str(folder / "fitted.yaml")).time
        self.assertGreater(time, 0)

    def test_what_is_no_log(self):
        with self.assertRaises(es.Error) as raised:
            es.fit([LOG, __file__], "dgx-a100")
        self.assertEqual((raised.exception.kind, raised.exception.diagnostics[0].file), ("input", __file__))
        with self.assertRaisesRegex(es.Error, "no log is given"):
            es.fit([], "dgx-a100")
        with self.assertRaisesRegex(es.Error, "not a version of NCCL"):
            es.fit(LOG, "dgx-a100", nccl_version="new")


class Here(unittest.TestCase):
    """Times differ from run to run; what they are of does not."""

    machine = es.Machine("full:n=2,gbps=10")

    def test_probing(self):
        folder = in_folder(self)
        survey = es.probe(ranks=1)
        self.assertEqual(len(survey.machine.gpus), 1)
        self.assertEqual(survey.record["schema"], "espalier.probe/1")
        survey.export(folder / "here.yaml")
        for machine in (es.Machine(folder / "here.yaml"), pickle.loads(pickle.dumps(survey)).machine):
            self.assertEqual(es.simulate(machine, "allgather", "1MiB", "ring").time,
                             es.simulate(survey.machine, "allgather", "1MiB", "ring").time)
        self.assertEqual(es.doubts(survey.machine), [])

    def test_what_cannot_be_probed(self):
        for wrong, what in (({"backend": "sim"}, "executes nothing"), ({"backend": "hosst"}, "host"),
                            ({"devices": [0]}, "has no devices"), ({"ranks": 0}, "0 ranks"),
                            ({"ranks": 1000}, "at most")):
            with self.assertRaisesRegex(es.Error, what):
                es.probe(**wrong)

    def test_comparisons(self):
        folder = in_folder(self)
        rows = es.compare(self.machine, sizes=["4KiB", "64KiB"], iterations=3,
                          algorithms=["ring", ring_allreduce.build(2, name="mine")])
        self.assertEqual([(row.measured.size, row.measured.algorithm) for row in rows],
                         [(4096, "ring"), (4096, "./mine"), (65536, "ring"), (65536, "./mine")])
        for row in rows:
            self.assertEqual((row.measured.wrong, row.predicted.size), (0, row.measured.size))
            self.assertEqual(row.measured.record["iters"], 3)
            record = row.measured.record
            errors = [row.predicted.time / record[name] - 1 for name in ("max_time_s", "min_time_s")]
            self.assertTrue(errors[0] - 1e-6 <= row.error <= errors[1] + 1e-6, (row.error, errors))
        back = pickle.loads(pickle.dumps(rows))
        self.assertEqual([row.measured.record for row in back], [row.measured.record for row in rows])
        es.report(rows, folder / "compare.html")
        self.assertIn("allreduce on", (folder / "compare.html").read_text())

    def test_what_cannot_be_compared(self):
        for wrong, what in (({"machine": "ring:n=2", "ranks": 2}, "exclude each other"),
                            ({"sizes": []}, "no size"), ({"algorithms": ["rin"]}, "ring"),
                            ({"backend": "sim"}, "executes nothing")):
            with self.assertRaisesRegex(es.Error, what):
                es.compare(**{"machine": self.machine, **wrong})


if __name__ == "__main__":
    unittest.main()
