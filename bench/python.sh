#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What simulations cost from Python, beside what they cost from C++: python.sh
set -eu
cd "$(dirname "$0")/.."
build=${ESPALIER_BUILD:-build}
if [ ! -d "$build/python/espalier" ]; then
  echo "this build has no \`import espalier\`: python3-dev or pybind11-dev is missing" >&2
  exit 0
fi
python=$(sed -n 's/^_\?Python_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt" | head -n 1)
PYTHONPATH=$build/python:tests/python exec "${python:-/usr/bin/python3}" bench/python.py "$build/study_ring"
