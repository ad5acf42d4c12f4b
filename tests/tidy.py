#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a compiler does not check. Prints every offence and exits 1 if there is one.

Layering, third-party includes, lengths of files, functions and lines, licence lines, unfinished
marks, dead headers, dead links and unfilled placeholders in the documents. The rules are explained
in docs/architecture.md.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = {
    "core": set(),
    "topologies": {"core"},
    "ir": {"core"},
    "training": {"core", "ir"},
    "run": {"core", "topologies", "ir"},
    "planner": {"core", "topologies", "ir"},
    "algorithms": {"core", "topologies", "ir", "planner"},
    "scenarios": {"core", "topologies", "ir", "run", "training", "algorithms", "planner"},
    "report": {"core", "topologies", "ir", "run", "training", "algorithms", "planner",
               "scenarios"},
    "sim": {"core", "topologies", "ir", "run"},
    "exec": {"core", "topologies", "ir", "run"},
    "probe": {"core", "topologies", "ir", "run"},
    "cli": {"core", "topologies", "ir", "run", "training", "algorithms", "planner", "scenarios",
            "sim", "exec", "probe", "report", "backends.h"},
}
# Who may see which third-party headers. Everything else of these is an offence.
THIRD_PARTY = {
    r"yaml-cpp/": r"core/yaml\.cpp",
    r"simgrid/|xbt": r"(sim|bench)/[^/]*\.(cpp|h)",
    r"CLI/": r"cli/.*",
    r"nlohmann/": r"(scenarios|report)/.*|tests/.*|bench/.*",
    r"Eigen/": r"(ir|exec)/.*\.cpp|tests/.*",
    r"boost/": r"(planner|core|topologies|ir)/.*\.cpp|planner/graph/exact\.h",
    r"Clp|Coin": r"planner/packing/packing_master\.cpp",
    r"fmt/": r".*\.cpp",
    r"gtest/|gmock/": r"tests/.*",
    r"benchmark/": r"bench/.*",
    r"mpi\.h": r"bench/.*",
    r"cuda(_|\.h)|nvml": r"exec/cuda/.*|tests/exec/fake_.*",
}
LIMITS = {".h": 150, ".cuh": 150, ".cpp": 400, ".cu": 400}
TEST_LIMIT = 600
FUNCTION_LIMIT = 80
WIDTH = 100
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
PLACEHOLDER = re.compile(r"@[A-Z][A-Z_]*@")
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
NO_FUNCTION = re.compile(
    r"(template\b.*> )?(namespace|class|struct|union|enum|if|for|while|switch|do|try)\b|.* = \{$")

offences = []


def offend(path, line, message):
    offences.append(f"{path}:{line}: {message}")


def installed_headers():
    """The headers named after HEADERS in each room's CMakeLists.txt."""
    for room in ROOMS:
        text = (ROOT / room / "CMakeLists.txt").read_text()
        found = re.search(r"HEADERS\s+(.*?)\s+(?:DEPENDS|PRIVATE|\))", text, re.S)
        for name in (found.group(1).split() if found else []):
            yield f"{room}/{name}"


def check_includes(path, number, included, installed):
    room = path.split("/")[0]
    target = included.split("/")[0]
    if room in ROOMS and target in ROOMS and target != room:
        if target not in ROOMS[room]:
            offend(path, number, f"{room} must not include {included}")
    if target == "planner" and "/" in included[len("planner/"):] and room not in ("planner", "tests"):
        offend(path, number, f"{included} is private to the planner")
    for pattern, allowed in THIRD_PARTY.items():
        if re.match(pattern, included):
            if not re.fullmatch(allowed, path):
                offend(path, number, f"{included} does not belong here")
            if path in installed:
                offend(path, number, f"an installed header must not include {included}")


def functions(text):
    """The first line and the length of everything that looks like a function in formatted code: a
    statement, and the first line of the same indentation that begins with its closing brace."""
    text = RAW_STRING.sub(lambda raw: '""' + "\n" * raw[0].count("\n"), text)
    statement = {}  # the line where the latest one began, by indentation
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        code = line.strip()
        indent = len(line) - len(line.lstrip())
        if code.startswith("}"):
            begin = statement.get(indent)
            if begin and not NO_FUNCTION.match(lines[begin - 1].strip()):
                yield begin, number - begin + 1
        elif code and not code.startswith(("#", "//")):
            statement[indent] = number


def check_source(path, installed):
    text = (ROOT / path).read_text()
    lines = text.splitlines()
    if not lines or "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
        offend(path, 1, "the first line must be the SPDX licence line")
    suffix = pathlib.Path(path).suffix
    limit = TEST_LIMIT if path.startswith("tests/") else LIMITS[suffix]
    if len(lines) > limit:
        offend(path, len(lines), f"{len(lines)} lines; the limit is {limit}")
    for number, length in functions(text):
        if length > FUNCTION_LIMIT:
            offend(path, number, f"a function of {length} lines; the limit is {FUNCTION_LIMIT}")
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH:
            offend(path, number, f"{len(line)} columns; the limit is {WIDTH}")
        if UNFINISHED.search(line):
            offend(path, number, "unfinished mark")
        included = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if included:
            check_includes(path, number, included.group(1), installed)


def check_dead_headers(sources):
    text = "\n".join((ROOT / s).read_text() for s in sources)
    for header in (s for s in sources if s.endswith((".h", ".cuh"))):
        if f'"{header}"' not in text and f"espalier/{header}" not in text:
            offend(header, 1, "no file includes this header")


def check_document(document):
    text = (ROOT / document).read_text()
    for number, line in enumerate(text.splitlines(), 1):
        for placeholder in PLACEHOLDER.findall(line):
            offend(document, number, f"nothing was filled in for {placeholder}")
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", line):
            if "://" in target:
                continue
            if not (ROOT / document).parent.joinpath(target).exists():
                offend(document, number, f"dead link {target}")


def main():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [f for f in listed.stdout.split("\n") if f and (ROOT / f).exists()]
    sources = [f for f in files if f.endswith(tuple(LIMITS))]
    installed = set(installed_headers())
    for source in sources:
        check_source(source, installed)
    check_dead_headers(sources)
    for document in (f for f in files if f.endswith(".md")):
        check_document(document)
    print("\n".join(offences) or f"tidy: {len(files)} files, no offence")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
