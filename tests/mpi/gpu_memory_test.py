#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes with a GPU each, of a stand-in for CUDA, started by a real launcher.

    gpu_memory_test.py ESPALIER_FAKE_GPUS MPIEXEC

What fake_gpus.cpp reads from the environment says what the GPUs are like.
"""

import ctypes.util
import json
import os
import sys
import tempfile
import unittest

import launch


def start(processes, words, **variables):
    """What the processes print; `variables` are added to their environment."""
    return launch.start(MPIEXEC, ESPALIER, (processes, words), environment=dict(os.environ, **variables))


RING = "exec --backend mpi --memory cuda --algorithm ring --iters 2 --size "


class Conformance(unittest.TestCase):
    def run_all(self, processes, words, **variables):
        run = start(processes, f"exec --backend mpi --memory cuda --algorithm all --iters 2 --json - {words}",
                    **variables)
        self.assertEqual(run.returncode, 0, f"{processes} processes, {words}\n{run.stderr}")
        answers = json.loads(run.stdout)["results"]
        done = [answer for answer in answers if answer["kind"] != "skipped"]
        self.assertTrue(done)
        for answer in done:
            self.assertEqual((answer["wrong"], answer["ranks"]), (0, processes), answer)
            self.assertEqual(len(answer["rank_times_s"]), processes)
        return done

    def test_mapped(self):
        done = self.run_all(4, "--size 0,4,4124,1048580")
        self.assertIn("messages from GPU to GPU: CUDA IPC", done[0]["notes"])

    def test_staged(self):
        done = self.run_all(3, "--size 0,4,4124,1048580 --transport staged --dtype bfloat16 --op max")
        self.assertIn("messages from GPU to GPU: pinned memory", done[0]["notes"])

    def test_what_cannot_be_mapped_is_staged(self):
        done = self.run_all(2, "--size 4124 --collective alltoall", ESPALIER_FAKE_IPC="0")
        self.assertIn("messages from GPU to GPU: pinned memory", done[0]["notes"])
        self.assertIn("rank 0 cannot map the memory of rank 1", done[0]["notes"][-1])

    def test_ranks_that_share_a_gpu(self):
        run = start(3, RING + "4124 --devices 1,1,0", ESPALIER_FAKE_GPUS="2")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertRegex(run.stdout, r"\n# ranks 0-1: \S.*, GPU 1 \(Fake GPU\)\n")
        self.assertRegex(run.stdout, r"\n# rank 2: \S.*, GPU 0 \(Fake GPU\)\n")
        self.assertEqual(run.stdout.count("# Out of bounds values : 0 OK\n"), 1)


class Probing(unittest.TestCase):
    def test_probes_and_compares(self):
        with tempfile.TemporaryDirectory() as folder:
            machine = os.path.join(folder, "two.yaml")
            compare = "compare --backend mpi --memory cuda --algorithm ring --size 64KiB,4124 --json - "
            # As little memory as takes a survey: the stand-in is slow.
            run = start(2, f"{compare} --output {machine}", ESPALIER_FAKE_MEMORY="0:96000000")
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assert_compared(run)
            run = start(2, f"{compare} --transport staged --topology {machine}")
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assert_compared(run)
            self.assertNotIn("are measured", run.stderr)  # in place of GPUs
            with open(machine, encoding="utf-8") as file:
                text = file.read()
            self.assertIn('title: "2 x Fake GPU"', text)
            self.assertIn("gpu1: GPU 1, PCI", text)

    def assert_compared(self, run):
        rows = json.loads(run.stdout)["results"]
        self.assertEqual([(row["kind"], row["ranks"], row["wrong"]) for row in rows], [("comparison", 2, 0)] * 2)
        for row in rows:
            self.assertGreater(row["predicted_s"], 0)
            self.assertGreater(row["measured_s"], 0)


class Mistakes(unittest.TestCase):
    def refused(self, processes, words, code, text, **variables):
        run = start(processes, words, **variables)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        self.assertEqual(run.stderr.count("error: "), 1, run.stderr)
        self.assertIn(text, run.stderr)
        self.assertNotIn("# Out of bounds values", run.stdout)

    def test_too_few_gpus(self):
        self.refused(3, RING + "4124", 2, "there are too few GPUs: ranks 0 and 2 would share one",
                     ESPALIER_FAKE_GPUS="2")

    def test_hosts_of_a_machine_on_one_computer(self):
        self.refused(4, RING + "4124 --topology dgx1-v100:nodes=2 --gpus 0,1,8,9", 2,
                     "ranks 0 and 2 are on one computer, but on two hosts of 'dgx1-v100:nodes=2'",
                     ESPALIER_FAKE_GPUS="8")

    def test_probing_ranks_of_which_some_share_a_gpu(self):
        self.refused(3, "probe --backend mpi --memory cuda --devices 0,0,1", 3,
                     "some ranks share a GPU, and others do not")

    def test_probing_more_ranks_than_processes(self):
        self.refused(2, "probe --backend mpi --memory cuda --virtual 4", 2, "each process is a rank")

    def test_no_such_gpu(self):
        self.refused(2, RING + "4124 --devices 0,5", 2, "rank 1: there is no GPU 5 on")

    def test_devices_for_fewer_processes(self):
        self.refused(3, RING + "4124 --devices 0,1", 2, "--devices names 2 GPUs for 3 processes")

    def test_one_lacks_memory(self):
        self.refused(2, RING + "1MiB", 3, "rank 1: a message of 1MiB needs",
                     ESPALIER_FAKE_MEMORY="1:1000000")

    def test_mpi_that_takes_no_gpu_memory(self):
        run = start(2, RING + "4124 --transport mpi")
        if run.returncode != 0:  # Debian's libraries are not CUDA-aware
            self.assertEqual(run.returncode, 3)
            self.assertIn("this library of MPI does not take GPU memory", run.stderr)

    @unittest.skipIf(ctypes.util.find_library("nccl"), "it would be called with streams of the stand-in")
    def test_no_nccl(self):
        self.refused(2, RING + "4124 --transport nccl", 3, "rank 0: NCCL was not found")


if __name__ == "__main__":
    MPIEXEC = sys.argv.pop(2)
    ESPALIER = os.path.realpath(sys.argv.pop(1))
    launch.end_where_mpi_cannot_start(MPIEXEC)
    unittest.main()
