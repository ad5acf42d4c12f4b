// SPDX-License-Identifier: Apache-2.0
#include "exec/host/host_data.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "exec/host/combine_kernels.h"
#include "exec/host/parallel.h"

namespace espalier {
namespace {

// Work is divided in pieces of about this size, so that threads share it evenly and a piece stays
// in cache.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;

std::int64_t element_bytes(const HostData& data) {
  return static_cast<std::int64_t>(size_of(data.type));
}

// The bytes of a region of a rank's buffer.
std::span<std::byte> region_of(const HostData& data, const HostMemory& memory, int rank,
                               const Region& region) {
  const auto begin =
      static_cast<std::size_t>(data.layout.offset(region.begin) * element_bytes(data));
  const auto end = static_cast<std::size_t>(data.layout.offset(region.begin + region.units) *
                                            element_bytes(data));
  return memory.buffer(rank, region.buffer).subspan(begin, end - begin);
}

struct Piece {
  int rank = 0;
  std::int64_t begin = 0;  // bytes or units, counted from the start of the region
  std::int64_t length = 0;
};

void add_pieces(std::vector<Piece>& pieces, int rank, std::int64_t total, std::int64_t maximum) {
  for (std::int64_t begin = 0; begin < total; begin += maximum) {
    pieces.push_back({rank, begin, std::min(maximum, total - begin)});
  }
}

// Pieces of all inputs, in bytes: whole elements, since kPieceBytes is a multiple of any size.
std::vector<Piece> input_pieces(const HostData& data, const HostMemory& memory) {
  std::vector<Piece> pieces;
  for (int rank = data.first_rank(); rank < data.end_rank(); ++rank) {
    const Region region = input_region(data.program.contract, rank);
    if (region.units == 0) continue;
    const auto size = region_of(data, memory, rank, region).size();
    add_pieces(pieces, rank, static_cast<std::int64_t>(size), kPieceBytes);
  }
  return pieces;
}

std::span<std::byte> bytes_of(const HostData& data, const HostMemory& memory, const Piece& piece) {
  const Region region = input_region(data.program.contract, piece.rank);
  return region_of(data, memory, piece.rank, region)
      .subspan(static_cast<std::size_t>(piece.begin), static_cast<std::size_t>(piece.length));
}

void fill_piece(const HostData& data, const Piece& piece, std::span<std::byte> out) {
  fill_input(data.type, data.op, data.program.ranks(), piece.rank,
             piece.begin / element_bytes(data), out);
}

// Bytes of a unit, on average.
double unit_bytes(const HostData& data) {
  return static_cast<double>(data.layout.message_elements()) *
         static_cast<double>(element_bytes(data)) /
         static_cast<double>(data.program.contract.units);
}

// Units whose expected elements are made at a time: a piece's worth, or one unit where that is
// more.
std::int64_t units_at_a_time(const HostData& data) {
  const double pieces_per_unit = static_cast<double>(kPieceBytes) / std::max(unit_bytes(data), 1.0);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(pieces_per_unit));
}

std::int64_t count_different(const HostData& data, std::span<const std::byte> got,
                             std::span<const std::byte> expected) {
  if (std::ranges::equal(got, expected)) return 0;
  std::int64_t different = 0;
  const std::size_t size = size_of(data.type);
  for (std::size_t i = 0; i < got.size(); i += size) {
    if (std::memcmp(got.data() + i, expected.data() + i, size) != 0) ++different;
  }
  return different;
}

// Wrong elements by piece, as `wrong_in` counts them.
template <class WrongIn>
std::vector<std::int64_t> count_pieces(const HostData& data, const std::vector<Piece>& pieces,
                                       WrongIn&& wrong_in) {
  std::vector<std::int64_t> counts(pieces.size(), 0);
  parallel_for(static_cast<std::int64_t>(pieces.size()), data.threads, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    counts[at] = wrong_in(pieces[at]);
  });
  return counts;
}

// Whether every rank's result is the same, so that it is made once for all of them.
bool same_on_all_ranks(const Contract& contract) {
  return contract.collective == Collective::allreduce ||
         contract.collective == Collective::allgather ||
         contract.collective == Collective::broadcast;
}

