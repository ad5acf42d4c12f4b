// SPDX-License-Identifier: Apache-2.0
// Stands in for mpi_connection.cpp where there is no MPI.
#include "core/error.h"
#include "exec/mpi/connection.h"

namespace espalier {

std::unique_ptr<Connection> connect_by_mpi(const Launch&) {
  throw Error(ErrorKind::unsupported, "this espalier was built without MPI",
              "install Open MPI or MPICH and build again, or start it with torchrun");
}

}  // namespace espalier
