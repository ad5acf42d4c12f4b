#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What only a GPU can show: every GPU test, the same under compute-sanitizer, processes with a GPU each and every
# way of messages between them, how fast programs run against a cudaMemcpy and NCCL, and how well a probed
# topology foretells it; and the tests on stand-ins. Prints a summary in Markdown, for
# docs/validation.md. Called by `./dev gpu`, which builds before, and by a bundle's `run`, where there are no tests on
# stand-ins: they do not need a GPU, and find their stand-ins where they were built. Exit code 1 when something failed, could not be
# checked or a figure was missed, 3 where CUDA runs nothing at all.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

build=${ESPALIER_BUILD_DIR:-build}
espalier=$build/espalier
tests=$build/tests/cuda_test
rates=$build/gpu_rates
toolkit=$(sed -n 's/^CUDAToolkit_BIN_DIR:[A-Z]*=//p' "$build/CMakeCache.txt" 2>/dev/null)
PATH=$PATH:${toolkit:-/usr/local/cuda/bin}
failures=0
misses=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

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

# some_tests COMMAND...: a filter that fits no test passes, and so do tests that are all skipped.
some_tests() {
  "$@" | tee "$work/tests" && grep -q '^\[  PASSED  \] [1-9]' "$work/tests"
}

# no_errors COMMAND...: of compute-sanitizer, which says so for the processes that it has seen.
no_errors() {
  "$@" | tee "$work/summary" && grep -q 'ERROR SUMMARY: 0 errors' "$work/summary" &&
    ! grep -q 'ERROR SUMMARY: [1-9]' "$work/summary"
}

# processes LAUNCHER TRANSPORT COMMAND...: programs in processes with a GPU each, which the command starts; says how
# messages went. That a library of this computer can't do something, or there is one GPU, is no failure. `algorithms`
# names those to run, if not all.
processes() {
  local name="processes by $1, --transport $2" transport=$2 status way lack
  shift 2
  # shellcheck disable=SC2086  # several words
  "$@" "$espalier" exec --backend mpi --memory cuda --transport "$transport" "${devices[@]}" \
    --algorithm ${algorithms:-all} --size 0,1000,1MiB,16MiB --iters 3 >"$work/processes" 2>&1
  status=$?
  way=$(sed -n 's/^# messages from GPU to GPU: //p' "$work/processes" | sort -u | paste -sd ';')
  lack=$(grep -m 1 -oE 'this library of MPI does not take GPU memory|NCCL was not found|NCCL wants a GPU for each rank' \
    "$work/processes")
  if [ "$status" -eq 0 ] && [ -n "$way" ]; then
    echo "| $name | passed: $way |"
  elif [ "$status" -ne 0 ] && [ -n "$lack" ]; then
    echo "| $name | not here: $lack |"
  else
    failures=$((failures + 1))
    echo "| $name | **failed** |"
    tail -n 40 "$work/processes" >&2
  fi
}

echo "## $(date -u +%F), commit $(cat commit 2>/dev/null || git describe --always --dirty)"
echo
nvidia-smi --query-gpu=index,name,driver_version,memory.total --format=csv | sed 's/^/    /'
nvcc --version 2>/dev/null | sed -n 's/^Cuda compilation/    Cuda compilation/p'
echo
echo "| check | |"
echo "|---|---|"
# Where this ends with 3 there is no GPU, or CUDA fails at the smallest task: it says what is missing.
"$espalier" exec --backend cuda --ranks 1 --algorithm ring --size 4 --iters 1 >"$work/first" 2>&1
first=$?
if [ "$first" -ne 0 ]; then
  failures=$((failures + 1))
  echo "| one rank, 4 bytes | **failed** |"
  cat "$work/first" >&2
  [ "$first" -ne 3 ] || exit 3
fi
if [ ! -e commit ]; then
  row "tests on stand-ins" some_tests "$build/tests/fake_cuda_test" --gtest_brief=1
  row "compare --against nccl on stand-ins" some_tests "$build/tests/against_nccl_test" --gtest_brief=1
  row "messages over NCCL on stand-ins" some_tests "$build/tests/nccl_transport_test" --gtest_brief=1
fi
row "GPU tests" some_tests "$tests" --gtest_brief=1
if command -v compute-sanitizer >/dev/null; then
  # Blocks of odd sizes, whose operands are aligned to their elements only.
  short='*.RunsThroughHostMemory*:*.ReportsAWrongResult:*.KeepsATimeline:*.RunOperandsThatBeginAnywhere*'
  for tool in memcheck initcheck racecheck; do
    name="compute-sanitizer $tool"
    [ "$tool" != racecheck ] || name+=" (of shared memory, which no kernel uses yet: not of streams)"
    row "$name" some_tests compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$tests" --gtest_brief=1 --gtest_filter="$short"
  done
else
  failures=$((failures + 1))
  echo "| compute-sanitizer | **not installed** |"
fi
for options in "--profile kernel" "--profile copy_engine" "--profile cuda_graph" "--profile kernel --dtype half --op max"; do
  # shellcheck disable=SC2086  # several words
  row "all algorithms, 8 ranks, $options" "$espalier" exec --backend cuda --ranks 8 \
    --algorithm all --size 1000,16MiB --iters 3 $options
done
for collective in allgather reducescatter alltoall broadcast; do
  row "$collective, 8 ranks, odd sizes" "$espalier" exec --backend cuda --ranks 8 --collective "$collective" \
    --algorithm all --size 1000003 --dtype uint8 --iters 3
done
# As many processes as there are GPUs; two on the only one.
devices=()
count=$(nvidia-smi --query-gpu=index --format=csv,noheader | wc -l)
if [ "$count" -lt 2 ]; then
  count=2
  devices=(--devices 0,0)
