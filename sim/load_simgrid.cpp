// SPDX-License-Identifier: Apache-2.0
#include "sim/load_simgrid.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>
#include <thread>

#include "core/error.h"
#include "sim/simgrid_engine.h"

namespace espalier {
namespace {

[[noreturn]] void throw_not_loaded() {
  const char* const why = dlerror();  // NOLINT(concurrency-mt-unsafe): it is of this thread
  throw Error(ErrorKind::runtime,
              fmt::format("SimGrid's engine can't be loaded: {}", why != nullptr ? why : "unknown"),
              "install all of Espalier, or leave the engine open");
}

decltype(&espalier_simgrid_engine) load() {
  // Its symbols stay its own: SimGrid has functions of the same names as MPI.
  void* const library = dlopen(ESPALIER_SIMGRID_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) throw_not_loaded();
  void* const engine = dlsym(library, "espalier_simgrid_engine");
  if (engine == nullptr) throw_not_loaded();
  return reinterpret_cast<decltype(&espalier_simgrid_engine)>(engine);
}

/// The one that asks first has it.
struct Owned {
  std::mutex mutex;
  std::thread::id owner = {};
  FlowEngine* engine = nullptr;
};

}  // namespace

FlowEngine& simgrid_engine() {
  static Owned owned;
  const std::lock_guard lock(owned.mutex);
  if (owned.engine == nullptr) {
    owned.engine = load()();
    owned.owner = std::this_thread::get_id();
  }
  if (owned.owner != std::this_thread::get_id()) {
    throw Error(ErrorKind::unsupported,
                "SimGrid simulates in the thread of this process that used it first",
                "leave the engine open");
  }
  return *owned.engine;
}

}  // namespace espalier
