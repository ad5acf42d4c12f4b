#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs of several processes as users start them: over MPI, or with torchrun's variables.

    run_test.py ESPALIER MPIEXEC              or like_torchrun.py in place of MPIEXEC

Every algorithm and collective is run with a sample of numbers of processes, types and operators, of
fixed seed; ESPALIER_ALL_TESTS=1 takes all of them.
"""

import base64
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

import launch
from kill_and_stop import children_of, is_alive, is_watched, rank_of, wait_for

COLLECTIVES = ("allreduce", "broadcast", "reduce", "allgather", "reducescatter", "gather", "scatter",
               "alltoall", "sendrecv")
TYPES = ("float", "double", "half", "bfloat16", "int32", "int64", "uint8")
OPERATORS = ("sum", "prod", "min", "max")
# None, one element, a prime number of them, and one more than 1 MiB.
SIZES = "0,4,4124,1048580"
HERE = os.path.dirname(os.path.realpath(__file__))
LIKE_TORCHRUN = [sys.executable, os.path.join(HERE, "like_torchrun.py")]
ALL = os.environ.get("ESPALIER_ALL_TESTS") == "1"


def start(*parts):
    """What `mpiexec -n N WORDS : -n N WORDS ...` prints; each part is (N, WORDS)."""
    return launch.start(MPIEXEC, ESPALIER, *parts)


class Conformance(unittest.TestCase):
    def run_all(self, processes, words):
        run = start((processes, f"exec --backend mpi --algorithm all --iters 2 --json - {words}"))
        self.assertEqual(run.returncode, 0, f"{processes} processes, {words}\n{run.stderr}")
        answers = json.loads(run.stdout)["results"]
        done = [answer for answer in answers if answer["kind"] != "skipped"]
        self.assertTrue(done)
        for answer in done:
            self.assertEqual((answer["wrong"], answer["ranks"]), (0, processes), answer)
            self.assertEqual(len(answer["rank_times_s"]), processes)

    def test_collectives(self):
        chance = random.Random(17)
        for collective in COLLECTIVES:
            root = f" --root {chance.randrange(2)}" if collective in ("broadcast", "reduce", "gather",
                                                                      "scatter") else ""
            for processes in range(2, 9) if ALL else [chance.randrange(2, 5)]:
                with self.subTest(collective=collective, processes=processes):
                    self.run_all(processes, f"--collective {collective}{root} --size {SIZES}")

    def test_eight_processes(self):
        self.run_all(8, "--collective allreduce --size 4124 --chunk 1KiB --in-place")

    def test_types_and_operators(self):
        pairs = [(dtype, operator) for dtype in TYPES for operator in OPERATORS]
        for dtype, operator in pairs if ALL else random.Random(5).sample(pairs, 4):
            with self.subTest(dtype=dtype, operator=operator):
                self.run_all(3, f"--dtype {dtype} --op {operator} --size 8,8248")


class Output(unittest.TestCase):
    def test_rank_0_prints_one_table(self):
        run = start((3, "exec --backend mpi --algorithm ring --size 1KiB --iters 2"))
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout.count("# executed allreduce with ring (3 ranks)\n"), 1)
        self.assertEqual(run.stdout.count("# ran on processes (backend mpi)\n"), 1)
        self.assertRegex(run.stdout, r"\n# ranks 0-2: \S+")
        self.assertEqual(run.stdout.count("# Out of bounds values : 0 OK\n"), 1)

    def test_a_named_machine_has_a_process_for_each_gpu(self):
        words = "exec --backend mpi --topology dgx1-v100 --algorithm ring --size 64KiB --iters 2"
        run = start((4, words + " --gpus 0-3"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("the program for dgx1-v100", run.stdout)
        run = start((2, words + " --gpus 0-3"))
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("the program has 4 ranks, but there are 2 processes", run.stderr)

    def test_files_are_written_once_and_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            run = start((4, f"exec --backend mpi --algorithm ring --size 1KiB --iters 2 --json {path}"))
            self.assertEqual(run.returncode, 0, run.stderr)
            with open(path, encoding="utf-8") as file:
                self.assertTrue(json.load(file))
            self.assertEqual(os.listdir(folder), ["report.json"])

    def test_compare_measures_over_processes(self):
        run = start((2, "compare --backend mpi --topology full:n=2 --algorithm ring --size 64KiB "
                        "--iters 2 --json -"))
        self.assertEqual(run.returncode, 0, run.stderr)
        (row,) = [row for row in json.loads(run.stdout)["results"] if not row["in_place"]]
        self.assertEqual((row["wrong"], row["ranks"]), (0, 2))
        self.assertGreater(row["measured_s"], 0)

    def test_torchrun_that_a_launcher_has_started(self):
        command = launch.launcher_words(MPIEXEC) + ["-n", "1", sys.executable, os.path.join(HERE, "like_torchrun.py"),
                                                    "-n", "2", ESPALIER]
        command += "exec --backend mpi --algorithm ring --size 1KiB --iters 2".split()
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout.count("# executed allreduce with ring (2 ranks)\n"), 1)

    def test_notes_are_said_once(self):
        run = start((3, "exec --backend mpi --algorithm ring --size 0 --iters 1"))
        self.assertEqual(run.stderr.count("note: a message of 0 bytes"), 1)


    def test_a_page_names_the_slowest_rank(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            run = start((3, f"exec --backend mpi --algorithm ring --size 64KiB --iters 2 --html {path}"))
            self.assertEqual(run.returncode, 0, run.stderr)
            with open(path, encoding="utf-8") as file:
                data = re.search('id="data">([^<]*)<', file.read())[1]
            self.assertIn(b"mean times by rank", zlib.decompress(base64.b64decode(data)))


@unittest.skipUnless(shutil.which("torchrun"), "torchrun is not here (python3-torch of Debian has it)")
class Torchrun(unittest.TestCase):
    """The real one, in place of like_torchrun.py, whatever MPIEXEC is."""

    # torch 1.13 fails under Python 3.11 unless standard output is redirected.
    OPTIONS = "torchrun --redirects 1 --tee 1 --nproc_per_node 2 --no_python".split()
    QUESTION = "exec --backend mpi --algorithm ring --size 64KiB --iters 2".split()

    def check(self, nodes):
        runs = [subprocess.Popen(self.OPTIONS + words + [ESPALIER] + self.QUESTION, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for words in nodes]
        output = [run.communicate(timeout=120) for run in runs]
        self.assertEqual([run.returncode for run in runs], [0] * len(nodes), output)
        printed = "".join(out for out, _ in output)
        self.assertEqual(printed.count(f"# executed allreduce with ring ({2 * len(nodes)} ranks)\n"), 1)
        self.assertEqual(printed.count("# Out of bounds values : 0 OK\n"), 1)

    def test_starts_processes(self):
        self.check([[]])

    def test_starts_those_of_two_nodes(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = f"--nnodes 2 --rdzv_backend c10d --rdzv_endpoint 127.0.0.1:{port} --rdzv_id espalier"
        self.check([words.split()] * 2)


class Faults(unittest.TestCase):
    def test_a_rank_without_memory_ends_all_before_anything_runs(self):
        words = "exec --backend mpi --algorithm ring --size 64MiB --iters 1 --timeout 20"
        limited = f"ulimit -v 300000; exec {ESPALIER} {words}"
        command = [sys.executable, os.path.join(HERE, "like_torchrun.py"), "-n", "2", ESPALIER,
                   *words.split(), ":", "-n", "1", "sh", "-c", limited]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertEqual(run.stderr.count("error: "), 1, run.stderr)
        self.assertRegex(run.stderr, "rank 2: .*memory")
        self.assertEqual(run.stdout, "")

    def test_a_rank_that_is_slow_is_waited_for(self):
        command = launch.launcher_words(MPIEXEC) + ["-n", "3", ESPALIER] + (
            "exec --backend mpi --algorithm ring --size 1MiB --iters 3000 --in-place --timeout 60").split()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
            pids = {}

            def has_started():
                pids.update({rank_of(pid, ESPALIER): pid for pid in children_of(launcher.pid)})
                return 1 in pids and is_watched(pids[1])
            self.assertIsNotNone(wait_for(has_started, 60))
            os.kill(pids[1], signal.SIGSTOP)
            time.sleep(2)
            os.kill(pids[1], signal.SIGCONT)
            output = launcher.communicate(timeout=200)[0]
        self.assertEqual(launcher.returncode, 0)
        self.assertIn("# Out of bounds values : 0 OK", output)


    def start_endless(self, words=(), launcher=None, runs=1000000):
        """A run that would last for minutes, and its processes by rank, once they have met."""
        command = (launcher or launch.launcher_words(MPIEXEC)) + ["-n", "3", ESPALIER, *(
            f"exec --backend mpi --algorithm ring --size 64KiB --iters {runs} --timeout 60").split(), *words]
        started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(started.kill)
        pids = {}

        def have_met():
            pids.update({rank_of(pid, ESPALIER): pid for pid in children_of(started.pid)})
            return {0, 1, 2} <= pids.keys() and all(is_watched(pids[rank]) for rank in range(3))
        self.assertIsNotNone(wait_for(have_met, 60))
        return started, pids

    def test_a_rank_that_is_asked_to_end_says_so(self):
        run, pids = self.start_endless()
        os.kill(pids[1], signal.SIGTERM)
        output, errors = run.communicate(timeout=60)
        self.assertEqual(launch.without_banner(output), "")
        self.assertEqual(errors.count("error: "), 1, errors)
        self.assertRegex(errors, r"error: rank 1 \(process \d+ on \S+\) was asked to end \(SIGTERM\), ")

    def test_a_reader_that_has_had_enough_is_no_error(self):
        run, _ = self.start_endless(["--json", "-"], LIKE_TORCHRUN, runs=3000)
        run.stdout.close()
        self.assertEqual(run.wait(120), 128 + signal.SIGPIPE)
        self.assertEqual(run.stderr.read(), "")
        run.stderr.close()

    def test_nobody_is_left_when_the_launcher_is_killed(self):
        run, pids = self.start_endless(launcher=LIKE_TORCHRUN)
        run.kill()
        self.assertIsNotNone(wait_for(lambda: not any(is_alive(pids[rank]) for rank in range(3)), 20))
        self.assertIn("error: what started the processes has ended\n", run.communicate()[1])

    def test_processes_that_were_started_by_hand_outlive_their_shell(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            port = launch.free_port()
            words = f"exec --backend mpi --algorithm ring --size 1MiB --iters 2000 --json {path}"
            shell = "; ".join(f"RANK={rank} WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={port} "
                              f"setsid {ESPALIER} {words} > {folder}/{rank} 2>&1 &" for rank in range(2))
            subprocess.run(["sh", "-c", shell.replace("&;", "&") + " sleep 1"], check=True, timeout=60)
            self.assertIsNotNone(wait_for(lambda: os.path.exists(path), 120))


class Mistakes(unittest.TestCase):
    def test_ranks_that_were_asked_something_else_are_named(self):
        words = "exec --backend mpi --algorithm ring --iters 1 --size "
        run = start((2, words + "1KiB"), (1, words + "2KiB"), (1, words + "1KiB"))
        self.assertEqual(run.returncode, 2)
        self.assertEqual(run.stderr.count("error: "), 1)
        self.assertIn("rank 2 has another size, type, operator or number of runs than rank 0",
                      run.stderr)

    def test_as_many_ranks_as_processes(self):
        run = start((2, "exec --backend mpi --ranks 3 --algorithm ring"))
        self.assertEqual(run.returncode, 2)
        self.assertIn("3 ranks for 2 processes", run.stderr)

    def test_more_than_memory_is_refused_before_anything_runs(self):
        run = start((2, "exec --backend mpi --algorithm ring --size 1TiB"))
        self.assertEqual(run.returncode, 3)
        self.assertEqual(run.stderr.count("a message of 1TiB needs"), 1)
        self.assertEqual(run.stdout, "")

    def test_without_a_launcher(self):
        command = [ESPALIER, "exec", "--backend", "mpi", "--algorithm", "ring"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 3)
        self.assertIn("this is a single process, which neither a launcher of MPI nor torchrun",
                      run.stderr)
        torch = dict(os.environ, RANK="0", WORLD_SIZE="4")
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                             env=torch)
        self.assertEqual(run.returncode, 3)
        self.assertIn("MASTER_ADDR", run.stderr)

    def test_errors_that_all_have_are_told_once(self):
        if launch.is_hydra(MPIEXEC):
            self.skipTest("MPICH's launcher ends nobody when a process ends before it uses MPI")
        for words, message in (("exec --backend mpi --algorithm rin", "there is no algorithm"),
                               ("exec --backend mpi --algorithm ring --dtypo half", "--dtypo"),
                               ("exec --backend mpi --topology nowhere.yaml", "nowhere.yaml"),
                               ("exec --backend mpi --ranks 3 --algorithm ring", "for 4 processes")):
            run = start((4, words))
            self.assertNotEqual(run.returncode, 0)
            self.assertEqual(run.stderr.count("error: "), 1, run.stderr)
            self.assertIn(message, run.stderr)

    def test_an_error_of_one_process_is_told_by_it(self):
        run = start((1, "exec --backend mpi --algorithm ring --size 1KiB --timeout 5"),
                    (1, "exec --backend mpi --algorithm rin --size 1KiB --timeout 5"))
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("there is no algorithm", run.stderr)


if __name__ == "__main__":
    MPIEXEC = sys.argv.pop(2)
    ESPALIER = os.path.realpath(sys.argv.pop(1))
    launch.end_where_mpi_cannot_start(MPIEXEC)
    unittest.main()
