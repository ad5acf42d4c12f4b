// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/backend.h"

namespace espalier {

/// Runs programs on the threads and memory of this computer: a thread per lane, real arithmetic.
/// Every place's buffers are separate allocations. Needs no machine model.
class HostBackend : public Backend {
 public:
  std::string name() const override { return "host"; }
  std::optional<std::string> unsupported(const Program& program, const Target& target) const override;
  RunReport run(const Program& program, const Target& target, const RunOptions& options) override;
};

}  // namespace espalier
