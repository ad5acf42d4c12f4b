#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The simulator beside a bare SimGrid loop, and the cost of a what-if: simulator.sh [JSON-FILE]
set -eu
cd "$(dirname "$0")/.."
exec "${ESPALIER_BUILD:-build}/simulator_bench" "$@"
