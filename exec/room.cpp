// SPDX-License-Identifier: Apache-2.0
#include "exec/room.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/units.h"
#include "core/words.h"

namespace espalier {
namespace {

/// The part of the message that fits: 1 or more when all of it does, none when it would not even
/// without a message.
double fitting_part(const MemoryNeed& need) {
  double growing = 0;
  double constant = 0;
  for (const MemoryNeed::Part& part : need.parts) (part.grows ? growing : constant) += part.bytes;
  if (growing + constant <= need.available) return std::numeric_limits<double>::infinity();
  return growing > 0 ? std::max(0.0, (need.available - constant) / growing) : 0;
}

/// A round answer: the largest power of two.
std::string hint(double fitting_bytes) {
  if (fitting_bytes < 1) return "no message fits";
  return fmt::format("{} fits", format_bytes(std::int64_t{1} << std::ilogb(fitting_bytes)));
}

}  // namespace

void MemoryNeed::add(const std::string& name, double bytes, bool grows) {
  if (bytes <= 0) return;
  const auto known = std::ranges::find(parts, name, &Part::name);
  if (known == parts.end()) {
    parts.push_back({name, bytes, grows});
  } else {
    known->bytes += bytes;
  }
}

void MemoryNeed::add_buffers(const std::array<double, 3>& sizes,
                             const std::function<double(double)>& allocated) {
  const std::array names{"inputs", "results", "scratch"};
  for (std::size_t buffer = 0; buffer < sizes.size(); ++buffer) {
    if (sizes[buffer] <= 0) continue;
    add(names[buffer], sizes[buffer], true);
    add("guards and rounding", allocated(sizes[buffer]) - sizes[buffer], false);
  }
}

double MemoryNeed::bytes() const {
  double all = 0;
  for (const Part& part : parts) all += part.bytes;
  return all;
}

std::optional<OutOfMemory> find_shortage(std::span<const MemoryNeed> needs,
                                         std::int64_t size_bytes) {
  const auto tightest = std::ranges::min_element(needs, {}, fitting_part);
  if (tightest == needs.end() || std::isinf(fitting_part(*tightest))) return std::nullopt;
  std::vector<MemoryNeed::Part> sorted = tightest->parts;
  // Clang 14, which builds the fuzz targets, does not take that of std::ranges.
  std::stable_partition(sorted.begin(), sorted.end(),
                        [](const MemoryNeed::Part& part) { return part.grows; });
  std::vector<std::string> parts;
  for (const MemoryNeed::Part& part : sorted) {
    parts.push_back(fmt::format("{} {}", part.name, format_memory(part.bytes)));
  }
  return OutOfMemory(
      fmt::format("a message of {} needs {} of the memory of {} ({}), which can give {}",
                  format_bytes(size_bytes), format_memory(tightest->bytes()), tightest->owner,
                  join(parts, ", "), format_memory(tightest->available)),
      hint(static_cast<double>(size_bytes) * fitting_part(*tightest)));
}

std::string format_memory(double bytes) {
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; unit + 1 < units.size() && bytes >= 1024; ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes)
                   : fmt::format("{:.1f} {}", bytes, units[unit]);
}

}  // namespace espalier
