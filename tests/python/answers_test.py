#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulations, sweeps, plans, tuning and pages: what comes out, and as what."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

import espalier as es
from rings import ring


class Machines(unittest.TestCase):
    def test_catalogue_with_what_ifs(self):
        machine = es.Machine("dgx1-v100:without=gpu0-gpu3")
        self.assertEqual(machine.gpus, [f"gpu{number}" for number in range(8)])
        self.assertEqual((machine.name, machine.hosts), ("dgx1-v100:without=gpu0-gpu3", 1))
        self.assertIn("dgx1-v100", es.machines())

    def test_files_of_ours_and_of_others(self):
        with tempfile.TemporaryDirectory() as folder:
            matrix = os.path.join(folder, "smi.txt")
            with open(matrix, "w") as file:
                file.write("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
                           "GPU0\t X \tNV2\t0-15\t0\nGPU1\tNV2\t X \t0-15\t0\n")
            self.assertEqual(len(es.Machine(matrix).gpus), 2)
            self.assertTrue(es.Machine(matrix).notes)
            topology = os.path.join(folder, "mine.yaml")
            with open(topology, "w") as file:
                file.write("schema: espalier.topology/1\nname: mine\nnodes:\n  - {name: a, kind: gpu}\n"
                           "  - {name: b, kind: gpu}\nlinks:\n"
                           "  - {a: a, b: b, kind: nvlink2, gbps: 25}\n")
            self.assertEqual(es.Machine(pathlib.Path(topology)).gpus, ["a", "b"])


class Simulations(unittest.TestCase):
    machine = es.Machine("dgx1-v100")
    program = ring.build(4)

    def test_figures(self):
        result = self.program.simulate(self.machine, "64MiB")
        self.assertEqual(result.size, 64 << 20)
        self.assertAlmostEqual(result.algbw, (64 << 20) / result.time * 1e-9)
        self.assertAlmostEqual(result.busbw, result.algbw * 3 / 4)
        self.assertAlmostEqual(result.bound.fraction, result.bound.time / result.time)
        self.assertGreater(result.bound.certificate, "")
        self.assertTrue(0 < result.error < 1)
        self.assertEqual(sorted(link.utilization for link in result.links),
                         [link.utilization for link in reversed(result.links)])
        self.assertIsNone(result.wrong)
        self.assertIsNone(result.speedup)
        self.assertAlmostEqual(result.record["time_s"], result.time, delta=1e-9 * result.time)

    def test_arguments_are_taken_in_all_their_forms(self):
        simulate = self.program.simulate
        expected = simulate(self.machine, "1MiB").time
        for size in (1 << 20, "1MiB", numpy.int64(1 << 20)):
            self.assertEqual(simulate(self.machine, size).time, expected)
        for machine in ("dgx1-v100", pathlib.PurePath("dgx1-v100")):
            self.assertEqual(simulate(machine, "1MiB").time, expected)
        for gpus in ("0-3", "0,1,2,3", [0, 1, 2, 3], range(4), numpy.arange(4)):
            self.assertEqual(simulate(self.machine, "1MiB", gpus=gpus).time, expected)
        self.assertEqual(simulate(self.machine, "1MiB", chunk="auto").time, expected)
        self.assertEqual(simulate(self.machine, "1MiB", chunk="64KiB").chunk, 1 << 16)
        self.assertEqual(simulate(self.machine, "1MiB", profile="copy_engine").profile, "copy_engine")
        self.assertGreater(simulate(self.machine, "1MiB", nccl=True).speedup, 0)

    def test_the_command_line_says_the_same(self):
        program = os.environ.get("ESPALIER_PROGRAM")
        if not program:
            self.skipTest("no program is named")
        result = es.simulate(self.machine, "allreduce", "16MiB", "ring", gpus="0-3")
        ran = subprocess.run([program, "sim", "--topology", "dgx1-v100", "--algorithm", "ring",
                              "--size", "16MiB", "--gpus", "0-3", "--no-nccl", "--json", "-"],
                             capture_output=True, text=True, check=True)
        said = json.loads(ran.stdout)
        record = result.record
        while "results" in said or isinstance(said, list):
            said = said["results"][0] if isinstance(said, dict) else said[0]
        for record_or_said in (record, said):
            record_or_said.pop("wall_s")
        self.assertEqual(record, said)

    def test_execution(self):
        result = self.program.execute("1MiB", dtype="half", op="max", iterations=2, warmup=1)
        self.assertEqual(result.wrong, 0)
        self.assertEqual(self.program.execute(1024, dtype="float16").record["dtype"], "half")
        self.assertGreater(result.time, 0)
        self.assertEqual((result.error, result.links), (None, []))
        with self.assertRaisesRegex(es.Error, "no bound is known of what was run"):
            result.bound

    def test_programs_are_called_as_their_authors_say(self):
        @es.algorithm("allgather", blocks=8)
        def other(p, n):
            for rank in range(n):
                for to in range(1, n):
                    p.rank(rank).copy(block=range(2 * rank, 2 * rank + 2), to=(rank + to) % n)
        programs = [ring.build(4), other.build(4, name="ring"), other.build(4, name="two.2")]
        for order in (programs, programs[::-1]):
            machine = es.Machine("dgx1-v100")
            table = es.sweep(machine, "allgather", algorithms=order, gpus="0-3")
            times = dict(zip([id(program) for program in order], table["time_s"]))
            self.assertEqual(times[id(programs[1])], times[id(programs[2])])
            self.assertNotEqual(times[id(programs[0])], times[id(programs[1])])
            self.assertEqual(list(table["algorithm"]), [f"./{program.name}" for program in order])
            self.assertEqual(order[0].simulate(machine, 1024).algorithm, "./" + order[0].name)
        # What is written again is the same program.
        table = es.sweep("dgx1-v100", "allgather", algorithms=[ring.build(4), ring.build(4)], gpus="0-3")
        self.assertEqual(list(table["algorithm"]), ["./ring"])
        skipped = es.sweep("dgx1-v100", "allgather", algorithms=[programs[0], "ring"], nccl=False).skipped
        self.assertEqual([one["algorithm"] for one in skipped], ["./ring"])

    def test_timelines(self):
        with tempfile.TemporaryDirectory() as folder:
            plain, small = os.path.join(folder, "all.json"), os.path.join(folder, "some.json.gz")
            result = self.program.simulate(self.machine, "1MiB")
            self.assertEqual(result.trace(plain, ops=0), 0)
            left_out = result.trace(small, ops=2)
            with open(plain) as file:
                events = json.load(file)["traceEvents"]
            with gzip.open(small, "rt") as file:
                fewer = json.load(file)["traceEvents"]
            ran = [event for event in events if event["ph"] == "X"]
            self.assertEqual(left_out, len(ran) - 2)
            self.assertEqual(len([event for event in fewer if event["ph"] == "X"]), 2)
            with self.assertRaisesRegex(es.Error, "an execution has no timeline"):
                self.program.execute(1024).trace(plain)
            with self.assertRaisesRegex(es.Error, "must not be negative"):
                result.trace(plain, ops=-1)

    def test_more_programs_than_a_study_keeps(self):
        first = ring.build(3)
        time = first.simulate(self.machine, "1MiB").time
        for number in range(300):
            ring.build(3, name=f"ring{number}").simulate(self.machine, "1MiB", chunk=0)
        self.assertEqual(first.simulate(self.machine, "1MiB").time, time)
        table = es.sweep(self.machine, "allgather", sizes=1024, gpus="0-2", nccl=False,
                         algorithms=[ring.build(3, name=f"ring{number}") for number in range(300)])
        self.assertEqual(len(set(table["time_s"])), 1)
        self.assertEqual(len(table), 300)


