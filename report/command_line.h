// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/planned.h"
#include "scenarios/study.h"

// Lines of a shell that make answers again, for whoever shows answers.

namespace espalier {

/// The word as a shell reads it: between quotes where it must be.
std::string shell_word(const std::string& word);

/// The line that asks for an answer alone, with everything that differs from the defaults.
std::string command_of(const Outcome& outcome);
/// The line that probes this computer once more, or its GPUs of these numbers where any are named,
/// and simulates and measures the same on it.
std::string compare_command_of(const Outcome& measured, const std::string& devices = {});
/// The line that asks what NCCL needs for the same message; empty where it was not compared with.
std::string nccl_command_of(const Outcome& outcome);
/// The line that makes a plan.
std::string command_of(const Planned& plan);

/// The word and the parts of it that may be paths, as in "tuned:table.yaml".
std::vector<std::string_view> paths_in(std::string_view word);
/// The files that words of a line name and that there are, each once.
std::vector<std::string> files_named(const std::vector<std::string>& words);

}  // namespace espalier