fi
[ "$count" -le 8 ] || count=8
mpiexec=$(sed -n 's/^ESPALIER_MPIEXEC:[A-Z]*=//p' "$build/CMakeCache.txt" 2>/dev/null)
if [ -e commit ]; then mpiexec=$(command -v mpiexec); fi
if [ -x "$mpiexec" ]; then
  launcher=("$mpiexec")
  if "$mpiexec" --version 2>&1 | grep -qE 'Open MPI|OpenRTE'; then
    launcher+=(--oversubscribe)
    [ "$(id -u)" -ne 0 ] || launcher+=(--allow-run-as-root)
  fi
  for transport in auto staged mpi nccl; do
    processes mpirun "$transport" "${launcher[@]}" -n "$count"
  done
else
  echo "| processes by mpirun | not here: there is no mpiexec, or this was built without MPI |"
fi
for transport in auto staged nccl; do
  processes "torchrun's variables" "$transport" python3 tests/mpi/like_torchrun.py -n "$count"
done
if [ ${#devices[@]} -gt 0 ]; then
  # Where NCCL takes each process for a computer of its own, they may have the same GPU. Their kernels then wait for
  # each other's slices of time: a few programs are enough.
  # shellcheck disable=SC2016  # for the shell that is started
  algorithms='ring flat_two_stage' processes "torchrun's variables, each a computer to NCCL" nccl python3 tests/mpi/like_torchrun.py -n "$count" \
    bash -c 'NCCL_HOSTID=$RANK exec "$@"' --
fi
if command -v compute-sanitizer >/dev/null; then
  row "compute-sanitizer memcheck, processes" no_errors compute-sanitizer --target-processes all --error-exitcode 9 \
    python3 tests/mpi/like_torchrun.py -n "$count" "$espalier" exec --backend mpi --memory cuda "${devices[@]}" \
    --algorithm ring flat_two_stage --size 1000 --iters 1
fi
echo
echo "Rates, ${rates}:"
echo
"$rates" 2>"$work/rates"
case $? in
  0) ;;
  1) misses=$((misses + 1)) ;;
  *)
    failures=$((failures + 1))
    echo "**Not measured:**"
    echo
    tail -n 5 "$work/rates" | sed 's/^/    /'
    ;;
esac
echo

# foretell NAME TOPOLOGY OPTION...: compares, and asks for a median error of 10 % from 16 MiB on.
foretell() {
  local name=$1 topology=$2 json=$work/compared.json
  shift 2
  local compare=("$espalier" compare --backend cuda --topology "$topology" --algorithm ring optimal
                 --size "64KiB,1MiB,16MiB..256MiB" "$@")
  echo "Prediction, $name: \`${compare[*]}\`"
  echo
  rm -f "$json"
  "${compare[@]}" --json "$json" 2>&1 | sed 's/^/    /' || failures=$((failures + 1))
  # Two algorithms at five sizes.
  python3 tests/gpu_error.py "$json" 0.10 10 || misses=$((misses + 1))
  echo
}

# against_nccl TOPOLOGY COLLECTIVE ALGORITHM...: beside NCCL's own collective, which is checked, too.
against_nccl() {
  local topology=$1 collective=$2
  shift 2
  local compare=("$espalier" compare --backend cuda --topology "$topology" --collective "$collective"
                 --algorithm "$@" --size "64KiB,1MiB,16MiB,256MiB" --against nccl)
  echo "Against NCCL: \`${compare[*]}\`"
  echo
  "${compare[@]}" 2>&1 | sed 's/^/    /' || failures=$((failures + 1))
  echo
}

# probe NAME OPTION...: writes the topology NAME.yaml.
probe() {
  local name=$1
  shift
  "$espalier" probe --backend cuda "$@" --output "$work/$name.yaml" 2>&1 | sed 's/^/    /' && return
  failures=$((failures + 1))
  return 1
}

if probe eight --devices 0 --virtual 8; then
  foretell "8 ranks on one GPU" "$work/eight.yaml" --devices 0,0,0,0,0,0,0,0
fi
if probe all; then
  if [ "$(grep -c 'kind: gpu\>' "$work/all.yaml")" -gt 1 ]; then
    foretell "all GPUs" "$work/all.yaml"
  else
    echo "One GPU: nothing to foretell between GPUs, and of NCCL's collectives only those of one rank."
    echo
  fi
  against_nccl "$work/all.yaml" allreduce ring optimal
  for collective in allgather reducescatter broadcast reduce alltoall sendrecv gather scatter; do
    against_nccl "$work/all.yaml" "$collective" direct
  done
fi
# Processes with a GPU each: probed, and compared with what that says. No figure is asked for yet.
by_processes=(python3 tests/mpi/like_torchrun.py -n "$count" "$espalier")
on_gpus=(--backend mpi --memory cuda "${devices[@]}")
echo "Prediction, $count processes:"
echo
if "${by_processes[@]}" probe "${on_gpus[@]}" --output "$work/processes.yaml" 2>&1 | sed 's/^/    /'; then
  "${by_processes[@]}" compare "${on_gpus[@]}" --topology "$work/processes.yaml" --algorithm ring \
    --size "64KiB,1MiB,16MiB,256MiB" --json "$work/processes.json" 2>&1 | sed 's/^/    /' || failures=$((failures + 1))
else
  failures=$((failures + 1))
fi
echo
for algorithm in ring double_binary_tree flat_two_stage; do
  "$espalier" exec --backend cuda --ranks 8 --algorithm "$algorithm" --size 8,64KiB,1MiB,16MiB,256MiB |
    sed 's/^/    /' || failures=$((failures + 1))
  echo
done
echo "Failed: ${failures}. Missed: ${misses}."
[ $((failures + misses)) -eq 0 ]
