# SPDX-License-Identifier: Apache-2.0
"""Collective communication between GPUs: verified, simulated, executed, judged.

See docs/python.md. Times are in seconds, rates in GB/s = 1e9 bytes/s, sizes in bytes or text such as
"64KiB".
"""

from espalier._espalier import (Bound, Diagnostic, Error, Link, Machine, Place, Program, Result, Sketch,
                                Slice, Verification, __version__, machines)
from espalier._algorithm import Algorithm, algorithm

__all__ = ["Algorithm", "Bound", "Diagnostic", "Error", "Link", "Machine", "Place", "Program", "Result",
           "Sketch", "Slice", "Verification", "__version__", "algorithm", "machines"]
