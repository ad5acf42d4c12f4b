// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/verb.h"

namespace espalier {

const Verb& run_verb();
const Verb& sim_verb();
const Verb& compare_verb();
const Verb& exec_verb();
const Verb& plan_verb();
const Verb& probe_verb();
const Verb& verify_verb();
const Verb& show_verb();
const Verb& tune_verb();
const Verb& train_verb();
const Verb& list_verb();
const Verb& completion_verb();
const Verb& help_verb();

}  // namespace espalier
