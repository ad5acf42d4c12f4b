// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/json_text.h"

namespace espalier {

/// Throws Error{input} where a plan is a template, of the generation of 2024 or a draft of today's:
/// says which one it is, by what, and what the reader of 2026 expects. Private to the room.
void refuse_older_generations(JsonText& text);

}  // namespace espalier
