// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/mpi_transport.h"

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "exec/mpi/mpi_calls.h"

namespace espalier {
namespace {

// MPI counts bytes in an int; longer messages are several of the same tag, which stay in order.
constexpr std::size_t kMaxPartBytes = std::size_t{1} << 30;

std::size_t parts_of(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kMaxPartBytes - 1) / kMaxPartBytes);
}

/// Calls `begin(offset, bytes)` for each part.
template <class Begin>
void for_each_part(std::size_t bytes, Begin&& begin) {
  for (std::size_t part = 0; part < parts_of(bytes); ++part) {
    const std::size_t offset = part * kMaxPartBytes;
    begin(offset, static_cast<int>(std::min(kMaxPartBytes, bytes - offset)));
  }
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm communicator) : communicator_(communicator) {
  require_mpi(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  require_mpi(MPI_Comm_rank(communicator_, &process_), "MPI_Comm_rank");
  require_mpi(MPI_Comm_size(communicator_, &processes_), "MPI_Comm_size");
}

/// What the library says of itself, while it runs: an extension of Open MPI, and of MPICH since
/// 4.0. Others are not known to take it.
bool MpiTransport::takes_gpu_memory() const {
#if defined(MPIX_CUDA_AWARE_SUPPORT) || (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000)
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

MessageId MpiTransport::new_message(std::size_t bytes) {
  if (free_.empty()) {
    free_.push_back(static_cast<MessageId>(parts_.size()));
    parts_.push_back(0);
  }
  const MessageId message = free_.back();
  free_.pop_back();
  parts_[message] = static_cast<int>(parts_of(bytes));
  return message;
}

MPI_Request& MpiTransport::new_request(MessageId message) {
  messages_.push_back(message);
  return requests_.emplace_back(MPI_REQUEST_NULL);
}

MessageId MpiTransport::send(int to, int tag, std::span<const std::byte> bytes) {
  const MessageId message = new_message(bytes.size());
  for_each_part(bytes.size(), [&](std::size_t offset, int count) {
    require_mpi(MPI_Isend(bytes.data() + offset, count, MPI_BYTE, to, tag, communicator_,
                          &new_request(message)),
                "MPI_Isend");
  });
  return message;
}

MessageId MpiTransport::receive(int from, int tag, std::span<std::byte> bytes) {
  const MessageId message = new_message(bytes.size());
  for_each_part(bytes.size(), [&](std::size_t offset, int count) {
    require_mpi(MPI_Irecv(bytes.data() + offset, count, MPI_BYTE, from, tag, communicator_,
                          &new_request(message)),
                "MPI_Irecv");
  });
  return message;
}

void MpiTransport::test(std::vector<MessageId>& over) {
  if (requests_.empty()) return;
  completed_.resize(requests_.size());
  int count = 0;
  require_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                           completed_.data(), MPI_STATUSES_IGNORE),
              "MPI_Testsome");
  if (count == MPI_UNDEFINED || count == 0) return;
  completed_.resize(static_cast<std::size_t>(count));
  // From the last on, so that what takes the place of a request that is over is not one itself.
  std::ranges::sort(completed_, std::greater<>());
  for (const int index : completed_) {
    const auto at = static_cast<std::size_t>(index);
    const MessageId message = messages_[at];
    requests_[at] = requests_.back();
    messages_[at] = messages_.back();
    requests_.pop_back();
    messages_.pop_back();
    if (--parts_[message] > 0) continue;
    free_.push_back(message);
    over.push_back(message);
  }
}

void MpiTransport::abort(int exit_code) {
  MPI_Abort(communicator_, exit_code);
  std::abort();  // which MPI_Abort does not come to
}

}  // namespace espalier
