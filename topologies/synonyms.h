// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/words.h"

namespace espalier {

/// What people also call machines (of the catalogue and generic ones), kinds of links and profiles.
const Synonyms& topology_synonyms();
const Synonyms& link_kind_synonyms();
const Synonyms& figure_synonyms();
const Synonyms& profile_synonyms();

}  // namespace espalier