class Sweeps(unittest.TestCase):
    machine = es.Machine("dgx1-v100")

    def test_sizes(self):
        self.assertEqual(es.sizes("1KiB", "4KiB"), [1024, 2048, 4096])
        self.assertEqual(es.sizes(1000, 3000), [1000, 2000])
        self.assertEqual(es.sizes("1MB"), [1000000])
        with self.assertRaises(es.Error):
            es.sizes("4KiB", "1KiB")

    def test_columns(self):
        table = es.sweep(self.machine, "allgather", sizes=["64KiB", "1MiB"],
                         algorithms=["nccl", ring.build(4)], gpus="0-3", jobs=2)
        self.assertEqual(len(table), 4)
        self.assertEqual(table["size_bytes"].dtype, numpy.int64)
        self.assertEqual(list(table["size_bytes"]), [65536, 65536, 1 << 20, 1 << 20])
        self.assertEqual(table["busbw_gbps"].dtype, float)
        self.assertEqual(table["algorithm"][1], "./ring")
        self.assertEqual(table["gpus"][0], "0-3")
        self.assertNotIn("wrong", table.columns)
        self.assertAlmostEqual(table.best().time, min(table["time_s"][2:]), delta=1e-12)
        self.assertEqual(table.best(65536).size, 65536)
        with self.assertRaises(KeyError):
            table.best(1)
        with self.assertRaisesRegex(ValueError, "the table is empty"):
            es.Table([]).best()

    def test_workers_change_nothing(self):
        tables = [es.sweep(self.machine, sizes=es.sizes("1KiB", "8KiB"), gpus=range(4), jobs=jobs,
                           algorithms=["ring", "chain", "auto:ring|chain"]) for jobs in (1, 2)]
        self.assertEqual(list(tables[0]["time_s"]), list(tables[1]["time_s"]))

    def test_all_leaves_out_what_is_not_possible(self):
        table = es.sweep(self.machine, "allreduce", sizes=1024, gpus="0-3", nccl=False)
        self.assertIn("nvls", [one["algorithm"] for one in table.skipped])
        self.assertIn("ring", table["algorithm"])
        self.assertNotIn("speedup", table.columns)

    def test_a_budget_limits_the_search(self):
        table = es.sweep(self.machine, sizes=["1MiB"], algorithms=["ring", "optimal"], budget=0)
        self.assertGreaterEqual(len(table), 1)
        self.assertTrue(table.results[0].record["budget"]["ran_out"])

    def test_several_machines(self):
        machines = [self.machine, "dgx1-v100:nvlink2.gbps=x2"]
        table = es.sweep(machines, sizes="64MiB", algorithms="nccl_rings", links="fabric", nccl=False)
        self.assertEqual(list(table["topology"]), ["dgx1-v100", "dgx1-v100:nvlink2.gbps=x2"])
        self.assertEqual(len(es.sweep("dgx1-v100", sizes="64MiB", algorithms="nccl_rings")), 1)
        self.assertLess(table["time_s"][1], table["time_s"][0])

    def test_what_can_be_gone_through_once_is_for_all_machines(self):
        machines = [es.Machine("ring:n=4"), es.Machine("ring:n=4,gbps=50")]
        table = es.sweep(machines, sizes=(size for size in ("1KiB", "2KiB")),
                         algorithms=(name for name in ["ring"]))
        self.assertEqual(len(table), 4)

    def test_sizes_may_be_those_of_numpy(self):
        machine = es.Machine("ring:n=4")
        expected = es.simulate(machine, "allreduce", 4096, "ring").time
        self.assertEqual(es.simulate(machine, "allreduce", numpy.int64(4096), "ring").time, expected)

    def test_a_negative_number_of_workers_is_an_error(self):
        machine = es.Machine("ring:n=4")
        for ask in (es.sweep, es.tune):
            with self.assertRaises(es.Error) as raised:
                ask(machine, "allreduce", sizes=[1024], algorithms="ring", jobs=-1)
            self.assertEqual(raised.exception.kind, "usage")

    def test_pandas_is_imported_for_data_frames_alone(self):
        ran = subprocess.run(
            [sys.executable, "-c",
             "import sys, espalier as es; table = es.sweep(es.Machine('dgx1-v100'), algorithms='ring');"
             "print('pandas' in sys.modules)"], capture_output=True, text=True, check=True)
        self.assertEqual(ran.stdout, "False\n")
        try:
            import pandas
        except ImportError:
            self.skipTest("there is no pandas")
        frame = es.sweep(self.machine, sizes=[1024, 2048], algorithms="ring").to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame["size_bytes"]), [1024, 2048])


