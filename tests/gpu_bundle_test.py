#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/gpu_bundle.sh and what it packs, on small programs and an `ldd` that knows one library."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parent / "gpu_bundle.sh"

# Where it packs, the library is in the folder LIBRARIES; elsewhere it is where LD_LIBRARY_PATH says, if anywhere.
LDD = """#!/bin/bash
echo "	libc.so.6 => /lib/libc.so.6 (0x0)"
for folder in $LIBRARIES ${LD_LIBRARY_PATH//:/ }; do
  [ -e "$folder/libneeded.so.1" ] || continue
  echo "	libneeded.so.1 => $folder/libneeded.so.1 (0x0)"
  exit
done
echo "${WITHOUT:-	libneeded.so.1 => not found}"
"""
TOO_OLD = "/a/program: /usr/lib/libneeded.so.1: version `NEEDED_2' not found (required by /a/program)"


class GpuBundle(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("bin", "libraries", "build/tests", "there"):
            (self.folder / name).mkdir(parents=True)
        for program in ("espalier", "gpu_rates", "tests/cuda_test"):
            shutil.copy(shutil.which("echo"), self.folder / "build" / program)
        (self.folder / "libraries/libneeded.so.1").write_text("needed")
        ldd = self.folder / "bin/ldd"
        ldd.write_text(LDD)
        ldd.chmod(0o755)

    def start(self, *command, **environment):
        variables = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "TMPDIR": str(self.folder),
                     "ESPALIER_BUILD_DIR": str(self.folder / "build"), **environment}
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
        self.assertEqual(list(self.folder.glob("tmp.*")), [], "leaves files behind")
        return done

    def pack(self):
        file = self.folder / "new/bundle.tar.xz"
        done = self.start("bash", SCRIPT, file, LIBRARIES=str(self.folder / "libraries"))
        self.assertEqual(done.returncode, 0, done.stderr)
        subprocess.run(["tar", "-C", self.folder / "there", "-xf", file], check=True)
        return self.folder / "there/espalier-gpu"

    def test_has_libraries_but_for_those_of_the_c_library(self):
        bundle = self.pack()
        self.assertEqual([path.name for path in (bundle / "lib").iterdir()], ["libneeded.so.1"])
        self.assertTrue((bundle / "commit").read_text().strip())

    def test_runs_espalier_with_what_it_lends(self):
        for lacks in ({}, {"WITHOUT": TOO_OLD}):
            done = self.start(self.pack() / "run", "list", "profiles", **lacks)
            self.assertEqual((done.returncode, done.stdout), (0, "list profiles\n"), done.stderr)
            shutil.rmtree(self.folder / "there/espalier-gpu")

    def test_lends_nothing_that_the_computer_has(self):
        bundle = self.pack()
        (bundle / "lib/libneeded.so.1").unlink()
        done = self.start(bundle / "run", "list", LIBRARIES=str(self.folder / "libraries"))
        self.assertEqual((done.returncode, done.stdout), (0, "list\n"), done.stderr)

    def test_says_what_neither_has(self):
        bundle = self.pack()
        (bundle / "lib/libneeded.so.1").unlink()
        done = self.start(bundle / "run", "list")
        self.assertEqual(done.returncode, 3)
        self.assertIn("libneeded.so.1 is too old or missing", done.stderr)

    def test_checks_gpus_without_tests_on_stand_ins(self):
        bundle = self.pack()
        (self.folder / "bin/nvidia-smi").write_text("#!/bin/bash\necho TEST GPU\n")
        (self.folder / "bin/nvidia-smi").chmod(0o755)
        done = self.start(bundle / "run")
        self.assertIn(f"commit {(bundle / 'commit').read_text().strip()}", done.stdout)
        self.assertIn("| GPU tests | ", done.stdout)
        self.assertEqual(done.returncode, 1)  # `echo` passes no test
        self.assertNotIn("stand-ins", done.stdout)

    def test_packs_nothing_where_a_library_is_missing(self):
        file = self.folder / "new/bundle.tar.xz"
        done = self.start("bash", SCRIPT, file)
        self.assertEqual(done.returncode, 3)
        self.assertIn("libneeded.so.1 => not found", done.stderr)
        self.assertFalse(file.exists())


if __name__ == "__main__":
    unittest.main()