std::int64_t wrong_results(const HostData& data, const HostMemory& memory) {
  const Contract& contract = data.program.contract;
  const bool same = same_on_all_ranks(contract);
  std::vector<Piece> pieces;
  const int pieces_end = same ? data.first_rank() + 1 : data.end_rank();
  for (int rank = data.first_rank(); rank < pieces_end; ++rank) {
    add_pieces(pieces, rank, output_region(contract, rank).units, units_at_a_time(data));
  }
  const auto counts = count_pieces(data, pieces, [&](const Piece& piece) {
    const auto got = [&](int rank) {
      const Region region = output_region(contract, rank);
      return region_of(data, memory, rank,
                       {region.buffer, region.begin + piece.begin, piece.length});
    };
    std::vector<std::byte> expected(got(piece.rank).size());
    expected_output(data.type, data.op, contract, data.layout, piece.rank, piece.begin,
                    piece.length, expected);
    std::int64_t wrong = 0;
    const int end = same ? data.end_rank() : piece.rank + 1;
    for (int rank = piece.rank; rank < end; ++rank) {
      wrong += count_different(data, got(rank), expected);
    }
    return wrong;
  });
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

void check_inputs(const HostData& data, const HostMemory& memory, Damage& damage) {
  const std::vector<Piece> pieces = input_pieces(data, memory);
  const auto counts = count_pieces(data, pieces, [&](const Piece& piece) {
    std::vector<std::byte> expected(static_cast<std::size_t>(piece.length));
    fill_piece(data, piece, expected);
    return count_different(data, bytes_of(data, memory, piece), expected);
  });
  for (std::size_t i = 0; i < pieces.size();) {
    const int rank = pieces[i].rank;
    std::int64_t wrong = 0;
    for (; i < pieces.size() && pieces[i].rank == rank; ++i) wrong += counts[i];
    add_input_damage(damage, rank, wrong);
  }
}

void check_guards(const HostData& data, const HostMemory& memory, Damage& damage) {
  for (PlaceId place = 0; place < data.program.places(); ++place) {
    for (const Buffer buffer : {Buffer::in, Buffer::out, Buffer::tmp}) {
      add_guard_damage(damage, data.program, place, buffer,
                       memory.damaged_guard_bytes(place, buffer), data.type);
    }
  }
}

}  // namespace

void fill_memory(const HostData& data, HostMemory& memory) {
  parallel_for(data.program.places(), data.threads, [&](std::int64_t place) {
    for (const Buffer buffer : {Buffer::in, Buffer::out, Buffer::tmp}) {
      memory.clear(static_cast<PlaceId>(place), buffer);
    }
  });
  fill_inputs(data, memory);
}

void fill_inputs(const HostData& data, HostMemory& memory) {
  const std::vector<Piece> pieces = input_pieces(data, memory);
  parallel_for(static_cast<std::int64_t>(pieces.size()), data.threads, [&](std::int64_t i) {
    const Piece& piece = pieces[static_cast<std::size_t>(i)];
    fill_piece(data, piece, bytes_of(data, memory, piece));
  });
}

LaneRunner::Combine combine_on(const HostData& data, const LanePrograms& lowered,
                               const HostMemory& memory) {
  std::vector<const std::byte*> sources;
  sources.reserve(lowered.sources.size());
  for (const BufferOffset& source : lowered.sources) sources.push_back(memory.at(source));
  return [&data, &lowered, &memory, sources = std::move(sources)](OpId id) {
    const Op& op = data.program.ops[id];
    const LoweredOp& target = lowered.ops[id];
    std::byte* const result = memory.at(target.dst);
    combine(data.type, data.op, result, std::span(sources).subspan(op.src_begin, op.src_count),
            target.elements);
    // What a switch stores to all of them.
    const auto bytes = static_cast<std::size_t>(target.elements) * size_of(data.type);
    for (const BufferOffset& copy : lowered.copies_of(op)) {
      if (bytes > 0) std::memcpy(memory.at(copy), result, bytes);
    }
  };
}

double check_scratch_bytes(const HostData& data) {
  return data.threads * std::max(unit_bytes(data), static_cast<double>(kPieceBytes));
}

Damage check_memory(const HostData& data, const HostMemory& memory) {
  Damage damage;
  damage.wrong = wrong_results(data, memory);
  if (!data.program.contract.in_place) check_inputs(data, memory, damage);
  check_guards(data, memory, damage);
  return damage;
}

}  // namespace espalier
