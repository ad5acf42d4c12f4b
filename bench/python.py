#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What simulations cost from Python, beside what they cost from C++: python.py STUDY_RING.

Simulates a ring over 8 GPUs 10 000 times, each time with another message, so that nothing is
remembered but what both remember. Exits 1 where Python costs more than 1.3 times as much.
"""

import os
import subprocess
import sys
import tempfile
import time

import espalier as es
from rings import ring_allreduce

SIMULATIONS = 10_000
MACHINE = "dgx-a100"
MOST = 1.3


def in_python(program, count):
    machine = es.Machine(MACHINE)
    begin = time.process_time()
    total = sum(program.simulate(machine, (1 << 20) + number * 4096).time for number in range(count))
    return time.process_time() - begin, total


def in_cpp(program, count, study_ring):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ring.esp")
        program.export(path)
        ran = subprocess.run([study_ring, path, MACHINE, str(count)], check=True, capture_output=True,
                             text=True)
    return [float(figure) for figure in ran.stdout.split()]


def main():
    program = ring_allreduce.build(8)
    python_s, python_total = in_python(program, SIMULATIONS)
    cpp_s, cpp_total = in_cpp(program, SIMULATIONS, sys.argv[1])
    ratio = python_s / cpp_s
    print(f"{SIMULATIONS} simulations of a ring over 8 GPUs: {python_s:.2f} s from Python, {cpp_s:.2f} s "
          f"from C++, {ratio:.2f} times as much (at most {MOST})")
    if abs(python_total - cpp_total) > 1e-9 * cpp_total:
        print(f"the simulated times differ: {python_total} s and {cpp_total} s together")
        return 1
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
