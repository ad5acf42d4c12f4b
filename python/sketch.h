// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "ir/program.h"

namespace espalier {

/// Units of a buffer of a place, as an author names them. Relays are numbered after host memories,
/// whose number is known only when a sketch is finished, so places are named by kind and number.
struct SketchSlice {
  PlaceNumber place;
  Buffer buffer = Buffer::tmp;
  std::int64_t begin = 0;
  std::int64_t length = 0;
};

/// Blocks [first, first + count) of the message.
struct BlockRange {
  std::int64_t first = 0;
  std::int64_t count = 1;
};

/// What ops of a place have in common that share a lane: with whom they deal, as connections of
/// NCCL; or also which blocks, so that what goes to one place pipelines block by block. Which is
/// faster depends on the machine.
enum class LanesBy : std::uint8_t { peers, peers_and_blocks };

/// A program whose lines are numbers of the places that its author wrote its ops at, from 1.
struct SketchedProgram {
  Program program;                  ///< lanes by peers
  std::optional<Program> by_block;  ///< by peers and blocks, where that is not the same
  std::vector<Location> places;
};

/// A collective while an author writes it, in an order that would be right if ops ran one by one.
/// The message is divided into blocks, a unit each. Authors need not know where a place keeps a
/// block: every rank begins with the blocks of its input, what arrives goes into its result if the
/// block belongs there, and else into scratch. Dependencies follow from data flow (Builder), and
/// lanes from who deals with whom (LanesBy).
///
/// Ops remember where their author wrote them. What can't be an op, a block or a place is an
/// Error{usage}.
class Sketch {
 public:
  /// \pre the contract is possible (see Builder)
  Sketch(std::string name, const Contract& contract);

  const std::string& name() const { return name_; }
  const Contract& contract() const { return contract_; }
  /// The place, which there is from now on if it is a host memory or a relay.
  PlaceNumber place(PlaceKind kind, std::int64_t number);

  /// Where a rank has those blocks of its input or result, whatever was written since. For alltoall
  /// and sendrecv, where a block has another number at the other end, there is no other way.
  SketchSlice input(const PlaceNumber& rank, const BlockRange& blocks) const;
  SketchSlice output(const PlaceNumber& rank, const BlockRange& blocks) const;
  /// Room for those blocks beside what the sketch itself uses; `slot`: several of these.
  SketchSlice scratch(const PlaceNumber& place, const BlockRange& blocks, std::int64_t slot) const;

  /// What one place has of the blocks, to another.
  void copy(const PlaceNumber& from, const PlaceNumber& to, const BlockRange& blocks,
            const std::string& via, const Location& where);
  /// `to`'s blocks become the combination of its own and what `from` have of them, by one op. Where
  /// `to` has none yet, of these alone. Nothing where `from` is empty, which `to` must have then.
  void reduce(std::span<const PlaceNumber> from, const PlaceNumber& to, const BlockRange& blocks,
              const std::string& via, const Location& where);
  /// The same of slices. One source is a copy.
  void combine(const SketchSlice& to, std::vector<SketchSlice> sources, const std::string& via,
               const Location& where);
  /// In a switch, which adds up the sources and writes to all of `to` (Op::in_switch).
  void in_switch(std::vector<SketchSlice> to, std::vector<SketchSlice> sources,
                 const Location& where);

  std::size_t ops() const { return ops_.size(); }

  /// From now on there are no more ops and places: who asks for one is told.
  void close() { is_closed_ = true; }
  /// With copies of what ranks keep of their own input, where the author wrote none; `where` is
  /// what these say of themselves. \pre it is closed
  SketchedProgram finish(const Location& where);

 private:
  struct Op {
    std::vector<SketchSlice> to;
    std::vector<SketchSlice> sources;
    std::string via;
    bool in_switch = false;
    int line = 0;
  };
  /// Blocks of a rank's input or result: [first, first + region.units) of the message.
  struct Part {
    Region region;
    std::int64_t first = 0;
    bool has(std::int64_t block) const { return block >= first && block < first + region.units; }
  };

  Part part(const PlaceNumber& place, bool is_output) const;
  SketchSlice slice_of(const PlaceNumber& rank, const BlockRange& blocks, bool is_output) const;
  /// Where a place keeps a block that it was sent, and where it has one now.
  SketchSlice kept(const PlaceNumber& place, std::int64_t block) const;
  SketchSlice current(const PlaceNumber& place, std::int64_t block) const;
  bool has(const PlaceNumber& place, std::int64_t block) const;
  void require_open() const;
  void require_blocks(const BlockRange& blocks) const;
  void require_named_alike() const;
  void require_operands(const Op& op) const;
  void add(Op op);
  void add_kept_inputs(int line);
  bool is_written(const SketchSlice& unit) const;
  Program built(LanesBy by) const;
  int line_of(const Location& where);

  const std::string name_;
  const Contract contract_;
  bool is_closed_ = false;
  int hosts_ = 0;
  int relays_ = 0;
  std::vector<Op> ops_;
  std::vector<Location> places_;
  std::unordered_set<std::uint64_t> written_;  ///< units (unit_key) that ops write
};

}  // namespace espalier
