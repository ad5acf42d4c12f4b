// SPDX-License-Identifier: Apache-2.0
#include "scenarios/interpreted.h"

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/program_file.h"
#include "core/units.h"
#include "core/words.h"
#include "ir/data.h"

namespace espalier {
namespace {

/// NCCL, of which RCCL is a fork.
constexpr const char* kLibrary = "nccl";

}  // namespace

const BlockProgram* interpreted(const Profile& profile, const AlgorithmChoice& choice) {
  if (!profile.interprets || !choice.file || !choice.file->foreign) return nullptr;
  return choice.file->foreign->blocks.get();
}

std::optional<std::size_t> runtime_of(const BlockProgram& blocks, const Machine& machine,
                                      const Query& query) {
  if (!profile_word(query.profile).protocol.empty()) return 0;
  for (std::size_t runtime = 0; runtime <= machine.other_runtimes.size(); ++runtime) {
    const Protocol& protocol = machine.runtime(runtime).profile().protocol;
    if (protocol.name == lower_case(blocks.protocol)) return runtime;
  }
  return std::nullopt;
}

std::optional<std::string> why_not_used(const ForeignProgram& file, const Machine& machine,
                                        const Query& query) {
  const BlockProgram& blocks = *file.blocks;
  const auto element_bytes = static_cast<std::int64_t>(size_of(query.run.type));
  if (blocks.ranks() != machine.ranks()) {
    return fmt::format("it is for {} ranks, not for {}", blocks.ranks(), machine.ranks());
  }
  if (query.in_place ? !blocks.in_place : !blocks.out_of_place) {
    return fmt::format("it is for calls {}", query.in_place ? "out of place" : "in place");
  }
  if (const auto served = not_among(file, query.size_bytes, element_bytes)) {
    return "it is for " + *served;
  }
  if (!runtime_of(blocks, machine, query)) {
    return fmt::format("these GPUs can't use its protocol, {}", blocks.protocol);
  }
  return std::nullopt;
}

Query by_library(const Query& query) {
  Query own = query;
  own.profile = kLibrary;
  own.algorithm = kLibrary;
  own.chunk_bytes.reset();
  return own;
}

std::string library_note(const Query& query, const std::string& why) {
  const Query own = by_library(query);
  return fmt::format(
      "not used for {}, without a word from the runtime: {}. The library's own algorithm runs "
      "instead, here {} under profile {}",
      describe_size(query.size_bytes), why, own.algorithm, own.profile);
}

std::string protocol_note(const BlockProgram& blocks, const std::string& used) {
  if (lower_case(blocks.protocol) == used) return {};
  return fmt::format("the file asks for protocol {}, the question for {}", blocks.protocol, used);
}

}  // namespace espalier
