// SPDX-License-Identifier: Apache-2.0
// The text form of programs, and what is done with a program that someone has written.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "ir/chunk.h"
#include "ir/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace espalier {
namespace {

/// Programs on more places are parsed only: the verifier may take a second for a million. Programs
/// up to the other limits are cut and run as well.
constexpr int kMaxFuzzedPlaces = 10000;
constexpr std::int64_t kMaxOps = 1000;
constexpr std::int64_t kMaxUnits = 1000;

std::optional<Program> parse_or_refuse(std::string_view text) {
  try {
    return parse_program(text, "fuzz.esp");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::input && !error.diagnostics().empty());
    return std::nullopt;
  }
}

bool is_small(const Program& program) {
  std::int64_t units = program.contract.units * program.places();
  for (const std::int64_t tmp : tmp_units(program)) units += tmp;
  return units <= kMaxUnits && static_cast<std::int64_t>(program.ops.size()) <= kMaxOps;
}

std::int64_t wrong_elements(const Program& program) {
  const std::int64_t elements = 2 * program.contract.units + 1;
  Memory memory = initial_memory(program, DataType::int32, ReduceOp::sum, elements);
  interpret(program, DataType::int32, ReduceOp::sum, elements, memory);
  return count_wrong(program, DataType::int32, ReduceOp::sum, elements, memory);
}

}  // namespace
}  // namespace espalier

/// A text is either refused with a reason, or a program that prints and parses to itself; and one
/// that the verifier accepts gives right results, whole and cut.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const auto program = parse_or_refuse({reinterpret_cast<const char*>(data), size});
  if (!program) return 0;
  CHECK(same_program(parse_program(print_program(*program), "printed.esp"), *program));
  if (program->places() > kMaxFuzzedPlaces) return 0;
  const bool right = verify(*program).ok();
  CHECK(verify(*program, {.comparison = ResultComparison::random, .seed = size}).ok() == right);
  if (!right || !is_small(*program)) return 0;
  CHECK(wrong_elements(*program) == 0);
  const Program cut = chunk(*program, {.split = 2, .piece_units = 3});
  CHECK(verify(cut).ok());
  CHECK(wrong_elements(cut) == 0);
  return 0;
}
