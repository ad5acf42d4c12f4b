#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md, which run as they stand there."""

import doctest
import importlib.util
import os
import pathlib
import re
import tempfile
import unittest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
FENCED = re.compile(r"^```pycon\n(.*?)^```$", re.M | re.S)
MOST_LINES = 15


def examples():
    """One test for each section: its blocks share what they define. Lines are those of the page."""
    text = PAGE.read_text()
    for section in re.finditer(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        blocks = list(FENCED.finditer(section[2]))
        if not blocks:
            continue
        kept = [""] * (section[2].count("\n") + 1)
        for block in blocks:
            first = section[2].count("\n", 0, block.start(1))
            for number, line in enumerate(block[1].split("\n")[:-1]):
                kept[first + number] = line
        yield section[1], "\n".join(kept), text.count("\n", 0, section.start(2))


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def test_every_example_says_what_the_page_says(self):
        parser = doctest.DocTestParser()
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        count = 0
        for name, text, line in examples():
            with self.subTest(name):
                if "to_pandas" in text and importlib.util.find_spec("pandas") is None:
                    self.skipTest("there is no pandas")
                said = []
                runner = doctest.DocTestRunner(optionflags=flags)
                runner.run(parser.get_doctest(text, {}, name, str(PAGE), line), out=said.append)
                self.assertEqual(runner.failures, 0, "".join(said))
                count += 1
        self.assertGreaterEqual(count, 5)

    def test_algorithms_are_short(self):
        for block in FENCED.findall(PAGE.read_text()):
            for written in re.findall(r"^>>> @es\.algorithm.*?\n((?:^\.\.\. .*\n)+)", block, re.M):
                self.assertLess(written.count("\n"), MOST_LINES, written)


if __name__ == "__main__":
    unittest.main()
