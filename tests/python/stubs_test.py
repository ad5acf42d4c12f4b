#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The type stubs beside the module are those of its signatures, and say something of everything."""

import ast
import builtins
import inspect
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import espalier
from espalier import _espalier

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(_espalier.__file__).parent


class Stubs(unittest.TestCase):
    def setUp(self):
        self.text = (FOLDER / "_espalier.pyi").read_text()
        self.tree = ast.parse(self.text)

    def test_they_are_fresh(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(_espalier.__file__, folder)
            subprocess.run([sys.executable, ROOT / "python" / "stubs.py", folder], check=True)
            self.assertEqual((pathlib.Path(folder) / "_espalier.pyi").read_text(), self.text)

    def test_names_in_annotations_are_known(self):
        known = set(dir(builtins)) | {node.name for node in self.tree.body if hasattr(node, "name")}
        for node in self.tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                known |= {alias.name for alias in node.names}
        for function in ast.walk(self.tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            arguments = function.args
            annotations = [function.returns] + [argument.annotation for argument in
                                                arguments.args + arguments.kwonlyargs]
            for annotation in filter(None, annotations):
                for name in ast.walk(annotation):
                    if isinstance(name, ast.Name):
                        self.assertIn(name.id, known, function.name)

    def test_everything_public_is_there(self):
        classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        functions = {node.name for node in self.tree.body if isinstance(node, ast.FunctionDef)}
        for name, found in vars(_espalier).items():
            if inspect.isclass(found):
                members = {node.name for node in classes[name].body if isinstance(node, ast.FunctionDef)}
                members |= {node.target.id for node in classes[name].body
                            if isinstance(node, ast.AnnAssign)}
                public = {member for member in vars(found) if not member.startswith("_")}
                self.assertLessEqual(public, members, name)
            elif callable(found) and not name.startswith("__"):
                self.assertIn(name, functions)

    def test_every_parameter_has_a_type(self):
        for function in ast.walk(self.tree):
            if isinstance(function, ast.FunctionDef):
                for argument in function.args.args + function.args.kwonlyargs:
                    if argument.arg != "self":
                        self.assertIsNotNone(argument.annotation, function.name)

    def test_the_package_exports_what_it_documents(self):
        for name in espalier.__all__:
            self.assertTrue(hasattr(espalier, name), name)
            if not name.startswith("__"):
                self.assertTrue(getattr(espalier, name).__doc__, name)
        self.assertTrue((FOLDER / "py.typed").exists())


if __name__ == "__main__":
    unittest.main()
