#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is wrong, and where: exceptions with every problem, and lines of Python."""

import inspect
import os
import tempfile
import unittest

import espalier as es
from rings import ring


def line_here():
    return inspect.currentframe().f_back.f_lineno


class Errors(unittest.TestCase):
    def raised(self, function, *arguments, **keywords):
        with self.assertRaises(es.Error) as caught:
            function(*arguments, **keywords)
        return caught.exception

    def test_problems_name_the_line_of_the_op(self):
        lines = []

        @es.algorithm("allreduce", blocks=1)
        def twice(p, n):
            for _ in range(2):
                p.rank(1).reduce(block=0, to=0); lines.append(line_here())
            p.rank(0).copy(block=0, to=1)
        verdict = twice.build(2).verify()
        self.assertFalse(verdict)
        problem = verdict.problems[0]
        self.assertEqual((problem.rule, problem.file, problem.line), ("R7", __file__, lines[0]))
        error = self.raised(verdict.raise_for_errors)
        self.assertEqual(len(error.diagnostics), len(verdict.problems))
        self.assertIn(f"{__file__}:{lines[0]}: error: ", str(error))
        self.assertEqual(error.kind, "input")

    def test_what_concerns_no_op_names_the_function(self):
        @es.algorithm("broadcast")
        def nothing(p, n):
            pass
        problem = nothing.build(2).verify().problems[0]
        self.assertEqual((problem.rule, problem.file), ("R7", __file__))
        self.assertEqual(problem.line, nothing.function.__code__.co_firstlineno)

    def test_a_machine_without_a_way_names_the_line(self):
        @es.algorithm("broadcast", blocks=1)
        def across(p, n):
            p.rank(0).copy(block=0, to=2); across.line = line_here()
            for rank in (1, 3):
                p.rank(2).copy(block=0, to=rank)
        machine = es.Machine("line:n=4")
        problem = across.build(4).verify(machine).problems[0]
        self.assertEqual((problem.rule, problem.line), ("R10", across.line))
        error = self.raised(across.build(4).simulate, machine, "1MiB")
        self.assertEqual((error.kind, error.diagnostics[0].line), ("unsupported", across.line))

    def test_a_way_over_what_is_not_there_names_the_line(self):
        @es.algorithm("broadcast", blocks=1)
        def over(p, n):
            p.rank(0).copy(block=0, to=1)
            p.rank(1).copy(block=0, to=2, via="gpu9"); over.line = line_here()
        machine = es.Machine("dgx1-v100")
        problem = over.build(3).verify(machine).problems[0]
        self.assertEqual((problem.rule, problem.file, problem.line), ("R10", __file__, over.line))
        error = self.raised(over.build(3).simulate, machine, 1024)
        self.assertEqual((error.kind, error.diagnostics[0].line), ("unsupported", over.line))

    def test_verify_and_simulate_agree_on_how_many_gpus(self):
        program = ring.build(3)
        for gpus, ranks in (("0-3", 4), ("0-1", 2), (None, 2)):
            machine = "dgx1-v100" if gpus else "line:n=2"
            problem, = program.verify(machine, gpus=gpus).problems
            self.assertEqual((problem.rule, problem.message),
                             ("R10", f"the program is for 3 ranks, not for {ranks}"))
            error = self.raised(program.simulate, machine, "1MiB", gpus=gpus)
            self.assertEqual((error.kind, error.diagnostics[0].message), ("unsupported", problem.message))
        for gpus in (None, "0-2", [5, 6, 7]):
            self.assertTrue(program.verify("dgx1-v100", gpus=gpus))

    def test_mistakes_of_a_call_are_not_the_author_s(self):
        program = es.algorithm("broadcast", blocks=1)(
            lambda p, n: p.rank(0).copy(block=0, to=1)).build(2)
        machine = es.Machine("dgx1-v100")
        for call in (lambda: program.simulate(machine, 1024, profile="kernl"),
                     lambda: program.simulate(machine, 1024, gpus=[0, 0]),
                     lambda: program.simulate(machine, 1024, gpus=[0, 99]),
                     lambda: program.simulate(machine, 1024, gpus=[0, 1, 2]),
                     lambda: program.verify(machine, gpus=[0]).raise_for_errors(),
                     lambda: program.execute(1024, iterations=0),
                     lambda: program.execute(1024, backend="mpi")):
            error = self.raised(call)
            self.assertEqual([(one.file, one.line) for one in error.diagnostics],
                             [("", 0)] * len(error.diagnostics), str(error))

    def test_wrong_programs_are_not_run(self):
        wrong = es.algorithm("allreduce")(lambda p, n: None).build(2)
        self.assertEqual(self.raised(wrong.execute, 1024).kind, "input")
        self.assertEqual(self.raised(wrong.simulate, es.Machine("dgx1-v100"), 1024).kind, "input")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "wrong.xml")
            self.assertEqual(self.raised(wrong.export, path).kind, "input")
            self.assertFalse(os.path.exists(path))

    def test_misuse_by_an_author(self):
        def said(write, collective="allreduce", **keywords):
            error = self.raised(es.algorithm(collective, **keywords)(write).build, 4)
            self.assertEqual((error.kind, error.diagnostics[0].file), ("usage", __file__))
            return error.diagnostics[0].message
        self.assertEqual(said(lambda p, n: p.rank(4)), "there is no rank 4")
        self.assertEqual(said(lambda p, n: p.rank(0).copy(block=4, to=1)), "there is no block 4")
        self.assertEqual(said(lambda p, n: p.rank(0).copy(block=0, to=-1)), "there is no rank -1")
        self.assertEqual(said(lambda p, n: p.rank(1).input(0), "broadcast"),
                         "rank 1 has no block 0 in its input")
        self.assertEqual(said(lambda p, n: p.copy(p.rank(0).input(range(2)), p.rank(1).output(0))),
                         "slices of 2 blocks and of 1 block in one op")
        self.assertEqual(said(lambda p, n: p.copy(p.rank(0).input(1), p.rank(1).output(0))),
                         "blocks that are different parts of the message in one op")
        self.assertEqual(said(lambda p, n: p.rank(0).copy(block=range(0, 4, 2), to=1)),
                         "range(0, 4, 2) is not a range of blocks")
        self.assertEqual(said(lambda p, n: p.rank(0).copy(block=[0, 1], to=1)), "[0, 1] is not a block")
        self.assertEqual(said(lambda p, n: p.rank(0).scratch(1.5)), "1.5 is not a block")
        self.assertEqual(said(lambda p, n: p.rank(0).copy(block=0, to="1")), "'1' is not a place")
        self.assertEqual(said(lambda p, n: p.rank(0).combine(block=0, sources=[1, None])),
                         "None is not a place")
        self.assertEqual(said(lambda p, n: p.rank(0).combine(block=0, sources=1)),
                         "1 is not a list of places")
        self.assertEqual(said(lambda p, n: p.host().combine(block=0, sources=[])),
                         "no source is given, and host memory 0 has nothing of block 0")
        self.assertEqual(said(lambda p, n: p.rank(0).copy(block=1, to=1), "alltoall"),
                         "what is block b of a rank's input is another block of a result in alltoall")

    def test_contracts_that_cannot_be(self):
        def said(collective, ranks, **keywords):
            blocks = keywords.pop("blocks", None)

            def build():
                build.first = line_here()
                made = es.algorithm(collective, blocks=blocks)(lambda p, n: None)
                return made.build(ranks, **keywords)
            error = self.raised(build)
            problem = error.diagnostics[0]
            self.assertEqual((error.kind, problem.file), ("usage", __file__))
            self.assertIn(problem.line, (build.first + 1, build.first + 2))
            return str(error)
        self.assertIn("did you mean 'allreduce'?", said("alreduce", 2))
        self.assertIn("0 blocks", said("broadcast", 2, blocks=0))
        self.assertIn("0 blocks", said("broadcast", 2, blocks=lambda n: 0))
        self.assertIn("'a b' is not a name of a program", said("broadcast", 2, name="a b"))
        self.assertIn("0 ranks", said("allreduce", 0))
        self.assertIn("root 2 is not one of the ranks", said("broadcast", 2, root=2))
        self.assertIn("allgather of 3 blocks on 2 ranks", said("allgather", 2, blocks=3))

    def test_what_is_no_function(self):
        async def waits(p, n):
            pass
        for function, what in ((3, "3 is no function"), (waits, "waits is async")):
            error = self.raised(es.algorithm("broadcast"), function)
            self.assertIn(what, str(error))
            self.assertEqual(error.diagnostics[0].file, __file__)

    def test_machines(self):
        self.assertIn("no machine is named", str(self.raised(es.Machine, "")))
        self.assertEqual(self.raised(es.sweep, "dgx1-v10").diagnostics[0].suggestion,
                         "did you mean 'dgx1-v100'?")
        with self.assertRaises(TypeError):
            es.Machine(3)
        error = self.raised(es.Machine, "dgx1-v10")
        self.assertEqual(error.diagnostics[0].suggestion, "did you mean 'dgx1-v100'?")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.yaml")
            with open(path, "w") as file:
                file.write("schema: espalier.topology/1\nnme: x\nlinks: 3\n")
            error = self.raised(es.Machine, path)
            self.assertEqual(error.kind, "input")
            self.assertGreater(len(error.diagnostics), 1)
            self.assertEqual({problem.file for problem in error.diagnostics}, {path})
            self.assertIn(2, [problem.line for problem in error.diagnostics])

    def test_arguments(self):
        program = es.algorithm("broadcast", blocks=1)(
            lambda p, n: p.rank(0).copy(block=0, to=1)).build(2)
        machine = es.Machine("dgx1-v100")
        self.assertIn("'64MiBB' is not a size", str(self.raised(program.simulate, machine, "64MiBB")))
        self.assertIn("-1 is not a size", str(self.raised(program.simulate, machine, -1)))
        self.assertIn("'0-' is not a set of GPUs",
                      str(self.raised(program.simulate, machine, 1, gpus="0-")))
        self.assertIn("unknown link scope 'fabrik'",
                      str(self.raised(program.simulate, machine, 1, links="fabrik")))
        self.assertIn("the program is for 2 ranks",
                      str(self.raised(program.simulate, machine, 1, gpus=[0, 1, 2])))
        self.assertIn("unknown type", str(self.raised(program.execute, 1, dtype="flot")))
        self.assertIn("did you mean 'half'?", str(self.raised(program.execute, 1, dtype="fp16")))
        self.assertIn("unknown backend", str(self.raised(program.execute, 1, backend="hosst")))
        with self.assertRaises(TypeError):
            program.simulate(machine, 1.5)
        with self.assertRaises(TypeError):
            program.simulate(machine, True)
        self.assertIn("no_such", str(self.raised(es.sweep, machine, algorithms=["no_such"])))
        self.assertIn("plans no trees", str(self.raised(es.plan, machine, algorithm="ring")))
        self.assertIn("does not say in which format", str(self.raised(program.export, "x.y")))

    def test_wrong_types_are_said_in_a_line(self):
        def said(function, *arguments, **keywords):
            with self.assertRaises(TypeError) as caught:
                function(*arguments, **keywords)
            self.assertLess(len(str(caught.exception)), 150)
            return str(caught.exception)
        self.assertIn("1000000.0 is not a size: a number of bytes, or text",
                      said(es.simulate, "dgx1-v100", "allreduce", 1e6))
        self.assertIn("1.5 is not a size", said(es.sweep, "dgx1-v100", sizes=["1MiB", 1.5]))
        self.assertIn("3 is not a machine: ", said(es.sweep, 3))
        self.assertIn("3 is not a name or a path", said(es.Machine, 3))
        self.assertIn("collective is 3, and no text", said(es.simulate, "dgx1-v100", 3, "1MiB"))
        self.assertIn("profile is None, and no text", said(es.tune, "dgx1-v100", profile=None))
        self.assertIn("links is 3, and no text", said(es.compare, "dgx1-v100", links=3))
        self.assertIn("3 is not an algorithm", said(es.sweep, "dgx1-v100", algorithms=3))
        self.assertIn("build(ranks) makes a program of it", said(es.sweep, "dgx1-v100", algorithms=[ring]))
        self.assertIn("0.5 is not the number of a GPU", said(es.sweep, "dgx1-v100", gpus=[0.5]))
        self.assertIn("3 is not a set of GPUs", said(es.sweep, "dgx1-v100", gpus=3))
        self.assertIn("1.5 is not a size: auto", said(es.sweep, "dgx1-v100", chunk=1.5))
        self.assertIn("3 cannot be drawn", said(es.report, [3], "report.html"))

    def test_tables_say_how_they_are_read(self):
        table = es.sweep("dgx1-v100", sizes="1MiB", algorithms="ring")
        with self.assertRaisesRegex(TypeError, "0 is none: rows are in `results`"):
            table[0]
        with self.assertRaisesRegex(KeyError, "there is no column 'busbw': .*busbw_gbps"):
            table["busbw"]
        self.assertIn("no machine is given", str(self.raised(es.sweep, [])))

    def test_hints_are_for_python(self):
        program = ring.build(3)
        error = self.raised(program.simulate, "dgx1-v100", 1024, profile="ideal", gpus=[0, 1])
        self.assertNotIn("--", str(error))
        error = self.raised(es.sweep, "line:n=4,gbps=10", "broadcast", algorithms=program)
        self.assertNotIn("--", str(error))
        error = self.raised(es.simulate, "dgx1-v100", "allreduce", 1024, "ring", links="fabric",
                            gpus=[0, 5])
        hint = error.diagnostics[0].suggestion
        self.assertIn('relays="all"', hint)
        self.assertIn(hint, str(error))
        self.assertIn(hint, str(error.diagnostics[0]))

    def test_a_finished_sketch_takes_no_more_ops(self):
        kept = []

        @es.algorithm("allgather")
        def keeps(p, n):
            kept.append(p)
            kept.append(p.rank(0))
            ring.function(p, n)
        keeps.build(3)
        p, rank = kept
        for add in (lambda: p.rank(1), lambda: rank.copy(block=0, to=1),
                    lambda: rank.combine(block=0, sources=[]), lambda: p.host()):
            error = self.raised(add)
            self.assertEqual(error.diagnostics[0].file, __file__)
            self.assertIn("keeps is finished", str(error))

    def test_nothing_that_can_run(self):
        error = self.raised(es.simulate, es.Machine("dgx1-v100"), "allreduce", "1MiB", "nvls")
        self.assertEqual(error.kind, "unsupported")
        self.assertIn("nvls is not possible here", str(error))


if __name__ == "__main__":
    unittest.main()
