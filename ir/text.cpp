// SPDX-License-Identifier: Apache-2.0
// The parsing half of the text form (print.cpp prints it): docs/ir.md, "Text form".
#include "ir/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/words.h"
#include "ir/text_lexer.h"

namespace espalier {
namespace {

/// Line numbers, and the sizes of the program's pools, stay within their types.
constexpr std::size_t kMaxTextBytes = std::numeric_limits<int>::max();
constexpr std::size_t kMaxProblems = 50;
constexpr std::uint64_t kMaxUnitIndex = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxOpNumber = std::numeric_limits<OpId>::max() - 1;
constexpr std::uint64_t kMaxLane = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t kMaxVias = std::numeric_limits<std::int16_t>::max();

/// Methods that parse answer whether they could; when not, they have reported why, and the rest of
/// the line is skipped.
class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Program parse() {
    if (text_.size() > kMaxTextBytes) {
      problem(0, fmt::format("the text is longer than {} bytes", kMaxTextBytes));
      problems_.throw_if_any();
    }
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      ++line_;
      parse_line(text_.substr(begin, end - begin));
      begin = end + 1;
      if (problems_.all().size() >= kMaxProblems) {
        ++line_;
        problem(1, "too many problems; the rest of the text was not read");
        break;
      }
    }
    end_header();
    problems_.throw_if_any();
    return std::move(program_);
  }

 private:
  struct Field {
    std::string_view name;
    bool needed;
    bool (Parser::*parse)();
    int HeaderLines::*line;
  };
  static const std::array<Field, 7> kFields;
  int& line_of(const Field& field) { return program_.header_lines.*field.line; }

  bool problem(int column, std::string message, std::string suggestion = {}) {
    problems_.add({file_, line_, column}, std::move(message), std::move(suggestion));
    return false;
  }

  bool expected(std::string_view what) {
    const int column = lexer_.column();
    return problem(column, fmt::format("expected {}, found {}", what, lexer_.describe_next()));
  }

  void parse_line(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    lexer_ = LineLexer(line);
    if (lexer_.at_end()) return;
    if (lexer_.at_digit()) {
      end_header();
      if (parse_op() && !lexer_.at_end()) expected("the end of the line");
    } else if (parse_field() && !lexer_.at_end()) {
      header_ok_ = expected("the end of the line");
    }
  }

  // The header.

