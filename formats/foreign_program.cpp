// SPDX-License-Identifier: Apache-2.0
#include "formats/foreign_program.h"

#include <fmt/format.h>

#include "core/units.h"

namespace espalier {

std::string render(const ForeignNote& note) {
  const bool is_warning = note.severity == ForeignNote::Severity::warning;
  return (is_warning ? "warning: " : "note: ") + printable(note.text);
}

void name_best_root(int root, int tried, int ranks, std::vector<Diagnostic>& problems) {
  if (problems.empty()) return;
  std::string& help = problems.front().suggestion;
  if (!help.empty()) help += "; ";
  help += fmt::format("the file does not name its root: for rank {}, the least is wrong", root);
  if (tried < ranks) help += fmt::format(" of {} that were tried", tried);
}

std::vector<Diagnostic>::const_iterator place_of_other_label(
    const std::vector<Diagnostic>& problems, const Contract& labelled) {
  // Of more results that are wrong, fewer are listed.
  constexpr std::int64_t kLittle = 8;
  const auto wrong = static_cast<std::int64_t>(problems.size());
  const bool is_little = wrong * kLittle <= labelled.ranks * labelled.units;
  return is_little ? problems.end() : problems.begin();
}

ForeignNote note_moved_chunks() {
  return {
      "it takes chunks to other positions of the message, which only messages do that divide "
      "evenly: it can be verified, but not simulated"};
}

std::string range_of(const ForeignProgram& foreign) {
  constexpr std::int64_t kAnySize = std::int64_t{1} << 40;  // as writers of MSCCL's files have it
  const bool has_most = foreign.max_bytes >= 0 && foreign.max_bytes < kAnySize;
  if (foreign.min_bytes == 0 && !has_most) return {};
  return fmt::format("messages{}{}",
                     foreign.min_bytes == 0 ? "" : " from " + describe_size(foreign.min_bytes),
                     has_most ? " up to " + describe_size(foreign.max_bytes) : "");
}

std::optional<std::string> not_among(const ForeignProgram& foreign, std::int64_t message_bytes,
                                     std::int64_t element_bytes) {
  const bool is_in_range = message_bytes >= foreign.min_bytes &&
                           (foreign.max_bytes < 0 || message_bytes <= foreign.max_bytes);
  if (!is_in_range) return range_of(foreign);
  if (message_bytes % (element_bytes * foreign.multiple_of_elements) != 0) {
    return fmt::format("messages of a multiple of {} elements", foreign.multiple_of_elements);
  }
  if (message_bytes % foreign.multiple_of_bytes != 0) {
    return fmt::format("messages of a multiple of {} bytes", foreign.multiple_of_bytes);
  }
  return std::nullopt;
}

}  // namespace espalier
