// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/words.h"

namespace espalier {

enum class Collective : std::uint8_t {
  broadcast,
  reduce,
  allreduce,
  allgather,
  reducescatter,
  gather,
  scatter,
  alltoall,
  sendrecv
};

struct CollectiveInfo {
  Collective id;
  std::string_view name;
  std::string_view meaning;
  bool rooted;
  bool reduces;
  /// The message is n equal blocks, one per rank (allgather, reducescatter, gather, scatter,
  /// alltoall).
  bool blocked;
};

/// Whether the value names a collective; one that was cast from a number may not.
bool is_known(Collective collective);
/// \pre is_known(collective).
const CollectiveInfo& info(Collective collective);
std::string_view to_string(Collective collective);
std::span<const CollectiveInfo> all_collectives();
std::optional<Collective> parse_collective(std::string_view name);
/// What MPI, NCCL and their users also call the collectives.
const Synonyms& collective_synonyms();

/// busbw = algbw x this, as in nccl-tests (doc/PERFORMANCE.md): 2(n-1)/n for allreduce, (n-1)/n for
/// the blocked ones, 1 otherwise. For n = 1: 0 for the first two groups, as there.
double busbw_factor(Collective collective, int ranks);

/// `in` and `out` are the user's buffers of a rank; `tmp` is scratch of any place.
enum class Buffer : std::uint8_t { in, out, tmp };
std::string_view to_string(Buffer buffer);

/// A stretch of units of one buffer.
struct Region {
  Buffer buffer = Buffer::in;
  std::int64_t begin = 0;
  std::int64_t units = 0;
};

/// Where a unit of the result comes from: unit `unit` (counted from the start of the input region)
/// of rank `rank`'s input, or of every rank's input, combined, when `rank` is -1.
struct Origin {
  int rank = -1;
  std::int64_t unit = 0;
};

/// What a collective promises for one size-free message of `units` equal parts.
///
/// The message is what nccl-tests counts as size: the bytes of one rank's buffer for allreduce,
/// broadcast, reduce and sendrecv; of the whole (n blocks) for the blocked collectives, where
/// `units` must be a multiple of `ranks`. sendrecv: every rank sends to rank + 1, as nccl-tests
/// does.
///
/// In place, a rank has one buffer, `out`, that holds its input first: at the start, except for
/// allgather and for gather's root, whose input is its own block of `out`. reducescatter and
/// scatter's root then leave the result in their own block of the full-sized `out`.
struct Contract {
  Collective collective = Collective::allreduce;
  int ranks = 1;
  int root = 0;  ///< rooted collectives only
  std::int64_t units = 1;
  bool in_place = false;
  bool operator==(const Contract&) const = default;
};

/// Units after which the element boundaries of a buffer repeat: `units`, or units / ranks when
/// blocked.
std::int64_t block_units(const Contract& contract);
/// Size of a rank's `in` or `out` buffer, in units; 0 when it has none.
std::int64_t buffer_units(const Contract& contract, int rank, Buffer buffer);
/// Where a rank's input is before the run, and its result after it. `units` 0: none (for example, a
/// rank that is not the root).
Region input_region(const Contract& contract, int rank);
Region output_region(const Contract& contract, int rank);
/// Which input unit `unit` (counted from the start of the output region) of `rank`'s result must
/// hold.
Origin origin_of(const Contract& contract, int rank, std::int64_t unit);

/// Element boundaries of a message of `elements` in this contract's units: balanced, so that sizes
/// 0, 1 and primes work. Blocked collectives round the block up, all blocks being equal.
class ElementLayout {
 public:
  ElementLayout(const Contract& contract, std::int64_t elements);
  /// First element of unit `unit` of any buffer.
  std::int64_t offset(std::int64_t unit) const;
  /// Elements of the units [begin, begin + length).
  std::int64_t count(std::int64_t begin, std::int64_t length) const {
    return offset(begin + length) - offset(begin);
  }
  /// Elements of the whole message after rounding; what algbw counts.
  std::int64_t message_elements() const { return message_elements_; }

 private:
  std::int64_t block_units_;
  std::int64_t block_elements_;
  std::int64_t message_elements_;
};

}  // namespace espalier
