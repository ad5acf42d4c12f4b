#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machines, programs and answers go to other processes and come back, and can be copied."""

import copy
import multiprocessing
import os
import pathlib
import pickle
import tempfile
import unittest

import espalier as es
from rings import ring

MACHINE = "dgx1-v100:without=gpu0-gpu3"


def simulate(question):
    machine, program, size = question
    return program.simulate(machine, size)


def complain(collective):
    return es.simulate(MACHINE, collective, 1024)


def copies(one):
    return pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)


class Copies(unittest.TestCase):
    def test_pools_of_processes(self):
        machine = es.Machine(MACHINE)
        program = ring.build(4)
        questions = [(machine, program, size) for size in es.sizes("1KiB", "8KiB")]
        expected = [simulate(question).record for question in questions]
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                found = pool.map(simulate, questions)
            for one, alone in zip(found, expected):
                one = one.record
                one.pop("wall_s")
                self.assertEqual(one, {key: alone[key] for key in one})

    def test_errors_come_back_from_other_processes(self):
        with multiprocessing.get_context("fork").Pool(1) as pool:
            with self.assertRaises(es.Error) as raised:
                pool.map(complain, ["alreduce"])
        self.assertEqual(raised.exception.kind, "usage")
        self.assertEqual(raised.exception.diagnostics[0].suggestion, "did you mean 'allreduce'?")

    def test_machines(self):
        machine = es.Machine(MACHINE)
        for one in copies(machine):
            self.assertEqual((one.name, one.gpus, repr(one)), (MACHINE, machine.gpus, repr(machine)))
            self.assertEqual(es.simulate(one, "allreduce", 4096, "ring").time,
                             es.simulate(machine, "allreduce", 4096, "ring").time)

    def test_machines_of_files_are_found_from_any_folder(self):
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            pathlib.Path(folder, "mine.yaml").write_text(
                "schema: espalier.topology/1\nname: mine\nnodes:\n  - {name: a, kind: gpu}\n"
                "  - {name: b, kind: gpu}\nlinks:\n  - {a: a, b: b, kind: nvlink2, gbps: 25}\n")
            os.chdir(folder)
            machine = es.Machine("mine.yaml:nvlink2.gbps=x2")
            pickled = pickle.dumps(machine)
            os.chdir(other)
            back = pickle.loads(pickled)
            time = es.simulate(back, "broadcast", "64MiB", "chain", profile="ideal").time
            self.assertAlmostEqual(time, (64 << 20) / 50e9, delta=0.01 * time)
            os.chdir(here)
        self.assertEqual(back.gpus, ["a", "b"])

    def test_programs(self):
        program = ring.build(4, in_place=True, name="mine")
        for one in copies(program):
            self.assertEqual((str(one), repr(one)), (str(program), repr(program)))
            one.verify(MACHINE).raise_for_errors()
            self.assertEqual(one.simulate(MACHINE, "1MiB").record["algorithm"], "./mine")

        @es.algorithm("allreduce", blocks=1)
        def wrong(p, n):
            p.rank(1).reduce(block=0, to=0)
            p.rank(1).reduce(block=0, to=0)
        known = [str(problem) for problem in wrong.build(2).verify().problems]
        for one in copies(wrong.build(2)):
            self.assertEqual([str(problem) for problem in one.verify().problems], known)

    def test_programs_of_other_formats(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ring.xml")
            ring.build(4).export(path, machine=MACHINE, gpus="0-3")
            loaded = es.Program.load(path)
            back = pickle.loads(pickle.dumps(loaded))
        self.assertEqual(back.simulate(MACHINE, "1MiB").time, loaded.simulate(MACHINE, "1MiB").time)

    def test_algorithms_are_found_by_their_names(self):
        for one in copies(ring):
            self.assertIs(one, ring)

    def test_results(self):
        for result in (ring.build(4).simulate(MACHINE, "1MiB", nccl=True),
                       es.simulate(MACHINE, "allreduce", "1MiB", "auto:ring|optimal"),
                       ring.build(4).execute(4096, iterations=3)):
            for one in copies(result):
                self.assertEqual(repr(one), repr(result))
                self.assertEqual(one.record, result.record)
                self.assertEqual([repr(link) for link in one.links], [repr(link) for link in result.links])
                if result.wrong is None:  # executions have no bound
                    self.assertEqual(repr(one.bound), repr(result.bound))
                self.assertEqual((one.wrong, one.error, one.speedup),
                                 (result.wrong, result.error, result.speedup))

    def test_parts_of_results(self):
        result = ring.build(4).simulate(MACHINE, "1MiB")
        for link in copies(result.links[0]):
            self.assertEqual((link.name, link.bytes, link.busy), (
                result.links[0].name, result.links[0].bytes, result.links[0].busy))
        for bound in copies(result.bound):
            self.assertEqual((bound.certificate, bound.fraction, bound.time, bound.exact), (
                result.bound.certificate, result.bound.fraction, result.bound.time, result.bound.exact))
        verdict = ring.build(4).verify()
        for one in copies(verdict):
            self.assertEqual((one.ok, one.order_consistent, one.is_exact),
                             (verdict.ok, verdict.order_consistent, verdict.is_exact))

    def test_tables_share_their_machine(self):
        table = es.sweep(MACHINE, "allreduce", sizes=["1KiB", "1MiB"],
                         algorithms=["ring", "nvls"], nccl=False)
        for one in copies(table):
            self.assertEqual(list(one["time_s"]), list(table["time_s"]))
            self.assertEqual((repr(one), one.skipped), (repr(table), table.skipped))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            es.report(pickle.loads(pickle.dumps(table)), path)
            self.assertIn("<title>", pathlib.Path(path).read_text())

    def test_plans(self):
        for links in ("all", "fabric"):
            plan = es.plan("dgx-a100", "allreduce", gpus="0-3", links=links)
            for one in copies(plan):
                self.assertEqual((one.record, repr(one)), (plan.record, repr(plan)))
                self.assertEqual(str(one.program()), str(plan.program()))
            # Its program remembers what else formats may be given.
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "plan.json")
                program = pickle.loads(pickle.dumps(plan.program()))
                self.assertEqual(program.export(path), plan.program().export(path))

    def test_tunings(self):
        tuning = es.tune(MACHINE, sizes=["4KiB", "1MiB"], algorithms=["ring", "chain"], nccl=False)
        for one in copies(tuning):
            self.assertEqual((one.rows, repr(one)), (tuning.rows, repr(tuning)))
            self.assertEqual([choice.record for choice in one.choices],
                             [choice.record for choice in tuning.choices])
            with tempfile.TemporaryDirectory() as folder:
                written = [pathlib.Path(folder, name) for name in ("a.yaml", "b.yaml")]
                one.export(written[0])
                tuning.export(written[1])
                self.assertEqual(written[0].read_text(), written[1].read_text())


if __name__ == "__main__":
    unittest.main()
