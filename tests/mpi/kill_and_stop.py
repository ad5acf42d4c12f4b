#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills and stops processes of runs over MPI at random times, and looks at how the others end.

    kill_and_stop.py ESPALIER MPIEXEC [--trials N] [--seed S] [--timeout SECONDS] [--grace SECONDS] [--ranks N]

Each trial starts a run that would last for minutes, and kills or stops a random rank: half of the time a moment after
its process was launched, when the processes have not met, otherwise some time after all watch each other. All have to
end within the timeout and the grace, those of a rank killed later within the grace. One line has to name the rank that
was killed or stopped: of espalier, or, before MPI has started, of the launcher, which then ends processes that cannot
say anything yet. No process may be left, and no part of a file. Prints a line for each trial and exits 1 if one
failed. The seed is printed, so that a failure can be repeated. Without --grace, it is two seconds, and 20 on a computer
whose load is more than twice its processors; which one is printed, with the load.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from launch import end_where_mpi_cannot_start, is_hydra, launcher_words

RANK_VARIABLES = (b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=", b"RANK=")
ALGORITHMS = ("ring", "halving_doubling", "all_pairs", "flat_two_stage")
SIZES = ("4", "1KiB", "64KiB", "1MiB", "8MiB")
GRACE_S = 2
GRACE_OF_BUSY_S = 20


def children_of(pid):
    """All processes below a process."""
    parents = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(name))
    found, left = [], [pid]
    while left:
        below = parents.get(left.pop(), [])
        found += below
        left += below
    return found


def rank_of(pid, program):
    """The rank of a process of a run, or None where it is another process."""
    try:
        if os.path.realpath(f"/proc/{pid}/exe") != program:
            return None
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return None
    for variable in variables:
        for name in RANK_VARIABLES:
            if variable.startswith(name):
                return int(variable[len(name):])
    return None


def has_thread(pid, name):
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/comm", encoding="ascii", errors="replace") as file:
                if file.read().strip() == name:
                    return True
    except OSError:
        pass
    return False


def is_watched(pid):
    """Whether a process has met the others and keeps to the timeout."""
    return has_thread(pid, "watchdog")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition, limit_s):
    """Seconds until the condition held, or None."""
    begin = time.monotonic()
    while time.monotonic() - begin < limit_s:
        if condition():
            return time.monotonic() - begin
        time.sleep(0.01)
    return None


