// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "ir/program.h"

namespace espalier {

/// The rules of docs/ir.md that can be broken; R9 is a note and R10 needs a machine.
/// `limit` is not a rule: the program may be right, but is too large to verify.
enum class Rule : std::uint8_t {
  limit = 0,
  structure = 1,
  bounds = 2,
  order = 3,
  operands = 4,
  undefined = 5,
  race = 6,
  result = 7,
  inputs_kept = 8
};

/// Violations on their way into a report: sorted by rule and op, keeping the
/// first few of each rule. Sentences are made only for those that are kept,
/// since a wrong program may break a rule a million times. Private to this room.
class Findings {
 public:
  Findings(const Program& program, int max_per_rule)
      : program_(program), most_(static_cast<std::size_t>(std::max(max_per_rule, 1))) {}

  /// `message()` makes the sentence after "op 12: ".
  template <class Message>
  void add(Rule rule, OpId op, Message&& message, std::string suggestion = {}) {
    add(rule, op, message, [&] { return std::move(suggestion); });
  }
  /// `suggestion()` makes what would be right.
  template <class Message, std::invocable Suggestion>
  void add(Rule rule, OpId op, Message&& message, Suggestion&& suggestion) {
    insert(rule, op, [&] {
      return Diagnostic{
          {}, "op " + std::to_string(op) + ": " + message(), suggestion(), {{}, line_of(op), 0}};
    });
  }

  /// A violation that does not belong to a single op. `message()` makes the whole sentence.
  template <class Message>
  void add_general(Rule rule, Message&& message, std::string suggestion = {}) {
    add_diagnostic(rule, [&] { return Diagnostic{{}, message(), std::move(suggestion), {}}; });
  }

  /// The same with a place of its own; its rule is filled in.
  template <class Make>
  void add_diagnostic(Rule rule, Make&& make) {
    insert(rule, kAfterOps, make);
  }

  bool any(Rule rule) const { return kinds_[static_cast<std::size_t>(rule)].count > 0; }
  bool any_up_to(Rule last) const;
  std::size_t max_per_rule() const { return most_; }
  /// All of them, by rule; the last one of a rule says how many more there are.
  std::vector<Diagnostic> take();

 private:
  static constexpr std::uint64_t kAfterOps = std::uint64_t{1} << 32;
  struct Kept {
    std::uint64_t key;
    Diagnostic diagnostic;
  };
  struct Kind {
    std::vector<Kept> kept;  ///< sorted by key, equal ones in the order they came
    std::uint64_t count = 0;
  };

  int line_of(OpId op) const { return op < program_.lines.size() ? program_.lines[op] : 0; }

  template <class Make>
  void insert(Rule rule, std::uint64_t key, Make&& make) {
    Kind& kind = kinds_[static_cast<std::size_t>(rule)];
    ++kind.count;
    if (kind.kept.size() == most_) {
      if (key >= kind.kept.back().key) return;
      kind.kept.pop_back();
    }
    const auto place =
        std::upper_bound(kind.kept.begin(), kind.kept.end(), key,
                         [](std::uint64_t wanted, const Kept& kept) { return wanted < kept.key; });
    kind.kept.insert(place, {key, make()});
  }

  const Program& program_;
  std::size_t most_;
  std::array<Kind, 9> kinds_;  ///< by rule number
};

}  // namespace espalier
