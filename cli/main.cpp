// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "cli/app.h"
#include "cli/process.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/mpi/mpi_start.h"

int main(int argc, char** argv) {
  espalier::hold_standard_streams();
  espalier::end_cleanly_on_signals();
  if (argc > 0) espalier::set_program_name(argv[0]);
  const int exit_code = espalier::run_app({argv + 1, argv + argc}, std::cout, std::cerr);
  std::cout.flush();
  espalier::leave_mpi(exit_code);
  espalier::end_process(exit_code);
}
