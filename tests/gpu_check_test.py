#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/gpu_check.sh on stand-ins for everything that it runs: it must not call anything good that failed."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parent / "gpu_check.sh"

ESPALIER = """#!/bin/bash
verb=$1
[[ " $* " != *" --against "* ]] || exit "${AGAINST:-0}"
while [ $# -gt 1 ]; do
  case $1 in --output) output=$2 ;; --json) json=$2 ;; --size) size=$2 ;;
    --memory) memory=$2 ;; --transport) transport=$2 ;; esac
  shift
done
case $verb in
  exec)
    if [ "$size" = 4 ] && [ -n "$FIRST" ]; then echo "error: no luck" >&2; exit "$FIRST"; fi
    if [ "$memory" = cuda ]; then
      if [ -n "$LACKS" ] && [ "$transport" = "$LACKS" ]; then echo "error: ${LACK:-NCCL was not found}: no file" >&2; exit 3; fi
      echo "# messages from GPU to GPU: ${transport}ly"
    fi ;;
  probe) printf -- '- {name: gpu%d, kind: gpu}\\n' $(seq "$GPUS") >"$output" ;;
  compare) cp "$REPORT" "$json"; exit "${COMPARE:-0}" ;;
esac
"""
MPIEXEC = '#!/bin/bash\nif [ "$1" = --version ]; then echo "none"; exit; fi\nshift 2\n"$@"\n'
TESTS = '#!/bin/bash\necho "[  PASSED  ] ${RAN:-3} tests."\n'
RATES = '#!/bin/bash\necho "| copy |"\necho "out of memory" >&2\nexit "${RATES:-0}"\n'
SANITIZER = ('#!/bin/bash\nwhile [[ $1 == --* ]]; do [[ $1 == *=* ]] && shift || shift 2; done\n"$@" || exit\n'
             'echo "========= ERROR SUMMARY: ${ERRORS:-0} errors"\n')


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in {
            "espalier": ESPALIER,
            "tests/cuda_test": TESTS,
            "tests/fake_cuda_test": TESTS,
            "tests/against_nccl_test": TESTS,
            "tests/nccl_transport_test": TESTS,
            "gpu_rates": RATES,
            "bin/compute-sanitizer": SANITIZER,
            "bin/nvidia-smi": "#!/bin/bash\necho TEST GPU\n",
            "bin/mpiexec": MPIEXEC,
        }.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        (self.folder / "CMakeCache.txt").write_text(
            f"CUDAToolkit_BIN_DIR:PATH={self.folder}/nowhere\nESPALIER_MPIEXEC:FILEPATH={self.folder}/bin/mpiexec\n")

    def check(self, wrong=0, rows=10, **environment):
        report = self.folder / "report.json"
        row = {"kind": "comparison", "size_bytes": 16 << 20, "wrong": wrong}
        report.write_text(json.dumps({"median_error_from_16MiB": 0.01, "results": [row] * rows}))
        variables = {
            "PATH": f"{self.folder}/bin:/usr/bin:/bin",
            "ESPALIER_BUILD_DIR": str(self.folder),
            "REPORT": str(report),
            "GPUS": "2",
            "TMPDIR": str(self.folder),
            **environment,
        }
        done = subprocess.run(["bash", SCRIPT], env={**os.environ, **variables}, capture_output=True, text=True)
        self.assertEqual(list(self.folder.glob("tmp.*")), [], "leaves files behind")
        return done

    def test_passes_where_everything_does(self):
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Failed: 0. Missed: 0.", done.stdout)
        self.assertEqual(done.stdout.count("Median error from 16 MiB on: 1.0 %, wanted 10 %: reached"), 2)

    def test_processes_say_how_messages_went(self):
        done = self.check()
        for transport in ("auto", "staged", "mpi", "nccl"):
            self.assertIn(f"| processes by mpirun, --transport {transport} | passed: {transport}ly |", done.stdout)
        self.assertIn("| processes by torchrun's variables, --transport auto | passed: autoly |", done.stdout)

    def test_errors_that_a_sanitizer_finds_in_processes_fail(self):
        done = self.check(ERRORS="2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| compute-sanitizer memcheck, processes | **failed** |", done.stdout)

    def test_on_one_gpu_nccl_takes_processes_for_computers(self):
        named = "| processes by torchrun's variables, each a computer to NCCL, --transport nccl | passed: ncclly |"
        self.assertIn(named, self.check().stdout)
        (self.folder / "bin/nvidia-smi").write_text("#!/bin/bash\necho TEST GPU\necho TEST GPU\n")
        self.assertNotIn("each a computer to NCCL", self.check().stdout)

    def test_what_libraries_lack_is_no_failure_of_processes(self):
        done = self.check(LACKS="nccl")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("| processes by mpirun, --transport nccl | not here: NCCL was not found |", done.stdout)
        done = self.check(LACKS="mpi", LACK="another thing")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| processes by mpirun, --transport mpi | **failed** |", done.stdout)
        self.assertIn("another thing", done.stderr)

    def test_one_gpu_foretells_nothing_between_gpus(self):
        done = self.check(GPUS="1")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count("Median error"), 1)

    def test_wrong_elements_fail(self):
        done = self.check(wrong=12345, COMPARE="1", GPUS="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("**wrong**", done.stdout)
        self.assertIn("Failed: 2. Missed: 1.", done.stdout)

    def test_a_comparison_that_fails_is_not_forgotten(self):
        self.assertIn("Failed: 2. Missed: 0.", self.check(COMPARE="1", GPUS="1").stdout)

    def test_every_collective_that_nccl_fails_at_is_counted(self):
        done = self.check(AGAINST="3", GPUS="1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.count("Against NCCL: "), 9)
        self.assertIn("Failed: 9. Missed: 0.", done.stdout)

    def test_too_few_measurements_fail(self):
        done = self.check(rows=9)
        self.assertEqual(done.returncode, 1)
        self.assertIn("of 9 measurements instead of 10: **not measured**", done.stdout)

    def test_missed_rates_are_not_a_failure_to_measure(self):
        done = self.check(RATES="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Failed: 0. Missed: 1.", done.stdout)
        done = self.check(RATES="2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("**Not measured:**\n\n    out of memory\n", done.stdout)
        self.assertIn("Failed: 1. Missed: 0.", done.stdout)

    def test_tests_that_do_not_run_fail(self):
        done = self.check(RAN="0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| GPU tests | **failed** |", done.stdout)
        self.assertIn("| compute-sanitizer memcheck | **failed** |", done.stdout)

    @unittest.skipIf(shutil.which("compute-sanitizer", path="/usr/bin:/bin"), "it is where it can't be hidden")
    def test_a_missing_sanitizer_is_a_failure(self):
        (self.folder / "bin/compute-sanitizer").unlink()
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("| compute-sanitizer | **not installed** |", done.stdout)

    def test_a_first_run_that_fails_ends_it_only_where_cuda_runs_nothing(self):
        done = self.check(FIRST="3")
        self.assertEqual(done.returncode, 3)
        self.assertIn("TEST GPU", done.stdout)
        self.assertIn("no luck", done.stderr)
        self.assertNotIn("GPU tests", done.stdout)
        done = self.check(FIRST="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| one rank, 4 bytes | **failed** |", done.stdout)
        self.assertIn("Failed: 1. Missed: 0.", done.stdout)


if __name__ == "__main__":
    unittest.main()
