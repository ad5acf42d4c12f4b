// SPDX-License-Identifier: Apache-2.0
#include "cli/exporting.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "algorithms/program_file.h"
#include "cli/programs.h"
#include "cli/text.h"
#include "core/units.h"
#include "core/words.h"
#include "ir/print.h"
#include "scenarios/describe.h"
#include "topologies/load.h"

namespace espalier {
namespace {

void finish_writing(const Console& console, const ExportTarget& target, const Written& written) {
  write_output(console, target.path, written.text);
  for (const std::string& note : written.notes) say(console, "note: " + printable(note));
  if (target.path == "-") return;
  say(console, fmt::format("wrote {} ({})", printable(target.path),
                           target.format == nullptr ? "Espalier" : target.format->title));
}

/// As other formats, it is read back before anything is written.
Written written_as_yaml(const Topology& machine) {
  Written written{print_topology(machine), {}};
  try {
    parse_topology(written.text, machine.name);
  } catch (const Error& error) {
    throw Error(ErrorKind::unsupported, fmt::format("YAML can't say what {} is: {}", machine.name,
                                                    error.diagnostics().front().message));
  }
  return written;
}

}  // namespace

ExportTarget export_target(Arguments& arguments, const std::string& path, Exported what) {
  ExportTarget target{path};
  if (path.empty()) return target;
  const std::string name = arguments.text("--to");
  try {
    target.format = format_to_write(path, name, what);
  } catch (const Error& error) {
    const Diagnostic& problem = error.diagnostics().front();
    if (name.empty()) {
      arguments.problem(problem.message, "--to, with " + problem.suggestion);
    } else {
      arguments.problem_of("--to", problem.message, problem.suggestion);
    }
  }
  return target;
}

void read_instances(Arguments& arguments, ExportTarget& target) {
  if (arguments.text("--instances") == "auto") return;
  target.instances = static_cast<int>(arguments.integer("--instances", 1, kMostInstances));
}

ExportTarget read_export(Arguments& arguments) {
  if (!arguments.given("--export")) {
    for (const char* option : {"--to", "--instances"}) {
      if (!arguments.given(option)) continue;
      arguments.problem(fmt::format("{} says how --export writes", option), "--export FILE");
    }
    return {};
  }
  ExportTarget target = export_target(arguments, arguments.output("--export"), Exported::program);
  for (const char* option : {"--algorithm", "--topology"}) {
    for (const std::string& word : arguments.words(option)) {
      std::error_code ignored;
      if (std::filesystem::equivalent(word, target.path, ignored)) {
        arguments.problem_of("--export", fmt::format("{} is read by {}", quote(word), option));
      }
    }
  }
  read_instances(arguments, target);
  return target;
}

Written export_program(const Console& console, const ExportTarget& target, const Program& program,
                       const WritingOptions& options) {
  Written written = target.format == nullptr ? Written{print_program(program), {}}
                                             : target.format->write_program(program, options);
  finish_writing(console, target, written);
  return written;
}

Written export_for_machine(const Console& console, const ExportTarget& target,
                           const Program& program, const Machine& machine,
                           const WritingOptions& options) {
  Written written = write_for_machine(program, target, machine, options);
  finish_writing(console, target, written);
  return written;
}

void export_machine(const Console& console, const ExportTarget& target, const Topology& machine) {
  finish_writing(
      console, target,
      target.format == nullptr ? written_as_yaml(machine) : target.format->write_machine(machine));
}

std::string word_of_written(const Written& written) {
  return fmt::format("./what is written ({:x})", std::hash<std::string>()(written.text));
}

TimesOfWritten time_written(Study& study, const Query& query, const Written& written,
                            double before_s) {
  Query after = query;
  after.algorithm = word_of_written(written);
  after.chunk_bytes.reset();
  after.judge = false;
  study.know_program(after.algorithm, program_file_of(written.text, after.algorithm));
  const Outcome outcome = study.ask(after);
  if (outcome.skipped) return {after.size_bytes, before_s, 0, *outcome.skipped};
  if (!outcome.verified) return {after.size_bytes, before_s, 0, outcome.problems.front().message};
  return {after.size_bytes, before_s, outcome.report.time_s, {}};
}

std::string describe(const TimesOfWritten& times) {
  const std::string with = " with " + describe_size(times.size_bytes);
  if (!times.why_not.empty()) return fmt::format("not simulated{}: {}", with, times.why_not);
  const std::string before = fit_number(times.before_s * 1e6, 7);
  const std::string after = fit_number(times.after_s * 1e6, 7);
  const auto under = [](const std::string& profile) {
    return profile.empty() ? std::string() : fmt::format(" under profile {}", profile);
  };
  if (before == after && times.before_profile == times.after_profile) {
    return fmt::format("simulated{}: {} us as it is written, as before", with, after);
  }
  return fmt::format("simulated{}: {} us as it is written{}, {} us before{}", with, after,
                     under(times.after_profile), before, under(times.before_profile));
}

void say_times(const Console& console, const ExportTarget& target, Study& study, Query query,
               const Program& program, const Written& written) {
  if (target.format == nullptr) return;
  query.algorithm = "./what was given";
  query.chunk_bytes.reset();
  query.judge = false;
  study.know_program(query.algorithm, program_file_of(program, query.algorithm));
  const Outcome before = study.ask(query);
  const TimesOfWritten times =
      before.ran()
          ? time_written(study, query, written, before.report.time_s)
          : TimesOfWritten{query.size_bytes, 0, 0, before.skipped.value_or("the program is wrong")};
  say(console, describe(times));
}

void export_outcome(const Console& console, const ExportTarget& target, Study& study,
                    const Outcome& outcome) {
  WritingOptions options = writing_options(study.machine(outcome.query));
  options.protocol = outcome.protocol;
  // A protocol for short messages is not for longer ones than were looked at.
  if (!outcome.protocol.empty() && outcome.protocol != "simple") {
    options.max_bytes = outcome.query.size_bytes;
  }
  say(console, "exporting " + algorithm_that_ran(outcome));
  const Written written = export_for_machine(console, target, *whole_program(study, outcome),
                                             study.machine(outcome.query), options);
  const std::string runtime = profile_word(outcome.query.profile).runtime;
  // A file of ours is the same program; but it does not say which blocks a library gives it.
  const bool is_same =
      target.format == nullptr && !is_library(study.choice(algorithm_that_ran(outcome)));
  if (is_same || !outcome.report.simulated) return;
  TimesOfWritten times = time_written(study, outcome.query, written, outcome.report.time_s);
  if (outcome.profile != runtime) {
    times.before_profile = outcome.profile;
    times.after_profile = runtime;
  }
  say(console, describe(times));
}

}  // namespace espalier
