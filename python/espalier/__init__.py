# SPDX-License-Identifier: Apache-2.0
"""Collective communication between GPUs: verified, simulated, executed, judged.

See docs/python.md. Times are in seconds, rates in GB/s = 1e9 bytes/s, sizes in bytes or text such as
"64KiB".
"""

from espalier._algorithm import Algorithm, algorithm
from espalier._espalier import (Bound, Diagnostic, Error, Link, Machine, Place, Plan, Program, Result,
                                Sketch, Slice, Tuning, Verification, __version__, machines, plan, sizes)
from espalier._study import report, simulate, sweep, tune
from espalier._table import Table

__all__ = ["Algorithm", "Bound", "Diagnostic", "Error", "Link", "Machine", "Place", "Plan", "Program",
           "Result", "Sketch", "Slice", "Table", "Tuning", "Verification", "__version__", "algorithm",
           "machines", "plan", "report", "simulate", "sizes", "sweep", "tune"]
