// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/mpi_calls.h"

#include <fmt/format.h>
#include <mpi.h>

#include <array>

#include "core/error.h"

namespace espalier {

void require_mpi(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw Error(ErrorKind::runtime, fmt::format("{} failed: {}", call, text.data()));
}

}  // namespace espalier
