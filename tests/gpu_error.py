#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_error.py REPORT LIMIT: says whether the median error of a comparison, from 16 MiB on, is below a
share, as a line of Markdown; exits 1 when it is not, or when the report says nothing."""

import json
import sys


def judge(report, limit):
    """The line and whether the limit is kept.

    >>> judge({"median_error_from_16MiB": 0.1}, 0.1)
    ('Median error from 16 MiB on: 10.0 %, wanted 10 %: reached', True)
    >>> judge({"median_error_from_16MiB": 0.11}, 0.1)
    ('Median error from 16 MiB on: 11.0 %, wanted 10 %: **missed**', False)
    >>> judge({"median_error_from_16MiB": None}, 0.1)
    ('Median error from 16 MiB on: **not measured**', False)
    """
    error = report.get("median_error_from_16MiB")
    if error is None:
        return "Median error from 16 MiB on: **not measured**", False
    kept = error <= limit
    verdict = "reached" if kept else "**missed**"
    return f"Median error from 16 MiB on: {100 * error:.1f} %, wanted {100 * limit:.0f} %: {verdict}", kept


def main():
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError):
        report = {}
    line, kept = judge(report, float(sys.argv[2]))
    print(line)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
