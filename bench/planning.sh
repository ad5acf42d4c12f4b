#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long plans take, beside how long they may: planning.sh
set -eu
cd "$(dirname "$0")/.."
exec "${ESPALIER_BUILD:-build}/planning_bench"
