// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "core/error.h"
#include "exec/cuda/calls.h"

namespace espalier::cuda {
namespace {

constexpr const char* kLibrary = "libnccl.so.2";
constexpr const char* kVariable = "ESPALIER_NCCL";  // names another file
constexpr int kSuccess = 0;
constexpr int kInProgress = 7;

// ncclGetVersion counts 2.28.9 as 22809, and before 2.9, 2.8.4 as 2804.
constexpr int kFirstOfFiveDigits = 10000;
constexpr int kOldest = 21000;  // the first with bfloat16, and that takes graphs of several GPUs
constexpr int kEnd = 30000;

std::string version_name(int version) {
  const int major = version < kFirstOfFiveDigits ? version / 1000 : version / 10000;
  const int minor = version < kFirstOfFiveDigits ? version / 100 % 10 : version / 100 % 100;
  return fmt::format("{}.{}.{}", major, minor, version % 100);
}

const char* library_file() {
  const char* const named = std::getenv(kVariable);
  return named == nullptr || *named == '\0' ? kLibrary : named;
}

std::string why_not_loaded() {
  const char* const why = dlerror();
  return why == nullptr ? library_file() : why;
}

}  // namespace

void NcclLibrary::Close::operator()(void* handle) const { dlclose(handle); }

/// Throws Error{unsupported} where there is no such function.
template <class Function>
void NcclLibrary::find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(handle_.get(), name));
  if (function == nullptr) {
    throw Error(ErrorKind::unsupported, fmt::format("{} has no {}", library_file(), name));
  }
}

std::shared_ptr<const NcclLibrary> NcclLibrary::load() {
  const auto library = std::make_shared<NcclLibrary>();
  library->handle_.reset(dlopen(library_file(), RTLD_NOW | RTLD_LOCAL));
  if (!library->handle_) {
    throw Error(ErrorKind::unsupported, "NCCL was not found: " + why_not_loaded(),
                fmt::format("install it (libnccl2), or name the file in {}", kVariable));
  }
  int (*get_version)(int*) = nullptr;
  library->find(get_version, "ncclGetVersion");
  library->find(library->error_string_, "ncclGetErrorString");
  library->require(get_version(&library->version_), "ncclGetVersion");
  if (library->version_ < kOldest || library->version_ >= kEnd) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} is NCCL {}, which this espalier does not call", library_file(),
                            version_name(library->version_)),
                fmt::format("NCCL 2 from {} on", version_name(kOldest)));
  }
  library->find(library->get_unique_id, "ncclGetUniqueId");
  library->find(library->comm_init_rank, "ncclCommInitRank");
  library->find(library->comm_init_all, "ncclCommInitAll");
  library->find(library->comm_destroy, "ncclCommDestroy");
  library->find(library->comm_abort, "ncclCommAbort");
  library->find(library->comm_async_error, "ncclCommGetAsyncError");
  library->find(library->group_start, "ncclGroupStart");
  library->find(library->group_end, "ncclGroupEnd");
  library->find(library->all_reduce, "ncclAllReduce");
  library->find(library->reduce, "ncclReduce");
  library->find(library->broadcast, "ncclBroadcast");
  library->find(library->all_gather, "ncclAllGather");
  library->find(library->reduce_scatter, "ncclReduceScatter");
  library->find(library->send, "ncclSend");
  library->find(library->receive, "ncclRecv");
  library->last_error_ = reinterpret_cast<const char* (*)(NcclComm)>(
      dlsym(library->handle_.get(), "ncclGetLastError"));
  return library;
}

std::string NcclLibrary::name() const { return "NCCL " + version_name(version_); }

void NcclLibrary::require(int status, const char* call, NcclComm comm) const {
  if (status == kSuccess) return;
  std::string text = fmt::format("{}: {} ({})", call, error_string_(status), status);
  const char* const more = last_error_ == nullptr ? nullptr : last_error_(comm);
  if (more != nullptr && *more != '\0') text += fmt::format(", {}", more);
  throw Error(ErrorKind::runtime, text);
}

void NcclCalls::require(int status, const char* call, NcclComm comm) {
  has_failed_ = has_failed_ || status != kSuccess;
  library_->require(status, call, comm);
}

void NcclCalls::look(NcclComm comm) {
  int status = kSuccess;
  require(library_->comm_async_error(comm, &status), "ncclCommGetAsyncError", comm);
  if (status != kInProgress) require(status, "an NCCL call under way", comm);
}

void NcclCalls::end(NcclComm comm) const {
  if (comm == nullptr || devices_abandoned()) return;
  static_cast<void>(has_failed_ ? library_->comm_abort(comm) : library_->comm_destroy(comm));
}

}  // namespace espalier::cuda
