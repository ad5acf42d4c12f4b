# SPDX-License-Identifier: Apache-2.0
"""CPU seconds and peak memory of whole commands, of one build or of two in turn.

    answers.py BINARY [OTHER-BINARY]

Every command has a limit in CPU seconds; one that takes longer has none of the figures. The other
build may not know a command: it then has none either.
"""
import os
import resource
import subprocess
import sys

LIMIT_S = 120

COMMANDS = [
    "sim --topology dgx1-v100 --size 1GiB",
    "sim --topology dgx-a100 --size 1GiB",
    "sim --topology dgx2 --size 1GiB",
    "sim --topology dgx-h100:nodes=2 --size 1GiB",
    "sim --topology dgx1-v100 --gpus 0-4 --size 4KiB..1GiB",
    "tune --topology dgx-a100:nodes=2 --size 4KiB..1GiB",
    "tune --topology kesch:nodes=4 --collective broadcast --size 4KiB..1GiB",
    "sim --topology dgx2 --collective broadcast --algorithm nccl --size 64GiB",
    "sim --topology ring:n=1024,gbps=50,latency_us=0.5 --algorithm ring --size 1GiB --chunk 0"
    " --profile ideal --no-nccl",
    "sim --topology ring:n=1024,gbps=50,latency_us=0.5,gpu0-gpu1.gbps=x0.5 --algorithm ring"
    " --size 1GiB --chunk 0 --profile ideal --no-nccl",
    "sim --topology ring:n=2048,gbps=50,latency_us=0.5,gpu0-gpu1.gbps=x0.5 --algorithm ring"
    " --size 1GiB --chunk 0 --profile ideal --no-nccl",
    "sim --topology switch:n=256 --collective alltoall --algorithm direct --size 256MiB --no-nccl",
    "sim --topology switch:n=256 --collective alltoall --algorithm direct:at_once=255 --size 256MiB"
    " --no-nccl",
    "sim --topology dgx-a100:nodes=16 --collective allgather --algorithm optimal:plan=1 --size 1GiB"
    " --no-nccl",
    "sim --topology dgx-a100:nodes=4 --size 64MiB",
    "sim --topology dgx-a100:nodes=16 --algorithm nccl --size 1GiB",
    "sim --topology dgx-h100:nodes=64 --algorithm optimal --size 1GiB",
    "sim --topology dgx-h100:nodes=128 --algorithm optimal --size 1GiB",
    "sim --topology dgx-h100:nodes=64 --algorithm nccl --size 1GiB",
    "sim --topology dgx-h100:nodes=128 --algorithm ring --size 1GiB --no-nccl",
    "sim --topology dgx-h100:nodes=2048 --algorithm ring --size 1GiB --no-nccl",
    "sim --topology dgx-h100:nodes=2048 --algorithm hierarchical --size 1GiB --no-nccl",
    "sim --topology dgx-h100:nodes=2048 --algorithm nccl --size 1GiB",
    "sim --topology dgx-h100:nodes=2048 --algorithm nccl --size 1MiB",
    "sim --topology dgx-h100:nodes=2048 --collective allgather --algorithm nccl --size 1GiB",
    f"run {os.path.dirname(os.path.abspath(__file__))}/sweep.yaml --jobs 2",
    "plan --topology dgx-h100:nodes=64",
    "plan --topology full:n=128",
    "plan --topology torus:x=8,y=8,z=8",
]


def measured(binary, command):
    """(CPU seconds, peak MiB), or None."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))

    with open(os.devnull, "w") as nothing:
        process = subprocess.Popen([binary] + command.split(), stdout=nothing, stderr=nothing,
                                   preexec_fn=limit)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        return None
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def text_of(figures):
    return f"{figures[0]:8.2f} {figures[1]:7.0f}" if figures else f"{'-':>8} {'-':>7}"


def main():
    binaries = sys.argv[1:]
    heads = ["CPU (s)  MiB"] if len(binaries) == 1 else ["CPU (s)  MiB", "other (s)  MiB"]
    print("  ".join(f"{head:>16}" for head in heads) + "  command")
    for command in COMMANDS:
        columns = [text_of(measured(binary, command)) for binary in binaries]
        print("  ".join(columns) + "  " + command, flush=True)


if __name__ == "__main__":
    main()
