// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "formats/format.h"
#include "formats/msccl_algo.h"
#include "ir/access_tracker.h"

namespace espalier {

/// Writes steps one after the other in an order in which they can happen, with the dependencies
/// that the chunks they touch call for. Private to the room.
class MscclStepsWriter {
 public:
  MscclStepsWriter(const Program& program, const WritingOptions& options);

  /// `id`: what the caller calls it. Blocks of a GPU are added in the order of their numbers.
  void add_block(std::size_t id, PlaceId gpu, int lane, MscclAlgo::Block block);
  /// A step of thread block `id`; operands elsewhere describe the peer's.
  void add(std::size_t id, MscclAlgo::Kind kind, const Slice& src, const Slice& dst);
  /// Steps that copy or add up what lies at `dst.place`, from left to right, as one.
  void add_up(std::size_t id, const std::vector<Slice>& operands, const Slice& dst);
  MscclAlgo finish(int channels);

 private:
  struct Place {
    int gpu = 0;
    int block = 0;
  };
  /// Of a step: how far the steps of every thread block of its GPU have come when it ends.
  using Clock = std::vector<int>;
  struct Done {
    int block = 0;
    int step = 0;
  };

  struct Part {
    MscclAlgo::Kind kind;
    Slice src;
  };

  void append(std::size_t id, const std::vector<Part>& parts, const Slice& dst);
  MscclAlgo::Reference reference(const Slice& slice) const;
  void pack_scratch();
  std::vector<Done> conflicts(int gpu, const std::vector<Part>& parts, const Slice& dst);
  std::vector<Done> needed(const Place& at, const std::vector<Done>& before);
  void forget_overwritten(const Place& at, const Part& part, const Slice& dst,
                          const std::vector<Done>& before);
  void keep_apart(const Part& part, const Slice& dst, bool follows,
                  std::vector<MscclAlgo::Step>& steps) const;
  bool joined_to_last(const Place& at, MscclAlgo::Kind kind, const Slice& src);

  const Program& program_;
  MscclAlgo algo_;
  std::map<std::size_t, Place> places_;
  std::vector<std::map<std::int64_t, std::int64_t>> packed_;  ///< by place: tmp unit, scratch chunk
  AccessTracker accesses_;
  std::vector<std::pair<Place, int>> steps_;             ///< by number given to `accesses_`
  std::vector<std::vector<Clock>> known_;                ///< by GPU and block
  std::vector<std::vector<std::vector<Clock>>> clocks_;  ///< by GPU, block and step
};

}  // namespace espalier
