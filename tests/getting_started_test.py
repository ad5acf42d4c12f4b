#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what docs/getting-started.md says and compares what comes out: getting_started_test.py ESPALIER.

Blocks of the page, by the words behind their fence:
  console            commands after "$ ", and exactly what they print; a line "..." stands for any lines
  console measured   the same, whatever the numbers are
  LANGUAGE FILE      a file that the commands below find (or that changes what was there)
Any other block is for the reader to do: it must be one of BY_HAND. Everything runs in one empty folder.
With ESPALIER_UPDATE=1 the page gets what is printed now, but for what "..." leaves out.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "getting-started.md"
BY_HAND = {"./dev demo\n"}  # installs packages and builds what is tested here
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.M)


def run(command, folder):
    # Problems go to the same place as results, as on a terminal.
    done = subprocess.run(["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    return done.stdout


def pattern_of(expected, measured):
    """What `expected` stands for, as a regular expression."""
    lines = []
    for line in expected.splitlines():
        if line == "...":
            lines.append(r"(?:.*\n)*?")
            continue
        words = [re.escape(word) for word in (line.split() if measured else [line])]
        if measured:
            words = [re.sub(r"\d+(?:(?:\\\.)\d+)?", r"[\\d.]+", word) for word in words]
        lines.append((r"[ ]*" if measured else "") + r"[ ]+".join(words) + r"[ ]*\n")
    return "".join(lines)


def main():
    espalier = pathlib.Path(sys.argv[1]).resolve()
    update = os.environ.get("ESPALIER_UPDATE") == "1"
    text = PAGE.read_text()
    failures = []
    commands = 0
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "build").mkdir()
        (pathlib.Path(folder) / "build" / "espalier").symlink_to(espalier)

        def do(block):
            nonlocal commands
            words, body = block[1].split(), block[2]
            if words[:1] != ["console"]:
                if len(words) == 2:
                    (pathlib.Path(folder) / words[1]).write_text(body)
                elif body not in BY_HAND:
                    failures.append(f"nobody runs this block:\n{body}")
                return block[0]

            def ask(asked):
                nonlocal commands
                commands += 1
                command, expected = asked[1], asked[2]
                actual = run(command, folder)
                if not re.fullmatch(pattern_of(expected, "measured" in words), actual):
                    failures.append(f"$ {command}\nexpected:\n{expected}printed:\n{actual}")
                return asked[0] if "...\n" in expected else f"$ {command}\n{actual}"

            return f"```{block[1]}\n{COMMAND.sub(ask, body)}```"

        done = FENCE.sub(do, text)
    if update:
        PAGE.write_text(done)
    print("\n".join(failures) or f"{commands} commands of {PAGE.name} do what it says")
    return 1 if failures or commands == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
