// SPDX-License-Identifier: Apache-2.0
#include "ir/collective.h"

#include <algorithm>
#include <array>

#include "core/check.h"

namespace espalier {
namespace {

constexpr std::array<CollectiveInfo, 9> kCollectives = {{
    {Collective::broadcast, "broadcast", "the root's message reaches every rank", true, false,
     false},
    {Collective::reduce, "reduce", "the combination of all messages reaches the root", true, true,
     false},
    {Collective::allreduce, "allreduce", "the combination of all messages reaches every rank",
     false, true, false},
    {Collective::allgather, "allgather", "every rank's block reaches every rank", false, false,
     true},
    {Collective::reducescatter, "reducescatter",
     "block r of the combination of all messages reaches rank r", false, true, true},
    {Collective::gather, "gather", "every rank's block reaches the root", true, false, true},
    {Collective::scatter, "scatter", "block r of the root's message reaches rank r", true, false,
     true},
    {Collective::alltoall, "alltoall", "block r of rank s's message becomes block s of rank r's",
     false, false, true},
    {Collective::sendrecv, "sendrecv", "every rank's message reaches the next rank", false, false,
     false},
}};

constexpr std::array<std::string_view, 3> kBufferNames = {"in", "out", "tmp"};

/// How much of the message one rank's input or output is.
enum class Extent : std::uint8_t { none, block, whole };

/// Inputs and outputs of the root and of the other ranks; both alike when there is no root.
struct Shape {
  Extent root_input;
  Extent other_input;
  Extent root_output;
  Extent other_output;
};

Shape shape_of(Collective collective) {
  using enum Extent;
  switch (collective) {
    case Collective::broadcast:
      return {whole, none, whole, whole};
    case Collective::reduce:
      return {whole, whole, whole, none};
    case Collective::allgather:
      return {block, block, whole, whole};
    case Collective::reducescatter:
      return {whole, whole, block, block};
    case Collective::gather:
      return {block, block, whole, none};
    case Collective::scatter:
      return {whole, none, block, block};
    case Collective::allreduce:
    case Collective::alltoall:
    case Collective::sendrecv:
      break;
  }
  return {whole, whole, whole, whole};
}

Extent input_extent(const Contract& contract, int rank) {
  const Shape shape = shape_of(contract.collective);
  return rank == contract.root ? shape.root_input : shape.other_input;
}

Extent output_extent(const Contract& contract, int rank) {
  const Shape shape = shape_of(contract.collective);
  return rank == contract.root ? shape.root_output : shape.other_output;
}

std::int64_t units_of(const Contract& contract, Extent extent) {
  switch (extent) {
    case Extent::none:
      return 0;
    case Extent::block:
      return block_units(contract);
    case Extent::whole:
      break;
  }
  return contract.units;
}

/// The buffer a rank has in place: large enough for its input and for its result.
Extent in_place_extent(const Contract& contract, int rank) {
  return std::max(input_extent(contract, rank), output_extent(contract, rank));
}

Region region_of(const Contract& contract, int rank, Extent extent, Buffer out_of_place) {
  const std::int64_t units = units_of(contract, extent);
  if (!contract.in_place) return {out_of_place, 0, units};
  const bool own_block =
      extent == Extent::block && in_place_extent(contract, rank) == Extent::whole;
  return {Buffer::out, own_block ? rank * units : 0, units};
}

}  // namespace

bool is_known(Collective collective) {
  return static_cast<std::size_t>(collective) < kCollectives.size();
}

const CollectiveInfo& info(Collective collective) {
  CHECK(is_known(collective));
  return kCollectives[static_cast<std::size_t>(collective)];
}

std::string_view to_string(Collective collective) { return info(collective).name; }

std::span<const CollectiveInfo> all_collectives() { return kCollectives; }

const Synonyms& collective_synonyms() {
  static const Synonyms synonyms = {
      {"bcast", "broadcast"},
      {"all2all", "alltoall"},
      {"a2a", "alltoall"},
      {"alltoallv", "alltoall"},
      {"p2p", "sendrecv"},
      {"send", "sendrecv"},
      {"recv", "sendrecv"},
      {"ar", "allreduce"},
      {"sum", "allreduce"},
      {"ag", "allgather"},
      {"allgatherv", "allgather"},
      {"rs", "reducescatter"},
      {"gatherv", "gather"},
      {"scatterv", "scatter"},
      {"reducescatterblock", "reducescatter"},
  };
  return synonyms;
}

std::optional<Collective> parse_collective(std::string_view name) {
  for (const CollectiveInfo& candidate : kCollectives) {
    if (candidate.name == name) return candidate.id;
  }
  return std::nullopt;
}

double busbw_factor(Collective collective, int ranks) {
  const double others_share = static_cast<double>(ranks - 1) / ranks;
  if (collective == Collective::allreduce) return 2 * others_share;
  return info(collective).blocked ? others_share : 1;
}

std::string_view to_string(Buffer buffer) {
  const auto index = static_cast<std::size_t>(buffer);
  CHECK(index < kBufferNames.size());
  return kBufferNames[index];
}

std::int64_t block_units(const Contract& contract) {
  return info(contract.collective).blocked ? contract.units / contract.ranks : contract.units;
}

std::int64_t buffer_units(const Contract& contract, int rank, Buffer buffer) {
  if (contract.in_place) {
    return buffer == Buffer::out ? units_of(contract, in_place_extent(contract, rank)) : 0;
  }
  switch (buffer) {
    case Buffer::in:
      return units_of(contract, input_extent(contract, rank));
    case Buffer::out:
      return units_of(contract, output_extent(contract, rank));
    case Buffer::tmp:
      break;
  }
  return 0;
}

Region input_region(const Contract& contract, int rank) {
  return region_of(contract, rank, input_extent(contract, rank), Buffer::in);
}

Region output_region(const Contract& contract, int rank) {
  return region_of(contract, rank, output_extent(contract, rank), Buffer::out);
}

Origin origin_of(const Contract& contract, int rank, std::int64_t unit) {
  const std::int64_t block = block_units(contract);
  switch (contract.collective) {
    case Collective::broadcast:
      return {contract.root, unit};
    case Collective::reduce:
    case Collective::allreduce:
      return {-1, unit};
    case Collective::allgather:
    case Collective::gather:
      return {static_cast<int>(unit / block), unit % block};
    case Collective::reducescatter:
      return {-1, rank * block + unit};
    case Collective::scatter:
      return {contract.root, rank * block + unit};
    case Collective::alltoall:
      return {static_cast<int>(unit / block), rank * block + unit % block};
    case Collective::sendrecv:
      break;
  }
  return {(rank + contract.ranks - 1) % contract.ranks, unit};
}

ElementLayout::ElementLayout(const Contract& contract, std::int64_t elements)
    : block_units_(espalier::block_units(contract)) {
  CHECK(elements >= 0 && block_units_ > 0);
  const std::int64_t blocks = info(contract.collective).blocked ? contract.ranks : 1;
  block_elements_ = elements / blocks + (elements % blocks != 0 ? 1 : 0);
  message_elements_ = blocks * block_elements_;
}

std::int64_t ElementLayout::offset(std::int64_t unit) const {
  // floor(within * block_elements / block_units) without a product that could overflow.
  const std::int64_t within = unit % block_units_;
  const std::int64_t even = block_elements_ / block_units_;
  const std::int64_t left_over = block_elements_ % block_units_;
  return unit / block_units_ * block_elements_ + within * even + within * left_over / block_units_;
}

}  // namespace espalier
