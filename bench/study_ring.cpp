// SPDX-License-Identifier: Apache-2.0
// What simulating a program costs in C++, for bench/python.py. `study_ring PROGRAM MACHINE
// SIMULATIONS` prints the processor's seconds and the sum of the simulated times.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "algorithms/program_file.h"
#include "scenarios/study.h"
#include "sim/simulator.h"

int main(int argc, char** argv) {
  using namespace espalier;
  if (argc != 4) {
    fmt::print(stderr, "usage: study_ring PROGRAM MACHINE SIMULATIONS\n");
    return 2;
  }
  try {
    Simulator simulator;
    Study study(simulator, &simulator);
    Query query;
    query.algorithm = "./ring";
    query.topology = argv[2];
    const auto file = read_program_file(argv[1]);
    query.collective = file->program.contract.collective;
    study.know_program(query.algorithm, file);
    double sum_s = 0;
    const std::clock_t begin = std::clock();
    for (int i = 0; i < std::atoi(argv[3]); ++i) {
      query.size_bytes = (std::int64_t{1} << 20) + i * 4096;
      sum_s += study.ask(query).report.time_s;
    }
    fmt::print("{} {}\n", static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, sum_s);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return exit_code(error.kind());
  }
}
