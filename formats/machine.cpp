// SPDX-License-Identifier: Apache-2.0
#include "formats/machine.h"

#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "core/words.h"
#include "formats/format.h"
#include "topologies/load.h"

namespace espalier {
namespace {

std::optional<Topology> read_foreign(const std::string& text, const std::string& file,
                                     const std::string& as) {
  const Format* format = recognise_foreign(text, file, OwnForm::machine);
  if (format == nullptr) return std::nullopt;
  if (format->read_machine == nullptr) {
    throw Error(ErrorKind::usage,
                fmt::format("{} holds no machine: it is {}", quote(file), format->title),
                format->read_program != nullptr ? "--algorithm " + file : "espalier fit " + file);
  }
  std::optional<Topology> filling;
  if (!as.empty()) filling = load_topology(as);
  return format->read_machine({text, file, filling ? &*filling : nullptr});
}

}  // namespace

Topology open_machine(const std::string& spec) { return load_topology(spec, read_foreign); }

}  // namespace espalier