  bool parse_field() {
    const int column = lexer_.column();
    const std::string_view name = lexer_.take_word();
    if (name.empty()) return expected("a keyword or the number of an op");
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (kFields[i].name != name) continue;
      if (in_ops_) {
        return problem(column, fmt::format("'{}' must come before the first op", name));
      }
      const int earlier = std::exchange(line_of(kFields[i]), line_);
      if (earlier != 0) {
        return problem(column, fmt::format("'{}' is given twice, first on line {}", name, earlier));
      }
      const bool ok = (this->*kFields[i].parse)();
      header_ok_ = header_ok_ && ok;
      return ok;
    }
    std::vector<std::string> known;
    for (const Field& field : kFields) known.emplace_back(field.name);
    header_ok_ = false;
    unknown_keyword_ = true;
    return problem(column, "unknown keyword " + quote(name), did_you_mean(name, known));
  }

  /// Before the first op, or at the end of the text.
  void end_header() {
    if (std::exchange(in_ops_, true)) return;
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (!kFields[i].needed || line_of(kFields[i]) != 0) continue;
      if (unknown_keyword_) continue;  // most likely the one that is missing
      header_ok_ = problem(1, fmt::format("the header has no '{}'", kFields[i].name));
    }
    if (header_ok_ && program_.places() > kMaxPlaces) {
      header_ok_ = problem(1, fmt::format("there are {} places, but at most {} are allowed",
                                          program_.places(), kMaxPlaces));
    }
  }

  bool parse_name() {
    return lexer_.take_name(program_.name) || expected("a name, in quotes if it is not one word");
  }

  bool parse_collective_field() {
    const int column = lexer_.column();
    const std::string_view name = lexer_.take_word();
    if (name.empty()) return expected("the name of a collective");
    const std::optional<Collective> collective = espalier::parse_collective(name);
    if (!collective) {
      std::vector<std::string> known;
      for (const CollectiveInfo& candidate : all_collectives()) known.emplace_back(candidate.name);
      return problem(column, "unknown collective " + quote(name),
                     did_you_mean(name, known, collective_synonyms()));
    }
    program_.contract.collective = *collective;
    if (lexer_.at_end()) return true;
    const LineLexer before = lexer_;
    const int root_column = lexer_.column();
    if (lexer_.take_word() != "root") {
      lexer_ = before;
      return expected("'root' or the end of the line");
    }
    if (!info(*collective).rooted) {
      return problem(root_column, fmt::format("{} has no root", name));
    }
    return parse_integer("the root", 0, kMaxPlaces - 1, program_.contract.root);
  }

  bool parse_ranks() {
    return parse_integer("the number of ranks", 1, kMaxPlaces, program_.contract.ranks);
  }
  bool parse_units() {
    return parse_integer("the number of units", 1, kMaxUnits, program_.contract.units);
  }
  bool parse_hosts() {
    return parse_integer("the number of host memories", 0, kMaxPlaces - 1, program_.hosts);
  }
  bool parse_relays() {
    return parse_integer("the number of relays", 0, kMaxPlaces - 1, program_.relays);
  }
  bool parse_in_place() {
    program_.contract.in_place = true;
    return true;
  }

  // Ops.

  bool parse_op() {
    const int column = lexer_.column();
    std::uint64_t number = 0;
    lexer_.take_number(number);
    const std::size_t next = program_.ops.size();
    if (!number_gap_reported_ && number != next) {
      number_gap_reported_ = true;  // the ops after it would all be off as well
      problem(column, fmt::format("expected op {}, found {}", next, number),
              "ops are numbered from 0 without gaps");
    }
    // Kept even when it turns out wrong, so that the ops after it count on.
    program_.ops.emplace_back();
    program_.lines.push_back(line_);
    if (!lexer_.take_next(':')) return expected("':' after the number of the op");
    Op& op = program_.ops.back();
    const LineLexer before = lexer_;
    const auto word = lexer_.take_word();
    if (word == "compute" || word == "wait") {
      if (!parse_busy(word == "wait" ? OpKind::wait : OpKind::compute, op)) return false;
    } else {
      lexer_ = before;
      if (!parse_combine(op)) return false;
    }
    return parse_options(op);
  }

  bool parse_busy(OpKind kind, Op& op) {
    const int column = lexer_.column();
    double seconds = 0;
    if (!lexer_.take_real(seconds)) return expected("a duration in seconds");
    if (!std::isfinite(seconds) || seconds < 0) {
      return problem(column, "a duration must be finite and not negative");
    }
    op.kind = kind;
    op.dst = {0, static_cast<std::uint32_t>(program_.durations_s.size()), Buffer::tmp};
    program_.durations_s.push_back(seconds);
    return true;
  }

  bool parse_combine(Op& op) {
    if (!parse_slice(op.dst, op.length)) return false;
    copies_.clear();
    while (lexer_.take(',')) {
      if (!parse_alike(copies_.emplace_back(), op)) return false;
    }
    if (!lexer_.take('<') || !lexer_.take_next('-')) return expected("'<-'");
    op.src_begin = static_cast<std::uint32_t>(program_.sources.size());
    do {
      if (!parse_alike(program_.sources.emplace_back(), op)) return false;
      ++op.src_count;
    } while (lexer_.take('+'));
    program_.sources.insert(program_.sources.end(), copies_.begin(), copies_.end());
    op.copy_count = static_cast<std::uint32_t>(copies_.size());
    op.at = usual_place(program_, op);
    return true;
  }

  /// A slice as long as the op's first one.
  bool parse_alike(Operand& operand, const Op& op) {
    const int column = lexer_.column();
    std::uint32_t length = 0;
    if (!parse_slice(operand, length)) return false;
    return length == op.length ||
           problem(column,
                   fmt::format("all slices of an op must have the same length: this one has length "
                               "{}, the first one has {}",
                               length, op.length));
  }

  bool parse_slice(Operand& operand, std::uint32_t& length) {
    if (!parse_place(operand.place, "a slice such as r0.in[0]")) return false;
    if (!lexer_.take_next('.')) return expected("'.' and a buffer");
    if (!parse_buffer(operand.buffer)) return false;
    if (!lexer_.take_next('[')) return expected("'[' and the units");
    const int column = lexer_.column();
    std::uint32_t end = 0;
    if (!parse_integer("the first unit", 0, kMaxUnitIndex - 1, operand.begin)) return false;
    end = operand.begin + 1;
    if (lexer_.take_next(':') && !parse_integer("the unit after the last", 0, kMaxUnitIndex, end)) {
      return false;
    }
    if (end <= operand.begin) {
      return problem(column, fmt::format("[{}:{}] contains no unit", operand.begin, end));
    }
    length = end - operand.begin;
    return lexer_.take_next(']') || expected("']'");
  }

  bool parse_buffer(Buffer& buffer) {
    static constexpr std::array kBuffers = {Buffer::in, Buffer::out, Buffer::tmp};
    const int column = lexer_.column();
    const std::string_view name = lexer_.take_word();
    for (const Buffer candidate : kBuffers) {
      if (to_string(candidate) != name) continue;
      buffer = candidate;
      return true;
    }
    return problem(column, "unknown buffer " + quote(name),
                   did_you_mean(name, {"in", "out", "tmp"}));
  }

  /// "r3", "h0" or "g1".
  bool parse_place(PlaceId& place, std::string_view what) {
    const int column = lexer_.column();
    std::size_t kind = 0;
    while (kind < kPlaceNames.size() && !lexer_.take(kPlaceNames[kind].letter)) ++kind;
    if (kind == kPlaceNames.size()) return expected(what);
    std::uint64_t index = 0;
    if (!parse_number("the number of a place", 0, kMaxPlaces - 1, index)) return false;
    if (!header_ok_) return true;  // how many there are isn't known
    const std::array<int, 3> counts = {program_.ranks(), program_.hosts, program_.relays};
    const auto& [letter, one, many] = kPlaceNames[kind];
    if (index >= static_cast<std::uint64_t>(counts[kind])) {
      return problem(column, fmt::format("there is no {} {}: the header has '{} {}'", one, index,
                                         many, counts[kind]));
    }
    place = std::accumulate(counts.begin(), counts.begin() + kind, static_cast<PlaceId>(index));
    return true;
  }

  bool parse_options(Op& op) {
    static constexpr std::array<std::string_view, 5> kOptions = {"at", "lane", "via", "after",
                                                                 "in"};
    std::array<bool, kOptions.size()> given{};
    while (!lexer_.at_end()) {
      const int column = lexer_.column();
      const std::string_view name = lexer_.take_word();
      if (name.empty()) return expected("an option or the end of the line");
      const auto found = std::find(kOptions.begin(), kOptions.end(), name);
      if (found == kOptions.end()) {
        return problem(column, "unknown option " + quote(name),
                       did_you_mean(name, {kOptions.begin(), kOptions.end()}));
      }
      const auto option = static_cast<std::size_t>(found - kOptions.begin());
      if (std::exchange(given[option], true)) {
        return problem(column, fmt::format("'{}' is given twice", name));
      }
      if (name == "at" && !parse_place(op.at, "a place such as r0 or h0")) return false;
      if (name == "lane" && !parse_integer("the lane", 0, kMaxLane, op.lane)) return false;
      if (name == "via" && !parse_via(op, column)) return false;
      if (name == "after" && !parse_dependencies(op)) return false;
      if (name == "in" && !parse_switch(op, column)) return false;
    }
    if (op.kind != OpKind::combine) {
      if (!given[0]) {
        return expected(op.kind == OpKind::wait ? "'at' and the place that waits"
                                                : "'at' and the place that computes");
      }
      op.dst.place = op.at;
    }
    return true;
  }

  bool parse_switch(Op& op, int column) {
    const LineLexer before = lexer_;
    if (lexer_.take_word() != "switch") {
      lexer_ = before;
      return expected("'switch'");
    }
    op.in_switch = true;
    return op.kind == OpKind::combine || problem(column, "a switch only combines and copies");
  }

  bool parse_via(Op& op, int column) {
    if (op.kind == OpKind::compute) return problem(column, "a compute op moves nothing via a node");
    if (op.kind == OpKind::wait) return problem(column, "a wait op moves nothing via a node");
    const int name_column = lexer_.column();
    std::string name;
    if (!lexer_.take_name(name)) return expected("the name of a node");
    if (name.empty()) return problem(name_column, "the name of a node is empty");
    const auto [entry, is_new] =
        via_ids_.try_emplace(std::move(name), static_cast<std::int16_t>(program_.vias.size()));
    if (is_new) {
      if (program_.vias.size() == kMaxVias) {
        via_ids_.erase(entry);
        return problem(column, fmt::format("more than {} different nodes after 'via'", kMaxVias));
      }
      program_.vias.push_back(entry->first);
    }
    op.via = entry->second;
    return true;
  }

  bool parse_dependencies(Op& op) {
    op.dep_begin = static_cast<std::uint32_t>(program_.dependencies.size());
    do {
      OpId dependency = 0;
      if (!parse_integer("the number of an op", 0, kMaxOpNumber, dependency)) return false;
      program_.dependencies.push_back(dependency);
      ++op.dep_count;
    } while (lexer_.at_digit());
    return true;
  }

  // Numbers.

  bool parse_number(std::string_view what, std::uint64_t minimum, std::uint64_t maximum,
                    std::uint64_t& number) {
    const int column = lexer_.column();
    if (!lexer_.take_number(number)) {
      return expected(fmt::format("{}, a number from {} to {}", what, minimum, maximum));
    }
    if (number >= minimum && number <= maximum) return true;
    return problem(column, fmt::format("{} must be from {} to {}", what, minimum, maximum));
  }

  template <class Integer>
  bool parse_integer(std::string_view what, std::uint64_t minimum, std::uint64_t maximum,
                     Integer& value) {
    std::uint64_t number = 0;
    if (!parse_number(what, minimum, maximum, number)) return false;
    value = static_cast<Integer>(number);
    return true;
  }

  const std::string_view text_;
  const std::string& file_;
  DiagnosticList problems_;
  Program program_;
  LineLexer lexer_{{}};
  std::vector<Operand> copies_;  ///< of the op being read
  int line_ = 0;
  bool in_ops_ = false;
  bool unknown_keyword_ = false;
  bool header_ok_ = true;
  bool number_gap_reported_ = false;
  std::map<std::string, std::int16_t> via_ids_;
};

const std::array<Parser::Field, 7> Parser::kFields = {{
    {"program", true, &Parser::parse_name, &HeaderLines::program},
    {"collective", true, &Parser::parse_collective_field, &HeaderLines::collective},
    {"ranks", true, &Parser::parse_ranks, &HeaderLines::ranks},
    {"units", true, &Parser::parse_units, &HeaderLines::units},
    {"in_place", false, &Parser::parse_in_place, &HeaderLines::in_place},
    {"hosts", false, &Parser::parse_hosts, &HeaderLines::hosts},
    {"relays", false, &Parser::parse_relays, &HeaderLines::relays},
}};

}  // namespace

Program parse_program(std::string_view text, const std::string& file) {
  return Parser(text, file).parse();
}

}  // namespace espalier
