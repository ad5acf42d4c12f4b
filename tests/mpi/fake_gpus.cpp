// SPDX-License-Identifier: Apache-2.0
// What the GPUs of the stand-in are like, as the environment says: ESPALIER_FAKE_GPUS, their
// number; ESPALIER_FAKE_MEMORY, RANK:BYTES of memory that the GPUs of one process have;
// ESPALIER_FAKE_IPC=0, nobody maps others' memory.
#include <cstdlib>
#include <string>

#include "exec/mpi/launcher.h"
#include "tests/exec/fake_cuda.h"

namespace espalier {
namespace {

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr ? text : "";
}

[[maybe_unused]] const bool kReady = [] {
  fake_cuda::Behaviour behaviour;
  const std::string gpus = variable("ESPALIER_FAKE_GPUS");
  if (!gpus.empty()) behaviour.gpus = std::stoi(gpus);
  behaviour.maps_others = variable("ESPALIER_FAKE_IPC") != "0";
  const std::string memory = variable("ESPALIER_FAKE_MEMORY");
  const std::size_t colon = memory.find(':');
  if (colon != std::string::npos) {
    const Launch launch = read_launch([](const char* name) { return std::getenv(name); });
    if (std::stoi(memory) == launch.rank) {
      behaviour.memory_bytes = std::stoull(memory.substr(colon + 1));
    }
  }
  fake_cuda::reset(behaviour);
  return true;
}();

}  // namespace
}  // namespace espalier
