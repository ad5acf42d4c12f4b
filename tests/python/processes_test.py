#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, threads and processes while the library computes."""

import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

import espalier as es
from rings import ring_allreduce

# So long that nobody waits for its end.
LONG = {
    "plan": "es.plan(es.Machine('torus:x=32,y=32'), 'allreduce')",
    "simulation": "es.simulate(es.Machine('switch:n=512'), 'alltoall', '64MiB', 'direct', chunk='64')",
    "execution": "es.Program.load('pair.esp').execute('1MiB', iterations=10**6)",
    "workers": "es.sweep(es.Machine('switch:n=256'), 'alltoall', sizes=es.sizes(2**20, 2**24),"
               " algorithms=['direct'], chunk='64', jobs=2)",
}


class Processes(unittest.TestCase):
    def test_ctrl_c_interrupts_and_leaves_all_in_order(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, call in LONG.items():
            with self.subTest(name):
                code = textwrap.dedent(f"""
                    import espalier as es
                    machine = es.Machine("dgx1-v100")
                    before = es.simulate(machine, "allreduce", "1MiB", "ring").time
                    es.algorithm("broadcast", blocks=1)(
                        lambda p, n: p.rank(0).copy(block=0, to=1)).build(2).export("pair.esp")
                    print("begin", flush=True)
                    try:
                        {call}
                    except KeyboardInterrupt:
                        print("interrupted")
                    assert es.simulate(machine, "allreduce", "1MiB", "ring").time == before
                    """)
                child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                                         cwd=folder.name)
                self.addCleanup(child.stdout.close)
                self.addCleanup(child.kill)
                self.assertEqual(child.stdout.readline(), "begin\n")
                try:
                    child.wait(timeout=1)
                except subprocess.TimeoutExpired:
                    child.send_signal(signal.SIGINT)
                said, _ = child.communicate(timeout=60)
                self.assertEqual((said, child.returncode), ("interrupted\n", 0))

    def test_signals_are_handled_while_a_program_is_built(self):
        handled = 0

        def count(number, frame):
            nonlocal handled
            handled += 1
        sketch = es.Sketch("ring", "allreduce", 512, 0, 512, False)
        ring_allreduce.function(sketch, 512)
        before = signal.signal(signal.SIGALRM, count)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        try:
            sketch.finish("", 0)
            meanwhile = handled
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        # One or two could be handled before and after it.
        self.assertGreater(meanwhile, 3)

    def test_other_threads_run_meanwhile(self):
        turns = 0
        over = threading.Event()

        def count():
            nonlocal turns
            while not over.wait(0.001):
                turns += 1
        other = threading.Thread(target=count)
        other.start()
        machine = es.Machine("switch:n=64")
        before = turns
        es.simulate(machine, "alltoall", "1MiB", "direct", chunk="256")
        meanwhile = turns - before
        over.set()
        other.join()
        # One or two turns could be those before and after it.
        self.assertGreater(meanwhile, 3)

    def test_threads_ask_about_one_machine(self):
        machine = es.Machine("dgx1-v100")
        sizes = es.sizes("1KiB", "128KiB")
        alone = [es.simulate(machine, "allreduce", size, "ring").time for size in sizes]
        found = {}

        def ask(size):
            found[size] = es.simulate(machine, "allreduce", size, "ring").time
        threads = [threading.Thread(target=ask, args=(size,)) for size in sizes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # In other threads than the first, the other of two engines simulates.
        for size, time in zip(sizes, alone):
            self.assertAlmostEqual(found[size], time, delta=1e-9 * time)


if __name__ == "__main__":
    unittest.main()
