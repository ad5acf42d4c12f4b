// SPDX-License-Identifier: Apache-2.0
// The table of verbs. A new one is its file, which defines the function, and its lines here.
#include <algorithm>

#include "cli/verb.h"

namespace espalier {

const Verb& run_verb();
const Verb& sim_verb();
const Verb& exec_verb();
const Verb& compare_verb();
const Verb& probe_verb();
const Verb& fit_verb();
const Verb& tune_verb();
const Verb& train_verb();
const Verb& plan_verb();
const Verb& verify_verb();
const Verb& show_verb();
const Verb& convert_verb();
const Verb& list_verb();
const Verb& completion_verb();
const Verb& help_verb();

const std::vector<const Verb*>& all_verbs() {
  static const std::vector<const Verb*> verbs = {
      &run_verb(),  &sim_verb(),     &exec_verb(),  &compare_verb(),    &probe_verb(),
      &fit_verb(),  &tune_verb(),    &train_verb(), &plan_verb(),       &verify_verb(),
      &show_verb(), &convert_verb(), &list_verb(),  &completion_verb(), &help_verb(),
  };
  return verbs;
}

const Verb* find_verb(std::string_view name) {
  const auto verb = std::ranges::find(all_verbs(), name, &Verb::name);
  return verb == all_verbs().end() ? nullptr : *verb;
}

}  // namespace espalier
