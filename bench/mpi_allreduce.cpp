// SPDX-License-Identifier: Apache-2.0
// Times MPI_Allreduce of floats: the other half of host_vs_mpi.sh. Same rules as host_allreduce:
// sum, out of place, memory on huge pages where there are any and touched before, one warm-up, the
// result checked outside of the time. One allreduce takes from when all ranks stand ready to when
// the last one is done.
//
//   mpirun -np RANKS mpi_allreduce SIZE ITERATIONS   the mean seconds of one allreduce
#include <mpi.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>

#include "core/units.h"

namespace {

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};
using Floats = std::unique_ptr<float, Free>;

Floats allocate(std::size_t count) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t bytes = (count * sizeof(float) / kHugePage + 1) * kHugePage;
  Floats memory(static_cast<float*>(std::aligned_alloc(kHugePage, bytes)));
  if (memory) madvise(memory.get(), bytes, MADV_HUGEPAGE);
  return memory;
}

// Small whole numbers that differ from rank to rank and element to element: their sums are exact.
float value(int rank, int i) { return static_cast<float>((i * 7 + rank * 3) % 64); }

double allreduce_s(const float* in, float* out, int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start_s = MPI_Wtime();
  MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  const double mine_s = MPI_Wtime() - start_s;
  double longest_s = 0;
  MPI_Allreduce(&mine_s, &longest_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return longest_s;
}

int run(int count, int iterations) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Floats in = allocate(static_cast<std::size_t>(count));
  const Floats out = allocate(static_cast<std::size_t>(count));
  if (!in || !out) {
    std::fprintf(stderr, "mpi_allreduce: not enough memory\n");
    return 3;
  }
  for (int i = 0; i < count; ++i) {
    in.get()[i] = value(rank, i);
    out.get()[i] = -1;
  }
  allreduce_s(in.get(), out.get(), count);
  double total_s = 0;
  for (int i = 0; i < iterations; ++i) total_s += allreduce_s(in.get(), out.get(), count);
  for (int i = 0; i < count; ++i) {
    float expected = 0;
    for (int r = 0; r < ranks; ++r) expected += value(r, i);
    if (out.get()[i] == expected) continue;
    std::fprintf(stderr, "mpi_allreduce: element %d is wrong\n", i);
    return 1;
  }
  if (rank == 0) std::printf("%.9f\n", total_s / iterations);
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  MPI_Init(&argument_count, &arguments);
  const auto size = argument_count == 3 ? espalier::parse_bytes(arguments[1]) : std::nullopt;
  const int iterations = argument_count == 3 ? std::atoi(arguments[2]) : 0;
  int status = 2;
  // `value` multiplies element numbers by 7 in an int.
  if (!size || iterations < 1 || *size / 4 > std::numeric_limits<int>::max() / 8) {
    std::fprintf(stderr, "usage: mpirun -np RANKS mpi_allreduce SIZE ITERATIONS\n");
  } else {
    status = run(static_cast<int>(*size / 4), iterations);
  }
  MPI_Finalize();
  return status;
}
