# SPDX-License-Identifier: Apache-2.0
"""Collective communication between GPUs: verified, simulated, executed, judged.

See docs/python.md. Times are in seconds, rates in GB/s = 1e9 bytes/s, sizes in bytes or text such as
"64KiB".
"""

from espalier._algorithm import Algorithm, algorithm
from espalier._espalier import (Bound, Comparison, Diagnostic, Error, Fit, Link, Machine, Place, Plan,
                                Program, Result, Sketch, Slice, Survey, Training, Tuning, Verification,
                                __version__, doubts, machines, plan, probe, sizes, train)
from espalier._study import compare, fit, report, simulate, sweep, tune
from espalier._table import Table

__all__ = ["Algorithm", "Bound", "Comparison", "Diagnostic", "Error", "Fit", "Link", "Machine", "Place",
           "Plan", "Program", "Result", "Sketch", "Slice", "Survey", "Table", "Training", "Tuning",
           "Verification", "__version__", "algorithm", "compare", "doubts", "fit", "machines", "plan",
           "probe", "report", "simulate", "sizes", "sweep", "train", "tune"]
