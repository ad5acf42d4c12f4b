#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What only a GPU can show: every GPU test, the same under compute-sanitizer, how fast programs run against
# a cudaMemcpy, and how well a probed topology foretells it. Prints a summary in Markdown, for
# docs/validation.md. Called by `./dev gpu`, which builds before. Exit code 1 when something failed or a figure was
# missed, 3 without a GPU.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

espalier=build/espalier
tests=build/tests/cuda_test
rates=build/gpu_rates
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
failures=0

# Without a GPU this says what is missing, and that is all there is to say.
"$espalier" exec --backend cuda --ranks 1 --algorithm ring --size 4 --iters 1 >/dev/null || exit

# row NAME COMMAND...: a line of the table; shows the output of what fails.
row() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "| $name | passed |"
  else
    failures=$((failures + 1))
    echo "| $name | **failed** |"
    printf '%s\n' "$output" | tail -n 40 >&2
  fi
}

echo "## $(date -u +%F), commit $(git rev-parse --short HEAD)"
echo
nvidia-smi --query-gpu=index,name,driver_version,memory.total --format=csv | sed 's/^/    /'
/usr/bin/env PATH="$PATH:/usr/local/cuda/bin" nvcc --version | sed -n 's/^Cuda compilation/    Cuda compilation/p'
echo
echo "| check | |"
echo "|---|---|"
row "GPU tests" "$tests" --gtest_brief=1
if [ -x "$sanitizer" ]; then
  # Blocks of odd sizes, whose operands are aligned to their elements only. Racecheck looks at shared
  # memory, of which today's kernels have none; it is for those to come.
  short='*.RunsThroughHostMemory*:*.ReportsAWrongResult:*.KeepsATimeline:*.RunOperandsThatBeginAnywhere*'
  for tool in memcheck initcheck racecheck; do
    row "compute-sanitizer $tool" "$sanitizer" --tool "$tool" --error-exitcode 9 \
      "$tests" --gtest_brief=1 --gtest_filter="$short"
  done
else
  echo "| compute-sanitizer | not installed |"
fi
for options in "--profile kernel" "--profile copy_engine" "--profile kernel --dtype half --op max"; do
  # shellcheck disable=SC2086  # several words
  row "all algorithms, 8 ranks, $options" "$espalier" exec --backend cuda --ranks 8 \
    --algorithm all --size 1000,16MiB --iters 3 $options
done
for collective in allgather reducescatter alltoall broadcast; do
  row "$collective, 8 ranks, odd sizes" "$espalier" exec --backend cuda --ranks 8 --collective "$collective" \
    --algorithm all --size 1000003 --dtype uint8 --iters 3
done
echo
echo "Rates, ${rates}:"
echo
"$rates" 2>/dev/null || failures=$((failures + 1))
echo

# foretell NAME TOPOLOGY OPTION...: compares, and asks for a median error of 10 % from 16 MiB on.
foretell() {
  local name=$1 topology=$2 json
  shift 2
  json=$(mktemp)
  local compare=("$espalier" compare --backend cuda --topology "$topology" --algorithm ring optimal
                 --size 64KiB,1MiB,16MiB..256MiB "$@")
  echo "Prediction, $name: \`${compare[*]}\`"
  echo
  "${compare[@]}" --json "$json" | sed 's/^/    /'
  python3 tests/gpu_error.py "$json" 0.10 || failures=$((failures + 1))
  rm -f "$json"
  echo
}

probed=$(mktemp -d)
trap 'rm -rf "$probed"' EXIT
if "$espalier" probe --backend cuda --devices 0 --virtual 8 --output "$probed/eight.yaml" | sed 's/^/    /'; then
  foretell "8 ranks on one GPU" "$probed/eight.yaml" --devices 0,0,0,0,0,0,0,0
else
  failures=$((failures + 1))
fi
if [ "$(nvidia-smi --query-gpu=index --format=csv,noheader | wc -l)" -gt 1 ]; then
  if "$espalier" probe --backend cuda --output "$probed/all.yaml" | sed 's/^/    /'; then
    foretell "all GPUs" "$probed/all.yaml"
  else
    failures=$((failures + 1))
  fi
fi
for algorithm in ring double_binary_tree flat_two_stage; do
  "$espalier" exec --backend cuda --ranks 8 --algorithm "$algorithm" --size 8,64KiB,1MiB,16MiB,256MiB |
    sed 's/^/    /' || failures=$((failures + 1))
  echo
done
[ "$failures" -eq 0 ]
