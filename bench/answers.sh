#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long answers take, as a user waits for them, beside another build's: answers.sh [BINARY]
set -eu
cd "$(dirname "$0")/.."
exec python3 bench/answers.py "${ESPALIER_BUILD:-build}/espalier" "$@"