class Trial:
    """One run, and what is done to it."""

    def __init__(self, options, chance, folder):
        self.options = options
        self.program = os.path.realpath(options.espalier)
        self.victim = chance.randrange(options.ranks)
        self.signal = chance.choice([signal.SIGKILL, signal.SIGSTOP])
        self.at_start = chance.random() < 0.5
        self.delay_s = chance.uniform(0, 0.3 if self.at_start else 1.0)
        self.algorithm = chance.choice(ALGORITHMS)
        self.size = chance.choice(SIZES)
        self.json = os.path.join(folder, "report.json")
        self.folder = folder
        self.launcher = None
        self.pids = {}

    def __str__(self):
        name = "killed" if self.signal == signal.SIGKILL else "stopped"
        since = "its launch" if self.at_start else "all had met"
        return f"rank {self.victim} {name} {self.delay_s:.2f} s after {since}, {self.algorithm} {self.size}"

    def start(self):
        options = self.options
        command = launcher_words(options.mpiexec) + [
            "-n", str(options.ranks), options.espalier, "exec", "--backend", "mpi", "--algorithm",
            self.algorithm, "--size", self.size, "--iters", "1000000", "--timeout",
            str(options.timeout), "--json", self.json]
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8")
        # In a group of its own, so that whatever goes wrong here, all of it can be ended.
        self.launcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.errors,
                                         start_new_session=True)

        def has_started():
            self.find_processes()
            if self.at_start:
                return self.victim in self.pids
            return len(self.pids) == options.ranks and all(map(is_watched, self.pids.values()))

        return wait_for(has_started, 60) is not None

    def find_processes(self):
        for pid in children_of(self.launcher.pid):
            rank = rank_of(pid, self.program)
            if rank is not None:
                self.pids[rank] = pid

    def problems(self):
        """What is wrong with how the run ended."""
        if not self.start():
            return ["the processes have not started"]
        time.sleep(self.delay_s)
        all_met = len(self.pids) == self.options.ranks and all(map(is_watched, self.pids.values()))
        has_begun = all_met or has_thread(self.pids[self.victim], "start watch")
        os.kill(self.pids[self.victim], self.signal)
        waits = self.signal == signal.SIGSTOP or not all_met
        limit_s = (self.options.timeout if waits else 0) + self.options.grace
        found = []

        def have_ended():
            self.find_processes()
            others = [pid for rank, pid in self.pids.items() if rank != self.victim]
            return not any(map(is_alive, others)) and (
                len(self.pids) == self.options.ranks or self.launcher.poll() is not None)

        self.took_s = wait_for(have_ended, limit_s)
        if self.took_s is None:
            alive = [rank for rank, pid in self.pids.items() if is_alive(pid) and rank != self.victim]
            found.append(f"ranks {alive} of {sorted(self.pids)} have not ended within {limit_s} s")
        if wait_for(lambda: self.launcher.poll() is not None, 10) is None:
            found.append("the launcher has not ended")
        if wait_for(lambda: not any(map(is_alive, self.pids.values())), 5) is None:
            found.append("a process is left")
        self.errors.seek(0)
        text = self.errors.read()
        # MPICH's launcher kills all at once; nobody can know of one that had not come to the witness.
        cannot_be_known = (is_hydra(self.options.mpiexec) and self.signal == signal.SIGKILL and not has_begun
                           and not re.search(r"^  rank \d+ ", text, re.M))
        if not cannot_be_known and not self.is_named(text, all_met):
            named = re.findall(r"^  (?:rank|nothing is heard of rank).*", text, re.M)
            found.append(f"named were {named}, not rank {self.victim}\n{text}")
        left = [name for name in os.listdir(self.folder)]
        if left:
            found.append(f"files are left: {left}")
        if self.launcher.returncode == 0:
            found.append("the launcher ended with 0")
        return found

    def is_named(self, text, all_met):
        """Whether the rank is, and no other."""
        state = "has ended unexpectedly" if self.signal == signal.SIGKILL else "is stopped"
        named = re.findall(r"^  rank (\d+) \(process \d+[^)]*\) (.*?),", text, re.M)
        missing = re.findall(r"^  nothing is heard of rank (\d+)$", text, re.M)
        if named == [(str(self.victim), state)] and not missing:
            return True
        if all_met or self.signal == signal.SIGSTOP:
            return False
        if is_hydra(self.options.mpiexec) and len(named) == 1 and missing:
            # It ended all before all had come to their witness, which then tells what it knows.
            return str(self.victim) in [named[0][0], *missing]
        if named:
            return False
        # It has never been seen by the others, or they were ended as soon as they had started.
        launcher = re.findall(r"process rank (\d+) with PID|rank (\d+) \(PID \d+\) was killed", text)
        return str(self.victim) in (missing or [number for numbers in launcher for number in numbers])

    def end(self):
        for pid in [*self.pids.values(), self.launcher.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.launcher.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("espalier")
    parser.add_argument("mpiexec")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--timeout", type=float, default=3)
    parser.add_argument("--grace", type=float, default=None,
                        help="seconds that all have to end, beyond the timeout")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    end_where_mpi_cannot_start(options.mpiexec)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    load, processors = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if options.grace is None:
        options.grace = GRACE_OF_BUSY_S if load > 2 * processors else GRACE_S
    print(f"seed {seed}, a load of {load:.1f} on {processors} processors, "
          f"{options.grace:g} s to end beyond the timeout", flush=True)
    chance = random.Random(seed)
    failed = 0
    for number in range(options.trials):
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(options, chance, folder)
            try:
                problems = trial.problems()
            finally:
                trial.end()
        took = getattr(trial, "took_s", None)
        ended = f", all ended {took:.2f} s later" if took is not None else ""
        print(f"{number + 1}: {trial}{ended}" + "".join(f"\n   FAILED: {p}" for p in problems),
              flush=True)
        failed += bool(problems)
    print(f"a load of {os.getloadavg()[0]:.1f} at the end")
    print(f"{options.trials - failed} of {options.trials} ended as they should")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
