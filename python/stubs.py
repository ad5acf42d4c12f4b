#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the type stubs of the compiled module, from the signatures that pybind11 puts into its
documentation: stubs.py FOLDER_OF_THE_PACKAGE. They are made whenever the module is built."""

import importlib
import inspect
import pathlib
import re
import sys

HEADER = '''"""Type stubs of the compiled module, made when it is built (python/stubs.py)."""

import os
from typing import Any, Dict, Iterable, List, Optional, Sequence, SupportsIndex, Tuple, Union

'''
SIGNATURE = re.compile(r"^(?:\d+\. )?(?P<name>\w*)\((?P<parameters>.*)\) -> (?P<result>.+)$")


WHOLE = {"dict": "Dict[str, Any]", "list": "List[Any]", "tuple": "Tuple[Any, ...]"}


def accepted(annotation):
    """What a parameter takes: whatever Python can go through for a list, and what counts for a number."""
    return re.sub(r"\bint\b", "SupportsIndex", annotation.replace("List[", "Sequence["))


def plain(annotation):
    """Without the module's own name; of containers that say no more, what they may hold."""
    annotation = WHOLE.get(annotation, annotation)
    return re.sub(r"\b(espalier\.)?_espalier\.", "", annotation)


def documented(text, indent):
    lines = [line for line in inspect.cleandoc(text).splitlines()]
    if not any(lines):
        return []
    return [f'{indent}"""' + "\n".join([lines[0]] + [indent + one for one in lines[1:]]) + '"""']


def parted(parameters):
    """The parameters of a signature: commas within brackets and quotes belong to them."""
    parts, depth, quote = [""], 0, ""
    for letter in parameters:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        depth += (letter in "([{") - (letter in ")]}") if not quote else 0
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def parameter(text):
    text = plain(text)
    name, colon, annotation = text.partition(":")
    if name in ("self", "arg0") or not colon:
        return "self" if name == "arg0" else name
    annotation, equals, default = annotation.strip().partition(" = ")
    annotation = accepted(annotation)
    if default == "None" and "None" not in annotation and not annotation.startswith("Optional"):
        annotation += " | None"
    return f"{name}: {annotation}" + (f" = {default}" if equals else "")


def function(name, routine, indent, is_static=False):
    """The stub of a function, from the first line of its documentation."""
    first, _, rest = (routine.__doc__ or "").partition("\n")
    found = SIGNATURE.match(first)
    if not found:
        raise ValueError(f"{name} has no signature: {first!r}")
    parameters = ", ".join(parameter(one) for one in parted(found["parameters"]))
    lines = [f"{indent}@staticmethod"] if is_static else []
    head = f"{indent}def {name}({parameters}) -> {plain(found['result'])}:"
    body = documented(rest, indent + "    ")
    return lines + ([head] + body if body else [head + " ..."])


def attribute(name, found, indent):
    signature = SIGNATURE.match((found.fget.__doc__ or "").strip().split("\n")[0])
    result = plain(signature["result"]) if signature else "Any"
    lines = [f"{indent}@property", f"{indent}def {name}(self) -> {result}:"]
    body = documented(found.__doc__ or "", indent + "    ")
    return lines + body if body else lines[:-1] + [lines[-1] + " ..."]


SPECIAL = {"__init__", "__bool__"}


def class_stub(name, cls):
    if issubclass(cls, BaseException):
        return [f"class {name}(Exception):"] + documented(cls.__doc__, "    ") + [
            "    kind: str", "    diagnostics: Sequence[Diagnostic]"]
    lines = []
    for member in sorted(vars(cls)):
        found = vars(cls)[member]
        if member.startswith("__") and member not in SPECIAL:
            continue
        if isinstance(found, property):
            lines += attribute(member, found, "    ")
        elif isinstance(found, staticmethod):
            lines += function(member, getattr(cls, member), "    ", is_static=True)
        elif callable(found) and SIGNATURE.match((found.__doc__ or "").split("\n")[0]):
            lines += function(member, found, "    ")
    return [f"class {name}:"] + (documented(cls.__doc__ or "", "    ") + lines or ["    ..."])


def stubs(module):
    parts = []
    for name in sorted(vars(module)):
        found = vars(module)[name]
        if inspect.isclass(found):
            parts.append(class_stub(name, found))
        elif callable(found):
            parts.append(function(name, found, ""))
        elif name == "__version__":
            parts.append(["__version__: str"])
    return HEADER + "\n\n".join("\n".join(part) for part in parts) + "\n"


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    # The package itself may need what is not installed where it is built.
    sys.path.insert(0, str(folder))
    module = importlib.import_module("_espalier")
    (folder / "_espalier.pyi").write_text(stubs(module))


if __name__ == "__main__":
    main()
