#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Algorithms written in Python: what they may say, and that it is proved and executed right."""

import functools
import os
import tempfile
import unittest

import espalier as es
from rings import ring, ring_allreduce


@es.algorithm("reducescatter")
def pairwise(p, n):
    for rank in range(n):
        p.rank(rank).combine(block=rank, sources=[(rank + d) % n for d in range(1, n)])


@es.algorithm("alltoall")
def direct(p, n):
    for rank in range(n):
        for other in range(n):
            if other != rank:
                p.copy(p.rank(rank).input(other), p.rank(other).output(rank))


@es.algorithm("sendrecv", blocks=1)
def neighbours(p, n):
    for rank in range(n):
        p.copy(p.rank(rank).input(0), p.rank((rank + 1) % n).output(0))


def star(collective, blocks=None):
    """All to or from the root, which has what the collective gives it."""
    def function(p, n):
        each = p.blocks // n
        for rank in range(n):
            if rank == p.root:
                continue
            own = range(rank * each, (rank + 1) * each)
            if collective == "broadcast":
                p.rank(p.root).copy(block=range(p.blocks), to=rank)
            elif collective == "reduce":
                p.rank(rank).reduce(block=range(p.blocks), to=p.root)
            elif collective == "gather":
                p.rank(rank).copy(block=own, to=p.root)
            else:
                p.rank(p.root).copy(block=own, to=rank)
    function.__name__ = f"star_{collective}"
    return es.algorithm(collective, blocks=blocks)(function)


ALL = [ring, ring_allreduce, pairwise, direct, neighbours] + [
    star(collective) for collective in ("broadcast", "reduce", "gather", "scatter")]


