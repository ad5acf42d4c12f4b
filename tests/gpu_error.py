#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_error.py REPORT LIMIT ROWS: says whether the median error of a comparison, from 16 MiB on, is below a
share, as a line of Markdown; exits 1 when it is not, when an element was wrong, and when fewer rows of at
least 16 MiB than ROWS were measured."""

import json
import sys

LARGE_BYTES = 16 << 20


def judge(report, limit, wanted_rows):
    """The line and whether all is well.

    >>> row = {"kind": "comparison", "size_bytes": 16 << 20, "wrong": 0}
    >>> judge({"median_error_from_16MiB": 0.1, "results": [row]}, 0.1, 1)
    ('Median error from 16 MiB on: 10.0 %, wanted 10 %: reached', True)
    >>> judge({"median_error_from_16MiB": 0.11, "results": [row]}, 0.1, 1)
    ('Median error from 16 MiB on: 11.0 %, wanted 10 %: **missed**', False)
    >>> judge({"median_error_from_16MiB": None}, 0.1, 0)
    ('Median error from 16 MiB on: **not measured**', False)

    Rows that are missing would change the median unnoticed; small ones don't count.

    >>> judge({"median_error_from_16MiB": 0.1, "results": [row, {**row, "size_bytes": 4}]}, 0.1, 2)
    ('Median error from 16 MiB on: 10.0 %, of 1 measurement instead of 2: **not measured**', False)

    What is wrong is wrong at any size, and what was not checked may be.

    >>> judge({"median_error_from_16MiB": 0.1, "results": [row, {**row, "size_bytes": 4, "wrong": 7}]}, 0.1, 1)
    ('Median error from 16 MiB on: 10.0 %, of results that are **wrong**', False)
    >>> judge({"median_error_from_16MiB": 0.1, "results": [{**row, "wrong": None}]}, 0.1, 1)
    ('Median error from 16 MiB on: 10.0 %, of results that are **not checked**', False)
    """
    what = "Median error from 16 MiB on: "
    error = report.get("median_error_from_16MiB")
    if error is None:
        return what + "**not measured**", False
    what += f"{100 * error:.1f} %, "
    rows = [row for row in report.get("results", []) if row["kind"] == "comparison"]
    if any(row.get("wrong") for row in rows):
        return what + "of results that are **wrong**", False
    if any(row.get("wrong") is None for row in rows):
        return what + "of results that are **not checked**", False
    large = sum(row["size_bytes"] >= LARGE_BYTES for row in rows)
    if large < wanted_rows:
        counted = f"{large} measurement{'' if large == 1 else 's'}"
        return what + f"of {counted} instead of {wanted_rows}: **not measured**", False
    kept = error <= limit
    return what + f"wanted {100 * limit:.0f} %: {'reached' if kept else '**missed**'}", kept


def main():
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError):
        report = {}
    line, kept = judge(report, float(sys.argv[2]), int(sys.argv[3]))
    print(line)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
