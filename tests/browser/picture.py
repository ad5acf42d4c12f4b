#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The picture of the README: the upper part of a page of --html as a browser shows it.

    picture.py ESPALIER PICTURE.png
"""

import pathlib
import subprocess
import sys
import tempfile

import browser as browsers

# The first question of scenarios/quickstart.yaml about six GPUs, for all sizes.
QUESTION = ["sim", "--topology", "dgx1-v100", "--gpus", "0-5", "--size", "1KiB..1GiB",
            "--algorithm", "optimal", "blink", "nccl", "hierarchical_leaders", "ring"]
WIDTH = 1060
SCALE = 0.83  # as wide as text is on the pages where it is shown
MOST_BYTES = 200_000


def main():
    espalier, picture = sys.argv[1:]
    chromium = browsers.find_chromium()
    if chromium is None:
        print("picture: there is no chromium here", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, browsers.Browser(chromium) as browser:
        page = pathlib.Path(folder) / "page.html"
        subprocess.run([espalier, *QUESTION, "--html", str(page)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        tab = browser.open(page, width=WIDTH, height=900)
        tab.dark(False)
        # What is for whoever uses the page is left out, and the drawing is no larger than it needs to be.
        tab.js("""(() => {
            const left_out = ".facts, .curves .readout, .controls, details, .panel .note";
            for (const one of document.querySelectorAll(left_out)) one.remove();
            document.querySelector(".machine svg").style.maxHeight = "31rem";
            for (const title of document.querySelectorAll("h2")) title.style.marginTop = "1.2rem";
        })()""")
        bottom = tab.js("document.querySelector('.machine').getBoundingClientRect().bottom + scrollY")
        tab.screenshot(picture, clip={"x": 0, "y": 0, "width": WIDTH, "height": bottom + 12, "scale": SCALE})
    size = pathlib.Path(picture).stat().st_size
    if size > MOST_BYTES:
        print(f"picture: {size} bytes are more than {MOST_BYTES}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
