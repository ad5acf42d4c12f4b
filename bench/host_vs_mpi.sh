#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Large-message allreduce of floats between 4 ranks on this computer: ours against Open MPI's. Both
# are measured in turn, several times over, and the medians compared; above 1 ours is faster.
#
#   bench/host_vs_mpi.sh [BUILD_FOLDER [SIZE...]]      (default: build 64MiB 256MiB)
#
# RANKS, REPETITIONS and ITERATIONS (of one repetition) can be set in the environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${1:-build}
shift || true
sizes=("${@:-64MiB}")
[ $# -gt 0 ] || sizes=(64MiB 256MiB)
ranks=${RANKS:-4}
repetitions=${REPETITIONS:-5}
iterations=${ITERATIONS:-5}

if ! command -v mpirun >/dev/null || [ ! -x "$build/mpi_allreduce" ]; then
  echo "host_vs_mpi: nothing to compare with. Install Open MPI (on Debian: apt-get install" \
       "openmpi-bin libopenmpi-dev), configure again and build the target mpi_allreduce."
  exit 0
fi
mpirun=(mpirun --oversubscribe -np "$ranks")
[ "$(id -u)" -ne 0 ] || mpirun+=(--allow-run-as-root)

median() { sort -g | awk '{ a[NR] = $1 } END { print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }'; }

printf '%-8s %-26s %12s %12s %8s\n' size "our algorithm, chunk" "ours (ms)" "MPI (ms)" ratio
for size in "${sizes[@]}"; do
  read -r algorithm chunk < <("$build/host_allreduce" "$ranks" "$size" 2 2>/dev/null)
  ours=() mpis=()
  for ((i = 0; i < repetitions; ++i)); do
    ours+=("$("$build/host_allreduce" "$ranks" "$size" "$iterations" "$algorithm" "$chunk")")
    mpis+=("$("${mpirun[@]}" "$build/mpi_allreduce" "$size" "$iterations")")
  done
  our=$(printf '%s\n' "${ours[@]}" | median)
  mpi=$(printf '%s\n' "${mpis[@]}" | median)
  awk -v size="$size" -v what="$algorithm, $chunk" -v our="$our" -v mpi="$mpi" \
    'BEGIN { printf "%-8s %-26s %12.2f %12.2f %8.2f\n", size, what, our * 1e3, mpi * 1e3, mpi / our }'
done
