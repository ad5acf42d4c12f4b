# SPDX-License-Identifier: Apache-2.0
"""What tests of pages in a browser have in common: pages are written by the program, opened, and complain of
nothing."""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zlib

import browser as browsers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import json_schema  # noqa: E402

MOST_BYTES = 2_000_000
PACKED = re.compile(r'(?<=id="data">)[^<]*')


def data_of(path):
    """What a page shows."""
    packed = PACKED.search(path.read_text(encoding="utf-8")).group(0)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def with_data(path, data):
    """Has a page show something else."""
    packed = base64.b64encode(zlib.compress(json.dumps(data).encode())).decode()
    text = path.read_text(encoding="utf-8")
    path.write_text(PACKED.sub(packed, text, count=1), encoding="utf-8")


class PageCase(unittest.TestCase):
    espalier = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="espalier-pages-")
        cls.browser = browsers.Browser(browsers.find_chromium())

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def report(self, name, *words):
        """The page of a command."""
        path = pathlib.Path(self.folder.name) / f"{name}.html"
        done = subprocess.run([self.espalier, *words, "--html", str(path)], capture_output=True, text=True,
                              cwd=self.folder.name, timeout=600)
        assert done.returncode == 0, done.stderr
        assert path.stat().st_size <= MOST_BYTES, f"{name} has {path.stat().st_size} bytes"
        return path

    def open(self, name, *words, **size):
        path = self.report(name, *words)
        data = data_of(path)
        self.assertEqual(json_schema.document_problems(data), [])
        tab = self.browser.open(path, **size)
        self.check_quiet(tab)
        # The verdict is there before any script runs.
        self.assertIn(data["title"], tab.js("document.title"))
        self.assertEqual(tab.js("document.getElementById('verdict').textContent"), data["verdict"]["text"])
        self.assertEqual(tab.js("document.querySelectorAll('.facts > div').length"),
                         len(data["verdict"]["facts"]))
        return tab, data

    def check_quiet(self, tab):
        self.assertEqual(tab.complaints(), [])
        self.assertEqual(tab.requests(), [])

    def picture(self, tab, name):
        folder = os.environ.get("ESPALIER_SCREENSHOTS")
        if folder:
            tab.screenshot(pathlib.Path(folder) / f"{name}.png")

    def count(self, tab, selector):
        return tab.js(f"document.querySelectorAll({json.dumps(selector)}).length")

    def text(self, tab, selector):
        return tab.js(f"document.querySelector({json.dumps(selector)}).textContent")

    def overflow(self, tab):
        """By how many pixels a page is wider than its window."""
        return tab.js("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def choose(self, tab, selector, value):
        """Chooses an option as a reader does."""
        tab.js(f"""(() => {{
            const choice = document.querySelector({json.dumps(selector)});
            choice.value = {json.dumps(value)};
            choice.dispatchEvent(new Event("change"));
        }})()""")

    def press_link(self, tab, link):
        """Chooses a link of the machine with the keyboard."""
        tab.js(f"document.querySelectorAll('.machine .hit')[{link}].focus()")
        tab.press("Enter")


def main():
    if browsers.find_chromium() is None:
        print("SKIPPED: there is no chromium here")
        sys.exit(77)
    PageCase.espalier = str(pathlib.Path(sys.argv[1]).resolve())
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
