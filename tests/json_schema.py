# SPDX-License-Identifier: Apache-2.0
"""Checks JSON against a schema, as far as our schemas go: Python's library has nothing for it."""

import functools
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "report" / "schemas"

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "enum", "const",
         "properties", "required", "additionalProperties", "items", "minimum", "maximum",
         "minItems", "anyOf"}


@functools.cache
def read(file):
    return json.loads((FOLDER / file).read_text())


def load(name):
    """The schema that a document names: "espalier.report/2"."""
    return read(name.removeprefix("espalier.").replace("/", "-") + ".schema.json")


def document_problems(document):
    """What is wrong with a document by the schema that it names."""
    return problems(document, load(document["schema"]))


def _is(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value, schema, root=None, where="$"):
    """What is wrong, a line each.

    >>> problems({"a": [1, "x"]}, {"type": "object", "required": ["b"], "additionalProperties": False,
    ...     "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
    ...     "$defs": {"n": {"type": ["integer", "null"], "minimum": 2}}})
    ['$: lacks b', '$.a[0]: 1 is below 2', '$.a[1]: is no integer or null']
    >>> problems({"c": 1}, {"type": "object", "properties": {}, "additionalProperties": False})
    ['$: has c, which is unknown']
    >>> problems([1, None, "x"], {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}})
    ['$[2]: is no integer']

    Of alternatives, the complaints of the one that fits best are those about the document:
    >>> kinds = [{"type": "object", "properties": {"kind": {"const": kind}, "n": {"type": "integer"}}}
    ...     for kind in "ab"]
    >>> problems({"kind": "b", "n": "x"}, {"anyOf": kinds})
    ['$.n: is no integer']
    """
    root = schema if root is None else root
    unknown = set(schema) - KNOWN
    assert not unknown, f"a schema with {unknown} is not understood"
    if "$ref" in schema:
        file, name = schema["$ref"].split("#/$defs/")
        if file:
            root = read(file)
        return problems(value, root["$defs"][name], root, where)
    if "anyOf" in schema:
        return min((problems(value, one, root, where) for one in schema["anyOf"]), key=len)
    found = []
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is(value, name) for name in names):
            return [f"{where}: is no {' or '.join(names)}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: is {value!r}, not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    if "minimum" in schema and _is(value, "number") and value < schema["minimum"]:
        found.append(f"{where}: {value} is below {schema['minimum']}")
    if "maximum" in schema and _is(value, "number") and value > schema["maximum"]:
        found.append(f"{where}: {value} is above {schema['maximum']}")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{where}: lacks {name}" for name in schema.get("required", []) if name not in value]
        for name, one in value.items():
            if name in known:
                found += problems(one, known[name], root, f"{where}.{name}")
            elif schema.get("additionalProperties", True) is False:
                found.append(f"{where}: has {name}, which is unknown")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            found.append(f"{where}: has fewer than {schema['minItems']} items")
        if "items" in schema:
            for at, one in enumerate(value):
                found += problems(one, schema["items"], root, f"{where}[{at}]")
    return found