class Plans(unittest.TestCase):
    machine = es.Machine("dgx1-v100")

    def test_a_plan_reaches_its_bound(self):
        plan = es.plan(self.machine, "broadcast", root=2, links="fabric")
        self.assertAlmostEqual(plan.rate, plan.bound)
        self.assertEqual(plan.fraction, 1)
        self.assertIn("gpu", plan.certificate)
        self.assertEqual({tree["root"] for tree in plan.trees}, {"gpu2"})
        program = plan.program()
        program.verify(self.machine).raise_for_errors()
        self.assertEqual((program.collective, program.root), ("broadcast", 2))

    def test_it_outlives_what_it_was_made_of(self):
        plan = es.plan(es.Machine("ring:n=4"), "allreduce")
        self.assertIn("gpu0", str(plan.record["trees"]))

    def test_its_program_goes_to_mscclpp(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ar.json")
            machine = es.Machine("dgx-a100")
            notes = es.plan(machine, links="fabric").program().export(path, machine=machine)
            # MSCCL++ chooses ways over the machine by itself.
            said = es.plan(machine).program().export(os.path.join(folder, "fabric.json"))
            self.assertIn('links="fabric"', said[0])
            self.assertTrue(notes)
            with open(path) as file:
                self.assertEqual(json.load(file)["collective"], "allreduce")


class Tuning(unittest.TestCase):
    def test_choices_and_what_others_read_of_them(self):
        machine = es.Machine("dgx1-v100")
        tuning = es.tune(machine, sizes=["4KiB", "16MiB"], algorithms=["ring", "nccl_rings"], nccl=False)
        self.assertEqual([choice.size for choice in tuning.choices], [4096, 16 << 20])
        self.assertLessEqual({row["algorithm"].split(":")[0] for row in tuning.rows},
                             {"ring", "nccl_rings"})
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "tuned.yaml")
            tuning.export(table)
            again = es.simulate(machine, "allreduce", "16MiB", "tuned:" + table)
            self.assertEqual(again.time, tuning.choices[1].time)
            rows = os.path.join(folder, "nccl_tuner.conf")
            tuning.export(rows)
            with open(rows) as file:
                self.assertIn("\nallreduce,0,", file.read())
            with self.assertRaisesRegex(es.Error, "does not say in which format"):
                tuning.export(os.path.join(folder, "tuned.xls"))


    def test_a_budget_limits_the_search(self):
        tuning = es.tune("dgx1-v100", sizes=["1MiB"], algorithms=["ring", "optimal"], budget=0)
        self.assertEqual([choice.size for choice in tuning.choices], [1 << 20])
        self.assertTrue(tuning.choices[0].record["budget"]["ran_out"])
        with self.assertRaisesRegex(es.Error, "a budget is seconds"):
            es.tune("dgx1-v100", budget=-1)


if __name__ == "__main__":
    unittest.main()
