// SPDX-License-Identifier: Apache-2.0
#include "report/command_line.h"

#include <algorithm>
#include <filesystem>

#include "core/words.h"

namespace espalier {

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

namespace {

/// A line as it is put together.
class CommandLine {
 public:
  explicit CommandLine(const std::string& verb) : words_{"espalier", verb} {}

  void add(const char* option, const std::string& value) {
    words_.push_back(option);
    words_.push_back(shell_word(value));
  }
  void add(const char* option, std::string_view value) { add(option, std::string(value)); }
  void add(const char* flag) { words_.push_back(flag); }

  /// On which GPUs of which machine, if on one.
  void add_machine(const Query& query, int ranks) {
    if (query.topology.empty()) return add("--ranks", std::to_string(ranks));
    add("--topology", query.topology);
    if (!query.gpus.empty()) add("--gpus", format_ranges(query.gpus));
    if (!query.relays.empty()) add("--relay", format_ranges(query.relays));
    if (query.profile != "kernel") add("--profile", query.profile);
    if (query.links != LinkScope::all) add("--links", to_string(query.links));
  }
  void add_collective(const Query& query) {
    if (query.collective != Collective::allreduce) {
      add("--collective", to_string(query.collective));
    }
    if (query.root != 0) add("--root", std::to_string(query.root));
    add("--algorithm", query.algorithm);
  }

  /// What is asked of it.
  void add_question(const Outcome& outcome) {
    const Query& query = outcome.query;
    add_collective(query);
    add("--size", std::to_string(query.size_bytes));
    if (query.launch != LaunchMode::per_gpu) add("--launch", to_string(query.launch));
    if (query.chunk_bytes) add("--chunk", std::to_string(*query.chunk_bytes));
    if (outcome.report.executed) {
      if (outcome.backend != "host") add("--backend", outcome.backend);
      if (query.run.type != DataType::float32) add("--dtype", to_string(query.run.type));
      if (query.run.op != ReduceOp::sum) add("--op", to_string(query.run.op));
    }
    if (query.in_place) add("--in-place");
    if (!query.merge) add("--no-merge");
  }

  std::string text() const { return join(words_, " "); }

 private:
  std::vector<std::string> words_;
};

}  // namespace

std::string command_of(const Outcome& outcome) {
  CommandLine line(outcome.report.executed ? "exec" : "sim");
  line.add_machine(outcome.query, outcome.ranks);
  line.add_question(outcome);
  return line.text();
}

std::string compare_command_of(const Outcome& measured, const std::string& devices) {
  CommandLine line("compare");
  if (devices.empty()) {
    line.add("--ranks", std::to_string(measured.ranks));
  } else {
    line.add("--devices", devices);
  }
  line.add_question(measured);
  return line.text();
}

std::string command_of(const Planned& plan) {
  CommandLine line("plan");
  line.add_machine(plan.query, plan.machine->ranks());
  line.add_collective(plan.query);
  if (plan.query.in_place) line.add("--in-place");
  return line.text();
}

std::string nccl_command_of(const Outcome& outcome) {
  const std::optional<Query> nccl = baseline_query(outcome.query);
  if (!nccl || !outcome.nccl) return {};
  Outcome asked;
  asked.query = *nccl;
  asked.ranks = outcome.ranks;
  return command_of(asked);
}

std::vector<std::string_view> paths_in(std::string_view word) {
  constexpr std::string_view kSeparators = ":,|+=";
  std::vector<std::string_view> paths;
  std::size_t begin = 0;
  for (std::size_t end = 0; end <= word.size(); ++end) {
    if (end < word.size() && kSeparators.find(word[end]) == std::string_view::npos) continue;
    // Names of files may have separators in them.
    for (const std::string_view path : {word.substr(0, end), word.substr(begin, end - begin)}) {
      if (!path.empty()) paths.push_back(path);
    }
    begin = end + 1;
  }
  return paths;
}

std::vector<std::string> files_named(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  for (const std::string& word : words) {
    for (const std::string_view path : paths_in(word)) {
      std::error_code ignored;  // no file is none of these
      const bool is_file = std::filesystem::is_regular_file(path, ignored);
      if (is_file && std::ranges::count(files, path) == 0) files.emplace_back(path);
    }
  }
  return files;
}

}  // namespace espalier
