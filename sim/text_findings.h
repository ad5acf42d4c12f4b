// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "ir/program.h"
#include "ir/rounds.h"
#include "sim/op_costs.h"
#include "sim/op_graph.h"
#include "sim/op_shapes.h"

namespace espalier {

/// What follows from the text of a program, whatever machine it is simulated on: found when it is
/// first asked for.
class TextFindings {
 public:
  /// Refers to the program.
  explicit TextFindings(const Program& program) : program_(program), graph_(program) {}

  const Program& program() const { return program_; }
  const OpGraph& graph() const { return graph_; }
  /// None where the program has no rounds that are alike.
  const Rounds& rounds();
  std::shared_ptr<const OpsOverLinks> ops_over_links();
  /// Of the program's ops, whose flows these are.
  std::shared_ptr<const ShapeNumbers> shapes(const MachineFlows& flows);

 private:
  const Program& program_;
  const OpGraph graph_;
  std::optional<Rounds> rounds_;
  std::shared_ptr<const OpsOverLinks> ops_over_links_;
  /// The most recently found first, with what tells those of one program apart: protocols do.
  std::deque<std::pair<TurnRules, std::shared_ptr<const ShapeNumbers>>> shapes_;
};

}  // namespace espalier
