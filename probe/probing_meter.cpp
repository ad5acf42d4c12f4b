// SPDX-License-Identifier: Apache-2.0
#include "probe/probing_meter.h"

#include <algorithm>
#include <bit>

namespace espalier {

namespace {

/// What a rank's buffers take while it is measured, and ops. More than caches hold, and ops as
/// large as those of large messages; a GPU moves a hundred times as many bytes while an op starts.
/// Ranks that share a memory have less each, since all of them have buffers; more than that where
/// caches of a host are large.
struct Scale {
  std::int64_t max_bytes = 0;
  std::int64_t min_bytes = 0;
  std::int64_t shared_bytes = 0;  ///< of all ranks together
  std::int64_t piece_bytes = 0;
  double window_s = 0;  ///< as in MeterSettings, while a machine is probed

  std::int64_t footprint_bytes(int sharing) const {
    return std::clamp(shared_bytes / sharing, min_bytes, max_bytes);
  }
};
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// Ranks of a host work on at least so many times what its caches hold, but each on no more than
// that.
constexpr std::int64_t kBeyondCaches = 2;
constexpr std::int64_t kMaxBeyondCaches = 1024 * kMiB;
constexpr Scale kHostScale{128 * kMiB, 32 * kMiB, 1024 * kMiB, 4 * kMiB, 0.035};
constexpr Scale kGpuScale{2048 * kMiB, 256 * kMiB, 4096 * kMiB, 128 * kMiB, 0.07};

const Scale& scale_of(const Inventory& inventory) {
  return inventory.is_host ? kHostScale : kGpuScale;
}

}  // namespace

std::int64_t probe_footprint_bytes(const Inventory& inventory) {
  const int sharing = inventory.ranks_of_a_memory();
  std::int64_t bytes = scale_of(inventory).footprint_bytes(sharing);
  if (inventory.is_host) {
    const std::int64_t beyond = kBeyondCaches * inventory.cache_bytes / sharing;
    const auto whole = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(beyond)));
    bytes = std::max(bytes, std::min(whole, kMaxBeyondCaches));
  }
  for (const ProbedDevice& device : inventory.devices) {
    if (device.free_bytes == 0) continue;
    bytes = std::min(bytes, device.free_bytes / 2 / sharing);
  }
  return std::max(bytes, kMiB);
}

bool caches_hold_half_of_what_is_probed(const Inventory& inventory) {
  return inventory.is_host && probe_footprint_bytes(inventory) * inventory.ranks_of_a_host() <
                                  kBeyondCaches * inventory.cache_bytes;
}

namespace {

Meter meter_of(Backend& backend, const Inventory& inventory, double window_s, double timeout_s) {
  MeterSettings settings;
  settings.footprint_bytes = probe_footprint_bytes(inventory);
  settings.piece_bytes = scale_of(inventory).piece_bytes;
  settings.window_s = window_s;
  settings.timeout_s = timeout_s;
  Meter meter = backend_meter(backend, settings);
  // Of messages it is the back end that chooses what copies them.
  meter.copy_engines = !inventory.is_host && !inventory.has_messages;
  return meter;
}

}  // namespace

Meter probing_meter(Backend& backend, const Inventory& inventory, double timeout_s) {
  return meter_of(backend, inventory, scale_of(inventory).window_s, timeout_s);
}

Meter checking_meter(Backend& backend, const Inventory& inventory, double timeout_s) {
  constexpr double kWindow_s = 0.002;
  return meter_of(backend, inventory, kWindow_s, timeout_s);
}

}  // namespace espalier