class Algorithms(unittest.TestCase):
    def test_every_collective_is_proved_and_executed(self):
        for algorithm in ALL:
            for ranks in (1, 2, 3, 5):
                for in_place in (False, True):
                    with self.subTest(algorithm=algorithm, ranks=ranks, in_place=in_place):
                        in_place_fits = algorithm is not direct and algorithm is not neighbours
                        if in_place and not in_place_fits:
                            continue  # rank after rank would write over what is still to be sent
                        program = algorithm.build(ranks, root=ranks // 2, in_place=in_place)
                        program.verify(exact=True).raise_for_errors()
                        self.assertEqual(program.execute(1037).wrong, 0)

    def test_blocks_are_a_number_or_a_function_of_the_ranks(self):
        def blocks_of(algorithm, ranks):
            seen = []
            es.algorithm("broadcast", blocks=algorithm)(lambda p, n: seen.append(p.blocks)).build(ranks)
            return seen[0]
        self.assertEqual([blocks_of(None, 3), blocks_of(4, 3), blocks_of(lambda n: 2 * n, 3)], [3, 4, 6])

    def test_parameters_go_to_the_function(self):
        @es.algorithm("broadcast", blocks=1)
        def chain(p, n, step):
            for rank in range(n - 1):
                p.rank(rank * step % n).copy(block=0, to=(rank + 1) * step % n)
        self.assertTrue(chain.build(5, step=2).verify().ok)
        self.assertFalse(chain.build(4, step=2).verify().ok)

    def test_functions_of_all_kinds(self):
        class Chain:
            def __init__(self, step):
                self.step = step

            def __call__(self, p, n):
                for rank in range(n - 1):
                    p.rank(rank * self.step % n).copy(block=0, to=(rank + 1) * self.step % n)

        def chain(p, n, step):
            Chain(step)(p, n)

        def yielding(p, n):
            for rank in range(1, n):
                yield p.rank(rank - 1).copy(block=0, to=rank)
        made = [es.algorithm("broadcast", blocks=1)(function) for function in
                (functools.partial(chain, step=3), Chain(3), yielding,
                 lambda p, n: (p.rank(0).copy(block=0, to=rank) for rank in range(1, n)))]
        self.assertEqual([algorithm.name for algorithm in made], ["chain", "Chain", "yielding", "program"])
        for algorithm in made:
            with self.subTest(algorithm=algorithm):
                program = algorithm.build(5)
                program.verify().raise_for_errors()
                self.assertEqual(program.transfers, 4)

    def test_a_program_has_the_name_that_is_given(self):
        self.assertEqual(ring.build(2, name="ring-2.fast").name, "ring-2.fast")
        self.assertIn("ring-2.fast", str(ring.build(2, name="ring-2.fast")))

    def test_a_sum_of_nothing_is_what_was_there(self):
        @es.algorithm("allreduce", blocks=1)
        def alone(p, n):
            p.rank(0).combine(block=0, sources=[])
        alone.build(1).verify().raise_for_errors()

    def test_what_is_sent_is_what_came_last(self):
        @es.algorithm("reduce", blocks=1)
        def tree(p, n):
            p.rank(3).reduce(block=0, to=2)
            p.rank(2).reduce(block=0, to=1)
            p.rank(1).reduce(block=0, to=0)
        program = tree.build(4)
        self.assertTrue(program.verify().ok)
        self.assertIn("r2.tmp[0] <- r2.in[0] + r3.in[0]", str(program))

    def test_a_host_memory_begins_empty(self):
        @es.algorithm("allreduce", blocks=1)
        def server(p, n):
            for rank in range(n):
                p.rank(rank).reduce(block=0, to=p.host())
            for rank in range(n):
                p.host().copy(block=0, to=rank)
        program = server.build(3)
        self.assertTrue(program.verify().ok)
        self.assertIn("h0.tmp[0] <- r0.in[0]\n", str(program))
        self.assertEqual(program.execute(1001).wrong, 0)

    def test_slices_and_scratch_of_relays(self):
        @es.algorithm("broadcast", blocks=2)
        def around(p, n):
            relay = p.relay()
            p.copy(p.rank(0).input(range(2)), relay.scratch(range(2), slot=1))
            p.copy(relay.scratch(0, slot=1), p.rank(1).output(0))
            p.combine([relay.scratch(1, slot=1)], p.rank(1).output(1))
        program = around.build(2)
        self.assertTrue(program.verify().ok)
        self.assertEqual(program.execute(1001).wrong, 0)
        machine = es.Machine("dgx1-v100")
        self.assertGreater(program.simulate(machine, "1MiB", gpus=[0, 5], relays=[1]).time, 0)
        with self.assertRaisesRegex(es.Error, "the program needs 1 relay, but none is given"):
            program.simulate(machine, "1MiB", gpus=[0, 5])

    def test_ops_in_a_switch(self):
        @es.algorithm("allreduce")
        def in_switch(p, n):
            for rank in range(n):
                p.in_switch([p.rank(r).input(rank) for r in range(n)], [p.rank(rank).output(rank)])
                p.in_switch([p.rank(rank).output(rank)],
                            [p.rank(r).output(rank) for r in range(n) if r != rank])
        program = in_switch.build(8)
        machine = es.Machine("dgx-h100")
        program.verify(machine).raise_for_errors()
        self.assertGreater(program.simulate(machine, "64MiB").busbw, 0)

    def test_lanes_follow_from_whom_a_rank_deals_with(self):
        text = str(ring_allreduce.build(4))
        # Every rank adds what comes from the one before it, and sends to the one after it.
        self.assertIn("r1.out[0] <- r1.in[0] + r0.in[0]\n", text)
        self.assertIn("r1.out[1] <- r0.out[1] lane 1", text)

    def test_a_ring_of_ours_is_as_fast_as_the_catalogue_s(self):
        machine = es.Machine("ring:n=8,gbps=25,latency_us=1")
        own = ring_allreduce.build(8).simulate(machine, "64MiB", profile="ideal", chunk=0)
        known = es.simulate(machine, "allreduce", "64MiB", "ring", profile="ideal", chunk=0)
        self.assertAlmostEqual(own.time, known.time, delta=1e-9 * known.time)
        # 2 (n - 1) steps of an n-th of the message, each with a microsecond on the way.
        self.assertAlmostEqual(own.time, 14 * ((64 << 20) / 8 / 25e9 + 1e-6), delta=1e-9 * own.time)

    def test_programs_go_to_files_and_come_back(self):
        with tempfile.TemporaryDirectory() as folder:
            program = ring_allreduce.build(8)
            for name in ("ring.esp", "ring.xml", "ring.json"):
                path = os.path.join(folder, name)
                program.export(path, machine=es.Machine("dgx-a100"))
                back = es.Program.load(path)
                self.assertEqual((back.collective, back.ranks), ("allreduce", 8))
                back.verify().raise_for_errors()

    def test_a_program_states_what_it_is(self):
        program = star("gather").build(3, root=1, in_place=True)
        self.assertEqual((program.name, program.collective, program.ranks, program.root,
                          program.in_place, program.ops, program.transfers),
                         ("star_gather", "gather", 3, 1, True, 2, 2))
        self.assertEqual(repr(program), "<Program star_gather: gather, 3 ranks, 2 ops>")


if __name__ == "__main__":
    unittest.main()
