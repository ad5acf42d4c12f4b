// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

/// What both stand-ins for NCCL do alike: one process with several GPUs, and several processes.
/// Each is a library of its own, with a NcclCommunicator and calls of its own.
namespace espalier::fake_nccl {

// As NCCL numbers them.
inline constexpr int kSuccess = 0;
inline constexpr int kUnhandledCudaError = 1;
inline constexpr int kSystemError = 2;
inline constexpr int kInternalError = 3;
inline constexpr int kInvalidArgument = 4;
inline constexpr int kInvalidUsage = 5;

/// The calls between the begin of a group and its end, in their order.
template <class Call>
class Group {
 public:
  int start() {
    is_open_ = true;
    calls_.clear();
    return kSuccess;
  }
  /// What was called since.
  const std::vector<Call>& end() {
    is_open_ = false;
    return calls_;
  }
  /// Outside of a group, and where the call is not right, nothing is added.
  int add(Call call, bool is_right) {
    if (!is_open_ || !is_right) return kInvalidArgument;
    calls_.push_back(std::move(call));
    return kSuccess;
  }

 private:
  std::vector<Call> calls_;
  bool is_open_ = false;
};

}  // namespace espalier::fake_nccl
