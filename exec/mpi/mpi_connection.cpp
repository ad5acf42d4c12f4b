// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/error.h"
#include "exec/mpi/connection.h"
#include "exec/mpi/mpi_calls.h"
#include "exec/mpi/mpi_transport.h"

namespace espalier {
namespace {

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string all = text.data();
  return all.substr(0, all.find_first_of(",\n\t"));
}

/// SimGrid has functions of the same names, with which it simulates programs for MPI. Whose are
/// used depends on which library comes first when the program is linked.
std::optional<LaunchProblem> foreign_mpi() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &library) == 0) return std::nullopt;
  const std::string file = library.dli_fname != nullptr ? library.dli_fname : "";
  if (file.find("simgrid") == std::string::npos) return std::nullopt;
  return LaunchProblem{
      fmt::format("the functions of MPI that this program was linked with are those of {}", file),
      "link the library of MPI before SimGrid's"};
}

MPI_Comm start(const Launch& launch) {
  if (const auto problem = foreign_mpi()) throw_problem(*problem);
  int provided = 0;
  require_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  int count = 0;
  require_mpi(MPI_Comm_size(MPI_COMM_WORLD, &count), "MPI_Comm_size");
  if (const auto problem = problem_of(launch, count, library_version())) {
    MPI_Finalize();
    throw_problem(*problem);
  }
  // So that messages of others, the library's own among them, are never taken for ours.
  MPI_Comm communicator = MPI_COMM_NULL;
  require_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator), "MPI_Comm_dup");
  return communicator;
}

class MpiConnection : public Connection {
 public:
  explicit MpiConnection(const Launch& launch)
      : communicator_(start(launch)), transport_(communicator_) {
    // Errors are returned from here on, as those of `communicator_` are.
    require_mpi(MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host_),
                "MPI_Comm_split_type");
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group all = MPI_GROUP_NULL;
    require_mpi(MPI_Comm_group(host_, &group), "MPI_Comm_group");
    require_mpi(MPI_Comm_group(communicator_, &all), "MPI_Comm_group");
    int count = 0;
    require_mpi(MPI_Comm_size(host_, &count), "MPI_Comm_size");
    for (int number = 0; number < count; ++number) {
      require_mpi(MPI_Group_translate_ranks(group, 1, &number, all, &here_.emplace_back()),
                  "MPI_Group_translate_ranks");
    }
    MPI_Group_free(&group);
    MPI_Group_free(&all);
  }

  Transport& transport() override { return transport_; }
  const std::vector<int>& here() const override { return here_; }

  std::byte* share(std::size_t bytes) override {
    constexpr std::size_t kAlignment = 128;
    const bool is_owner = here_.front() == transport_.process();
    void* memory = nullptr;
    require_mpi(MPI_Win_allocate_shared(is_owner ? static_cast<MPI_Aint>(bytes + kAlignment) : 0, 1,
                                        MPI_INFO_NULL, host_, &memory, &window_),
                "MPI_Win_allocate_shared");
    MPI_Aint size = 0;
    int unit = 1;
    require_mpi(MPI_Win_shared_query(window_, 0, &size, &unit, &memory), "MPI_Win_shared_query");
    // The same offset in every process: mappings begin at pages.
    std::size_t space = bytes + kAlignment;
    return static_cast<std::byte*>(std::align(kAlignment, bytes, memory, space));
  }

  void close() override {
    MPI_Win_free(&window_);
    MPI_Comm_free(&host_);
    MPI_Comm_free(&communicator_);
    MPI_Finalize();
  }

 private:
  MPI_Comm communicator_;
  MPI_Comm host_ = MPI_COMM_NULL;
  MpiTransport transport_;
  std::vector<int> here_;
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace

std::unique_ptr<Connection> connect_by_mpi(const Launch& launch) {
  return std::make_unique<MpiConnection>(launch);
}

}  // namespace espalier
