#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run [ARGUMENT...]: espalier with these arguments; without any, all that needs a GPU is checked (tests/gpu_check.sh).
# Of a bundle's libraries only those are used that this computer lacks or has in too old a version: its MPI, which its
# launcher belongs to, comes first.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lent=$(mktemp -d)
trap 'rm -rf "$lent"' EXIT
export LD_LIBRARY_PATH=$lent${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# What the loader does not find, or finds without the symbols of some version; a library that is lent may need more.
wanting() {
  ldd "$here"/build/espalier "$here"/build/gpu_rates "$here"/build/tests/cuda_test 2>&1 |
    sed -nE -e 's/^\s*(\S+) => not found.*/\1/p' -e "s/^.*\/([^/]+): version .* not found.*/\1/p" | sort -u
}
missing=$(wanting)
while [ -n "$missing" ]; do
  for library in $missing; do
    if [ ! -e "$here/lib/$library" ] || [ -e "$lent/$library" ]; then
      echo "run: this computer's $library is too old or missing, and a bundle can't bring it:" \
        "build on a computer with an older system" >&2
      exit 3
    fi
    ln -s "$here/lib/$library" "$lent/"
  done
  missing=$(wanting)
done

if [ $# -gt 0 ]; then
  "$here/build/espalier" "$@"
else
  ESPALIER_BUILD_DIR=$here/build bash "$here/tests/gpu_check.sh"
fi
