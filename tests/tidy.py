#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house rules that a compiler does not check. Prints every offence and exits 1 if there is one.

Who includes whom, third-party and private headers, lengths of functions and lines, licence lines,
unfinished marks, headers that nobody includes, types of one name, and everything that comments and documents refer to:
files, folders, links, placeholders. Files of many lines are printed as well, but are no offence. The
rules are explained in docs/architecture.md.
"""

import collections
import pathlib
import posixpath
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Who may include whom. A room that isn't there yet has its row already.
ROOMS = {
    "core": set(),
    "topologies": {"core"},
    "ir": {"core"},
    "training": {"core", "ir"},
    "run": {"core", "topologies", "ir"},
    "planner": {"core", "topologies", "ir"},
    "nccl": {"core", "topologies", "ir", "planner"},
    "algorithms": {"core", "topologies", "ir", "formats", "planner", "nccl"},
    "sim": {"core", "topologies", "ir", "run"},
    "exec": {"core", "topologies", "ir", "run"},
    "probe": {"core", "topologies", "ir", "run"},
    "formats": {"core", "topologies", "ir"},
    "scenarios": {"core", "topologies", "ir", "formats", "training", "run", "planner", "nccl",
                  "algorithms", "probe"},
    "report": {"core", "topologies", "ir", "training", "run", "planner", "algorithms", "probe",
               "scenarios"},
}
# The table of back ends and what is probed with them, files that stand beside the rooms; the command line
# and Python see everything.
ROOMS["backends"] = set(ROOMS)
ROOMS["surveys"] = set(ROOMS)
ROOMS["cli"] = set(ROOMS)
ROOMS["python"] = set(ROOMS)
# May include everything, and may be included by nobody else.
OUTSIDE = {"bench", "tests"}
# Who may see which third-party headers. Everything else of these is an offence.
THIRD_PARTY = {
    r"yaml-cpp/": r"core/yaml\.cpp",
    r"simgrid/|xbt": r"(sim|bench)/[^/]*\.(cpp|h)|tests/formats/simgrid_platform_test\.cpp",
    r"CLI/": r"cli/.*",
    r"pybind11/|Python\.h": r"python/.*",
    r"nlohmann/": r"(scenarios|report|tests|bench)/.*|formats/json_text\.h",
    r"Eigen/": r"(ir|exec|probe)/.*\.cpp|tests/.*",
    r"boost/": r"(planner|core|topologies|ir)/.*\.cpp|planner/graph/exact\.h|sim/(flow_engine|op_flows)\.h",
    r"Clp|Coin": r"planner/packing/packing_master\.cpp",
    r"pugixml": r"formats/xml_text\.h|tests/formats/.*",
    r"fmt/": r".*\.cpp",
    r"gtest/|gmock/": r"tests/.*",
    r"benchmark/": r"bench/.*",
    r"mpi\.h": r"exec/mpi/.*|bench/.*",
    r"cuda(_|\.h)|nvml": r"exec/(mpi_)?cuda/.*|tests/exec/fake_.*",
}
SOURCES = (".h", ".cuh", ".cpp", ".cu")
LONG_FILE = 450  # lines; only a warning, since a definition must be easy to find from its header
FUNCTION_LIMIT = 60
LONG_FUNCTIONS = {"cli/options.cpp", "report/fields.cpp"}  # tables: of options, of a report's fields
WIDTH = 100
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
PLACEHOLDER = re.compile(r"@[A-Z][A-Z_]*@")
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
NO_FUNCTION = re.compile(
    r"(template\b.*> )?(namespace|class|struct|union|enum|if|for|while|switch|do|try)\b|.* = \{$")

# What comments and documents may name: files of ours, not those of a build or of another project.
COMMENT = {**dict.fromkeys(SOURCES, "//"), **dict.fromkeys((".py", ".sh", ".cmake", ".yaml"), "#")}
REFERENCE = re.compile(
    r"(?<![\w./<:-])((?:[\w.-]+/)*[\w.-]+\.(?:h|cuh|cpp|cu|py|sh|cmake|md|yaml|txt|esp)|(?:[\w-]+/)+)"
    r"(?![\w/<*{]|\.\w)")
ELSEWHERE = {"embedded.cpp"}  # written while building

offences = []
warnings = []


def offend(path, line, message):
    offences.append(f"{path}:{line}: {message}")


def installed_headers(files):
    """The headers named after HEADERS in every espalier_room(...)."""
    for path in (f for f in files if posixpath.basename(f) == "CMakeLists.txt"):
        for arguments in re.findall(r"^\s*espalier_room\((.*?)\)\s*$", (ROOT / path).read_text(),
                                    re.S | re.M):
            found = re.search(r"\bHEADERS\s+(.*?)(?:\s(?:DEPENDS|PRIVATE|PRECOMPILE|UNITY)\b|$)",
                              arguments, re.S)
            for name in (found.group(1).split() if found else []):
                yield posixpath.join(posixpath.dirname(path), name)


def room_of(path):
    """The first folder; of a file beside the folders, its name."""
    return path.split("/")[0].split(".")[0]


def check_includes(path, number, included, files, installed):
    room, target = room_of(path), room_of(included)
    if room in ROOMS and target != room:
        if target in OUTSIDE or (target in ROOMS and target not in ROOMS[room]):
            offend(path, number, f"{room} must not include {included}")
    if target == "planner" and "/" in included[len("planner/"):] and room not in ("planner", "tests"):
        offend(path, number, f"{included} is private to the planner")
    if path in installed and included in files and included not in installed:
        offend(path, number, f"an installed header must not include {included}, which isn't installed")
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
        if code:  # what stands further in is over
            statement = {at: begin for at, begin in statement.items() if at <= indent}
        if code.startswith("}"):
            begin = statement.pop(indent, None)
            if begin and not NO_FUNCTION.match(lines[begin - 1].strip()):
                yield begin, number - begin + 1
        elif code and not code.startswith(("#", "//")):
            statement[indent] = number


def check_source(path, files, installed):
    text = (ROOT / path).read_text()
    lines = text.splitlines()
    if not lines or "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
        offend(path, 1, "the first line must be the SPDX licence line")
    if len(lines) > LONG_FILE:
        warnings.append(f"{path}: {len(lines)} lines; has it one clear purpose?")
    for number, length in functions(text):
        if length > FUNCTION_LIMIT and path not in LONG_FUNCTIONS:
            offend(path, number, f"a function of {length} lines; the limit is {FUNCTION_LIMIT}")
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH:
            offend(path, number, f"{len(line)} columns; the limit is {WIDTH}")
        if UNFINISHED.search(line):
            offend(path, number, "unfinished mark")
        included = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if included:
            check_includes(path, number, included.group(1), files, installed)


def check_dead_headers(sources):
    text = "\n".join((ROOT / s).read_text() for s in sources)
    for header in (s for s in sources if s.endswith((".h", ".cuh"))):
        if f'"{header}"' not in text and f"espalier/{header}" not in text:
            offend(header, 1, "no file includes this header")


def check_types(sources):
    """Two types of one name in one namespace are undefined behaviour wherever they are linked together,
    and no linker says so."""
    declared = {}
    for header in (s for s in sources if s.endswith((".h", ".cuh"))):
        if room_of(header) in OUTSIDE:
            continue
        space = ""
        for number, line in enumerate((ROOT / header).read_text().splitlines(), 1):
            opened = re.match(r"namespace ([\w:]+) {", line)
            if opened:
                space = opened.group(1)
            made = re.match(r"(?:struct|class|enum class|enum) (?:alignas\(\w+\) )?(\w+)(?: final)?(?: :[^;]*)? {", line)
            if not made:
                continue
            name = f"{space}::{made.group(1)}"
            if name in declared:
                offend(header, number, f"{declared[name]} has a type of that name, too")
            declared[name] = f"{header}:{number}"


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


def is_known(name, path, files, folders, places):
    """Whether what a file calls `name` is there: from the root, its folder or its room, or as the
    only file of that name. Paths that begin with no folder of ours are those of other projects."""
    if name in ELSEWHERE or "NAME" in name:
        return True
    folder = posixpath.dirname(path)
    for base in ("", folder, room_of(path), "tests", "docs"):
        target = posixpath.normpath(posixpath.join(base, name))
        if target in files or target in folders:
            return True
    if "/" not in name:
        # Others are what a user might call a file.
        return not name.endswith(SOURCES) or len(places[name]) == 1
    first = name.split("/")[0]
    return first not in folders and posixpath.join(room_of(path), first) not in folders


def check_references(files):
    folders = {str(parent) for f in files for parent in pathlib.PurePosixPath(f).parents} - {"."}
    places = collections.defaultdict(list)
    for file in files:
        places[posixpath.basename(file)].append(file)
    for path in sorted(files):
        suffix = ".cmake" if path.endswith("CMakeLists.txt") else posixpath.splitext(path)[1]
        if suffix != ".md" and suffix not in COMMENT:
            continue
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            words = line if suffix == ".md" else line.partition(COMMENT[suffix])[2]
            if re.match(r"\s*#\s*include", line):
                continue
            for name in REFERENCE.findall(words):
                if not is_known(name, path, files, folders, places):
                    offend(path, number, f"there is no {name}, or more than one")


def main():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = {f for f in listed.stdout.split("\n") if f and (ROOT / f).is_file()}
    sources = sorted(f for f in files if f.endswith(SOURCES))
    installed = set(installed_headers(files))
    for source in sources:
        check_source(source, files, installed)
    check_dead_headers(sources)
    check_types(sources)
    check_references(files)
    for document in sorted(f for f in files if f.endswith(".md")):
        check_document(document)
    for warning in warnings:
        print(f"warning: {warning}")
    print("\n".join(offences) or f"tidy: {len(files)} files, no offence")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
