// SPDX-License-Identifier: Apache-2.0
// Execution plans of MSCCL++ (src/core/executor/ and, below python/, mscclpp/language/
// of microsoft/mscclpp), the generation of 2025 and 2026.
#include <string_view>

#include "formats/format.h"
#include "formats/mscclpp_program.h"
#include "formats/mscclpp_reader.h"
#include "formats/mscclpp_writer.h"

namespace espalier {
namespace {

bool has(std::string_view text, std::string_view key) {
  return text.find(key) != std::string_view::npos;
}

bool recognises(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos || text[start] != '{' || !has(text, "\"gpus\"")) return false;
  return has(text, "\"threadblocks\"") || has(text, "\"inplace\"") || has(text, "\"protocol\"");
}

ForeignProgram read_program(const FormatText& text) {
  std::vector<ForeignNote> notes;
  const MscclppPlan plan = read_mscclpp_plan(text, notes);
  ForeignProgram made = mscclpp_program(plan, text.file);
  made.notes.insert(made.notes.begin(), notes.begin(), notes.end());
  return made;
}

}  // namespace

const Format& mscclpp_json_format() {
  static const Format format{.name = "mscclpp-json",
                             .title = "execution plans that MSCCL++ carries out",
                             .extension = ".json",
                             .recognises = recognises,
                             .read_program = read_program,
                             .write_program = write_mscclpp_plan,
                             .needs_whole_chunks = true};
  return format;
}

}  // namespace espalier
