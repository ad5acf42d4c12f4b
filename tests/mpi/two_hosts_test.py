#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs over two hosts, which are namespaces of this computer: by sockets and, where a launcher is
given, by MPI.

    two_hosts_test.py ESPALIER [MPIEXEC]
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from kill_and_stop import children_of, rank_of, wait_for
from launch import free_port, torch_environment
from two_hosts import ADDRESSES, TwoHosts, enter

EACH = 2  # processes on each host
RANKS = 2 * EACH
TIMEOUT_S = 3
ENDLESS = f"exec --backend mpi --algorithm ring --size 64KiB --iters 1000000 --timeout {TIMEOUT_S}"


class Run:
    """Processes on both hosts; what all of them print is in one file."""

    def __init__(self, way, words):
        self.output = tempfile.TemporaryFile("w+", encoding="utf-8")
        command = [ESPALIER, *words.split()]
        streams = {"stdout": self.output, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        if way == "mpi":
            launcher = HOSTS.launcher_words(MPIEXEC, EACH)
            self.started = [subprocess.Popen(launcher + command, **streams)]
            return
        port = free_port()
        self.started = [
            subprocess.Popen(HOSTS.on(rank // EACH) + command, **streams,
                             env=torch_environment(rank, RANKS, ADDRESSES[0], port))
            for rank in range(RANKS)]

    def pids(self):
        """By rank, once all have started."""
        def has_started():
            below = {rank_of(pid, ESPALIER): pid for pid in children_of(os.getpid())}
            below.pop(None, None)
            self.found = below
            return len(below) == RANKS
        assert wait_for(has_started, 60) is not None
        return self.found

    def end(self, limit_s=120):
        """Exit codes, and what was printed."""
        begin = time.monotonic()
        codes = []
        for process in self.started:
            try:
                codes.append(process.wait(max(0.1, limit_s - (time.monotonic() - begin))))
            except subprocess.TimeoutExpired:
                process.kill()
                codes.append(None)
        with self.output as output:
            output.seek(0)
            return codes, output.read()


class TwoHostsTest(unittest.TestCase):
    def for_each_way(self):
        for way in ("sockets", "mpi") if MPIEXEC else ("sockets",):
            with self.subTest(way=way):
                yield way

    def test_results_are_right_and_ranks_are_placed(self):
        for way in self.for_each_way():
            run = Run(way, "exec --backend mpi --algorithm ring all_pairs --size 4,4124,1048580 --iters 2")
            codes, text = run.end()
            self.assertEqual(set(codes), {0}, text)
            self.assertIn("# ranks 0-1: here", text)
            self.assertIn("# ranks 2-3: there", text)
            self.assertEqual(text.count("# Out of bounds values : 0 OK"), 2)

    def disturb(self, way, victim, disturbance):
        """Who is named, and the text."""
        run = Run(way, ENDLESS)
        pids = run.pids()
        time.sleep(3)
        disturbance(pids[victim])
        codes, text = run.end(60)
        if disturbance is stop:
            os.kill(pids[victim], signal.SIGKILL)
        self.assertNotIn(0, codes)
        return re.findall(r"^  rank (\d+) \(process \d+ on (\w+)\) (.*?),", text, re.M), text

    def test_who_is_stopped_on_the_other_host_is_named(self):
        for way in self.for_each_way():
            named, text = self.disturb(way, 2, stop)
            self.assertEqual(named, [("2", "there", "is stopped")], text)
            self.assertRegex(text, r"rank \d waits for rank \d in op")

    def test_who_is_killed_on_the_other_host_is_named(self):
        named, text = self.disturb("sockets", 3, kill)
        self.assertEqual(named, [("3", "there", "has ended unexpectedly")], text)

    def test_a_network_that_stalls_ends_the_run(self):
        run = Run("sockets", ENDLESS)
        run.pids()
        time.sleep(3)
        HOSTS.set_link("down")
        codes, text = run.end(60)
        HOSTS.set_link("up")
        self.assertEqual(set(codes), {3}, text)
        self.assertIn(f"no process has got further for {TIMEOUT_S} s", text)
        self.assertRegex(text, r"rank [23] \(process \d+ on there\) has not been heard of")


def stop(pid):
    os.kill(pid, signal.SIGSTOP)


def kill(pid):
    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    enter()
    MPIEXEC = sys.argv.pop(2) if len(sys.argv) > 2 and not sys.argv[2].startswith("-") else None
    ESPALIER = os.path.realpath(sys.argv.pop(1))
    HOSTS = TwoHosts()
    try:
        unittest.main()
    finally:
        HOSTS.close()
