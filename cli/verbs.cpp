// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include <algorithm>

namespace espalier {

const std::vector<const Verb*>& all_verbs() {
  static const std::vector<const Verb*> verbs = {
      &run_verb(),  &sim_verb(),        &exec_verb(), &compare_verb(), &probe_verb(),
      &tune_verb(), &train_verb(),      &plan_verb(), &verify_verb(),  &show_verb(),
      &list_verb(), &completion_verb(), &help_verb(),
  };
  return verbs;
}

const Verb* find_verb(std::string_view name) {
  const auto verb = std::ranges::find(all_verbs(), name, &Verb::name);
  return verb == all_verbs().end() ? nullptr : *verb;
}

}  // namespace espalier
