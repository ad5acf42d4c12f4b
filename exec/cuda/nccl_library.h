// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace espalier::cuda {

using NcclComm = struct NcclCommunicator*;

/// What the processes of a communicator find each other by.
struct NcclUniqueId {
  char bytes[128];
};

/// NVIDIA's library of collectives, loaded when it is asked for, so that nothing depends on its
/// presence: what is used of its documented API (NCCL's user guide, "NCCL API"), whose calls and
/// numbers are those of every NCCL 2 since 2.10.
class NcclLibrary {
 public:
  /// libnccl.so.2, where the system looks for libraries (LD_LIBRARY_PATH), or the file that the
  /// environment variable ESPALIER_NCCL names. Throws Error{unsupported} where there is none, or
  /// one of a version whose calls may be others.
  static std::shared_ptr<const NcclLibrary> load();

  /// 22809 of NCCL 2.28.9.
  int version() const { return version_; }
  /// "NCCL 2.28.9".
  std::string name() const;
  /// Throws Error{runtime} with the call and what NCCL says about it, unless `status` is success.
  /// \p comm whose latest error is asked for; null: there is none yet.
  void require(int status, const char* call, NcclComm comm = nullptr) const;

  int (*get_unique_id)(NcclUniqueId*) = nullptr;
  int (*comm_init_rank)(NcclComm*, int ranks, NcclUniqueId, int rank) = nullptr;
  int (*comm_init_all)(NcclComm*, int, const int*) = nullptr;
  int (*comm_destroy)(NcclComm) = nullptr;
  int (*comm_abort)(NcclComm) = nullptr;
  int (*comm_async_error)(NcclComm, int*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int, int, NcclComm, cudaStream_t) = nullptr;
  int (*reduce)(const void*, void*, std::size_t, int, int, int, NcclComm, cudaStream_t) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int, int, NcclComm, cudaStream_t) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int, NcclComm, cudaStream_t) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, int, int, NcclComm,
                        cudaStream_t) = nullptr;
  int (*send)(const void*, std::size_t, int, int, NcclComm, cudaStream_t) = nullptr;
  int (*receive)(void*, std::size_t, int, int, NcclComm, cudaStream_t) = nullptr;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  template <class Function>
  void find(Function& function, const char* name);

  std::unique_ptr<void, Close> handle_;
  int version_ = 0;
  const char* (*error_string_)(int) = nullptr;
  const char* (*last_error_)(NcclComm) = nullptr;  ///< may be missing: it came with 2.13
};

/// Calls of the library for communicators, of which whoever ends them has to know whether one has
/// failed.
class NcclCalls {
 public:
  explicit NcclCalls(std::shared_ptr<const NcclLibrary> library) : library_(std::move(library)) {}

  const NcclLibrary* operator->() const { return library_.get(); }
  const NcclLibrary& library() const { return *library_; }
  /// As NcclLibrary::require.
  void require(int status, const char* call, NcclComm comm = nullptr);
  /// Throws Error{runtime} when NCCL has found out that something the communicator was given has
  /// failed.
  void look(NcclComm comm);
  /// Gives a communicator up, whatever it is doing, where a call has failed; null: there is none.
  /// Does nothing when devices were abandoned.
  void end(NcclComm comm) const;

 private:
  std::shared_ptr<const NcclLibrary> library_;
  bool has_failed_ = false;
};

}  // namespace espalier::cuda
