# SPDX-License-Identifier: Apache-2.0
"""How tests start processes of MPI."""

import os
import subprocess


def launcher_words(mpiexec):
    """What a launcher needs to start more processes than there are processors, and as root."""
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    words = [mpiexec]
    if "Open MPI" in version.stdout + version.stderr or "OpenRTE" in version.stdout:
        words.append("--oversubscribe")
        if os.geteuid() == 0:
            words.append("--allow-run-as-root")
    return words
