#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu_bundle.sh FILE: packs what was built, the libraries it needs and the GPU checks into an archive for computers
# where nothing can be built or installed. Called by `./dev bundle`, which builds before.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${ESPALIER_BUILD_DIR:-build}
file=$1
name=espalier-gpu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/$name
programs=(espalier gpu_rates tests/cuda_test)
scripts=(gpu_check.sh gpu_error.py mpi/like_torchrun.py mpi/launch.py)

mkdir -p "$stage/build/tests" "$stage/tests/mpi" "$stage/lib"
for program in "${programs[@]}"; do
  cp "$build/$program" "$stage/build/$program"
  strip --strip-debug "$stage/build/$program"
done
for script in "${scripts[@]}"; do cp "tests/$script" "$stage/tests/$script"; done
cp tests/gpu_bundle_run.sh "$stage/run"
chmod +x "$stage/run"
git describe --always --dirty 2>/dev/null >"$stage/commit" || echo unknown >"$stage/commit"

# All but SimGrid's, which no check asks for, and those of the C library, which belong to the kernel's loader.
libraries=$(cd "$build" && ldd "${programs[@]}")
if grep 'not found' <<<"$libraries" >&2; then exit 3; fi
awk '$3 ~ /^\// { print $3 }' <<<"$libraries" | sort -u |
  grep -vE '/(libc|libm|libpthread|libdl|librt|libresolv|libutil|libanl|libmvec)\.so\.[0-9]+$' |
  while read -r library; do cp -L "$library" "$stage/lib/"; done

mkdir -p "$(dirname "$file")"
tar -C "$work" -c "$name" | xz -T0 -3 >"$work/archive"
mv "$work/archive" "$file"
echo "$file: $(du -h "$file" | cut -f1). On a computer with GPUs: tar xf $(basename "$file") && $name/run" >&2
