# SPDX-License-Identifier: Apache-2.0
"""How tests start processes of MPI."""

import os
import re
import socket
import subprocess
import sys


def launcher_words(mpiexec):
    """What a launcher needs to start more processes than there are processors, and as root."""
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    words = [mpiexec]
    if "Open MPI" in version.stdout + version.stderr or "OpenRTE" in version.stdout:
        words.append("--oversubscribe")
        if os.geteuid() == 0:
            words.append("--allow-run-as-root")
    return words


def is_hydra(mpiexec):
    """Whether it is the launcher of MPICH, or of one of those made from it."""
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    return "HYDRA" in version.stdout


def without_banner(output):
    """Without what Hydra prints, on standard output, when it has found a process killed."""
    return re.sub(r"\n*=+\n=   BAD TERMINATION .*", "", output, flags=re.DOTALL)


def start(mpiexec, program, *parts, environment=None):
    """What `mpiexec -n N PROGRAM WORDS : -n N PROGRAM WORDS ...` prints; each part is (N, WORDS)."""
    command = launcher_words(mpiexec)
    for number, (count, words) in enumerate(parts):
        command += [":"] if number > 0 else []
        command += ["-n", str(count), program, *words.split()]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False,
                          env=environment)


def end_where_mpi_cannot_start(mpiexec):
    """Ends the test as skipped (77) where two processes of nothing can't be started."""
    command = launcher_words(mpiexec) + ["-n", "2", "true"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if run.returncode == 0:
        return
    print(f"skipped: {' '.join(command)} fails here:\n{run.stdout}{run.stderr}")
    sys.exit(77)


def torch_environment(rank, processes, address, port):
    """What torchrun sets for one of its processes."""
    return dict(os.environ, RANK=str(rank), WORLD_SIZE=str(processes), LOCAL_RANK=str(rank),
                MASTER_ADDR=address, MASTER_PORT=str(port), TORCHELASTIC_RUN_ID=f"test {port}")


def free_port():
    """A port that nobody waits at."""
    with socket.socket() as one:
        one.bind(("", 0))
        return one.getsockname()[1]
