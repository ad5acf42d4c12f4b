// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

// Private to the room.

namespace espalier {

/// A graph whose edges have labels; directed, from a to b.
struct LabelledEdge {
  int a = 0, b = 0;
  int label = 0;
};

/// The coarsest partition of vertices, finer than `colours`, in which vertices of one class have
/// as many neighbours of each class by edges of each label, in and out: colour refinement, also
/// called 1-dimensional Weisfeiler and Leman. Vertices that an automorphism exchanges are in one
/// class; those of one class need not be exchanged by any. Classes are numbered 0, 1, ... in the
/// order of their first vertices.
std::vector<int> refine_colours(std::vector<int> colours, const std::vector<LabelledEdge>& edges);

}  // namespace espalier
