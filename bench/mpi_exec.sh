#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Allreduce of floats over MPI: the best of our algorithms, as messages of the library (espalier exec
# --backend mpi), against its own MPI_Allreduce. Both are measured in turn, several times over, and
# the medians of the means compared; above 1 ours is faster.
#
#   bench/mpi_exec.sh [BUILD_FOLDER [SIZE...]]      (default: build 1KiB 64KiB 1MiB 16MiB 64MiB 256MiB)
#
# PROCESSES ("2 4 8"), ALGORITHMS, REPETITIONS, MPIEXEC and, for Open MPI, TRANSPORTS can be set in the environment.
# TRANSPORTS are some of: default, which takes shared memory within a computer; tcp, over its loopback; ucx, where the
# library has it ("default").
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${1:-build}
shift || true
sizes=("$@")
[ $# -gt 0 ] || sizes=(1KiB 64KiB 1MiB 16MiB 64MiB 256MiB)
read -r -a counts <<<"${PROCESSES:-2 4 8}"
read -r -a algorithms <<<"${ALGORITHMS:-ring halving_doubling all_pairs flat_two_stage}"
repetitions=${REPETITIONS:-5}
mpiexec=${MPIEXEC:-mpirun}

if ! command -v "$mpiexec" >/dev/null || [ ! -x "$build/mpi_allreduce" ]; then
  echo "mpi_exec: nothing to compare with. Install Open MPI or MPICH, configure again and build the" \
       "targets espalier and mpi_allreduce."
  exit 0
fi
start=("$mpiexec")
transports=(default)
if "$mpiexec" --version 2>&1 | grep -qE 'Open MPI|OpenRTE'; then
  start+=(--oversubscribe)
  [ "$(id -u)" -ne 0 ] || start+=(--allow-run-as-root)
  read -r -a transports <<<"${TRANSPORTS:-default}"
fi

# choose TRANSPORT: sets what starts processes; fails where the library has not got it.
choose() {
  launch=("${start[@]}")
  case $1 in
    default) ;;
    tcp) launch+=(--mca pml ob1 --mca btl tcp,self) ;;
    # Without these two it wants a network card.
    ucx) launch+=(--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any) ;;
    *) echo "mpi_exec: no transport is called $1" >&2; exit 2 ;;
  esac
  "${launch[@]}" -n 2 "$build/mpi_allreduce" 1KiB 1 >/dev/null 2>&1
}

# How often a message of so many bytes is sent: long enough to be measured, and no longer.
iterations() {
  local bytes
  bytes=$(numfmt --from=iec-i "${1%B}")
  echo $((bytes <= 65536 ? 500 : bytes <= 1048576 ? 100 : bytes <= 16777216 ? 10 : 4))
}

# ours PROCESSES SIZE ITERATIONS ALGORITHM...: "SECONDS ALGORITHM" of the fastest, out of place.
ours() {
  local processes=$1 size=$2 iterations=$3
  shift 3
  "${launch[@]}" -n "$processes" "$build/espalier" exec --backend mpi --algorithm "$@" --size "$size" \
    --chunk "$chunk" --iters "$iterations" --warmup 2 --no-check --json - 2>/dev/null |
    python3 -c '
import json, sys
answers = json.load(sys.stdin)["results"]
done = [a for a in answers if "time_s" in a and not a["in_place"]]
best = min(done, key=lambda a: a["time_s"])
print(best["time_s"], best["algorithm"])'
}

median() { sort -g | awk '{ a[NR] = $1 } END { print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }'; }

# compare TRANSPORT PROCESSES SIZE: a line of the table.
compare() {
  local transport=$1 processes=$2 size=$3 best= chunk often
  often=$(iterations "$size")
  for chunk in 256KiB 1MiB 0; do
    read -r time algorithm < <(ours "$processes" "$size" "$often" "${algorithms[@]}")
    if [ -z "$best" ] || awk "BEGIN { exit !($time < ${best%% *}) }"; then best="$time $algorithm $chunk"; fi
    # Messages of one chunk are the same whatever the chunk.
    [ "$(numfmt --from=iec-i "${size%B}")" -gt 262144 ] || break
  done
  read -r _ algorithm chunk <<<"$best"
  our=() theirs=()
  for ((i = 0; i < repetitions; ++i)); do
    our+=("$(ours "$processes" "$size" "$often" "$algorithm" | cut -d' ' -f1)")
    theirs+=("$("${launch[@]}" -n "$processes" "$build/mpi_allreduce" "$size" "$often")")
  done
  awk -v by="$transport" -v n="$processes" -v size="$size" -v what="$algorithm, $chunk" \
    -v our="$(printf '%s\n' "${our[@]}" | median)" -v mpi="$(printf '%s\n' "${theirs[@]}" | median)" \
    'BEGIN { printf "%-9s %-9s %-8s %-28s %12.1f %12.1f %8.2f\n", by, n, size, what, our * 1e6, mpi * 1e6, mpi / our }'
}

printf '%-9s %-9s %-8s %-28s %12s %12s %8s\n' transport processes size "our algorithm, chunk" "ours (us)" "MPI (us)" ratio
for transport in "${transports[@]}"; do
  if ! choose "$transport"; then
    echo "# $transport: this MPI can't use it here"
    continue
  fi
  for processes in "${counts[@]}"; do
    for size in "${sizes[@]}"; do compare "$transport" "$processes" "$size"; done
  done
done
