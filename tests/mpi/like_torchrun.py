#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts processes with torchrun's variables and the command line of mpiexec, for tests without either.

    like_torchrun.py -n N WORDS [: -n N WORDS ...]

Where one was used wrongly (exit code 2), it ends the others, as torchrun does after any failure; after other failures
they have time to end by themselves, and are killed only if they do not. Exits with the exit code of the first that
failed.
"""

import os
import signal
import subprocess
import sys
import time

from launch import free_port, torch_environment

PATIENCE_S = 5


def main():
    if sys.argv[1:] == ["--version"]:
        print("like torchrun")
        return 0
    parts, words = [], sys.argv[1:]
    while words:
        end = words.index(":") if ":" in words else len(words)
        parts += [words[2:end]] * int(words[1])
        words = words[end + 1:]
    port = free_port()
    of_launcher = {"LOCAL_WORLD_SIZE": str(len(parts)), "TORCHELASTIC_RUN_ID": f"test_{os.getpid()}"}
    started = [subprocess.Popen(part, env=torch_environment(rank, len(parts), "127.0.0.1", port) | of_launcher)
               for rank, part in enumerate(parts)]
    signal.signal(signal.SIGTERM, lambda *_: [process.terminate() for process in started])
    failed, failed_at = 0, None
    running = list(started)
    while running:
        ended = [process for process in running if process.poll() is not None]
        running = [process for process in running if process not in ended]
        failed = failed or next((process.returncode for process in ended if process.returncode), 0)
        failed_at = failed_at or (time.monotonic() if failed else None)
        for process in running:
            if failed == 2:
                process.terminate()
            elif failed and time.monotonic() - failed_at > PATIENCE_S:
                process.kill()
        time.sleep(0.02)
    return failed if failed >= 0 else 128 - failed


if __name__ == "__main__":
    sys.exit(main())
