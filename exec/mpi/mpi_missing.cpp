// SPDX-License-Identifier: Apache-2.0
// Stands in for the calls of MPI where there is no MPI.
#include "exec/mpi/mpi_start.h"

namespace espalier {
namespace {

[[noreturn]] void throw_missing() {
  throw Error(ErrorKind::unsupported, "this espalier was built without MPI",
              "install Open MPI or MPICH and build again");
}

}  // namespace

std::unique_ptr<Backend> make_mpi_backend(const std::optional<GpuChoice>&) { throw_missing(); }

bool is_told_by_rank_0() { return false; }

int mpi_processes() { throw_missing(); }

bool mpi_tells() { throw_missing(); }

Inventory mpi_inventory(int) { throw_missing(); }

void leave_mpi(int) {}

}  // namespace espalier
