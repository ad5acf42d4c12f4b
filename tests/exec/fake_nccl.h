// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace espalier {

/// How the stand-in for NCCL behaves: a library of that name (tests/exec/fake_nccl.cpp) whose
/// collectives are kernels of the stand-in for CUDA. It is as strict: ranks that do not call alike,
/// or send what nobody receives, are errors.
struct FakeNccl {
  int version = 22809;           ///< that it says it is
  std::string fails = {};        ///< the call of this name: "ncclAllReduce"
  bool fails_later = false;      ///< nothing but ncclCommGetAsyncError says so
  bool hangs_in_call = false;    ///< ncclGroupEnd never returns
  bool hangs_on_gpu = false;     ///< what it gives to streams never ends
  bool is_wrong = false;         ///< the last rank's results have a wrong byte
  bool refuses_capture = false;  ///< nothing is taken from streams that are captured
};

/// The name of the function of the stand-in that sets it: void (const FakeNccl&).
inline constexpr const char* kSetFakeNccl = "espalier_set_fake_nccl";
/// And of the one that tells how many communicators there are: int ().
inline constexpr const char* kLiveFakeNccl = "espalier_live_fake_nccl";

}  // namespace espalier
