// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/console.h"
#include "training/model.h"

namespace espalier {

/// Prints a model: its totals, its step times, and every tensor in forward order.
void show_model(const Console& console, const Model& model);

}  // namespace espalier
