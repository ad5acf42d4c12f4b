// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_blocks.h"

#include <utility>
#include <vector>

namespace espalier {
namespace {

using Kind = MscclAlgo::Kind;

/// Reads and writes of the GPU's own memory, without what sending reads. A FIFO is read there.
int accesses_of(Kind kind) {
  const bool adds_to_destination = kind == Kind::re;
  return (receives(kind) ? 1 : 0) + (reads_source(kind) && kind != Kind::s ? 1 : 0) +
         (stores(kind) ? 1 : 0) + (adds_to_destination ? 1 : 0);
}

/// Whether the interpreter adds a sum up together with the one before it.
bool is_fused(const MscclAlgo::Step& before, const MscclAlgo::Step& step) {
  return before.kind == Kind::re && step.kind == Kind::re && step.block < 0 && !before.awaited &&
         before.count == step.count && before.dst.buffer == step.dst.buffer &&
         before.dst.offset == step.dst.offset && before.src.buffer == step.src.buffer;
}

/// Writes one thread block after the other.
class Writer {
 public:
  explicit Writer(const MscclSteps& steps) : steps_(steps) {
    index_.resize(static_cast<std::size_t>(steps.count()));
  }

  std::vector<BlockProgram::Block> blocks_of(int gpu) {
    std::vector<BlockProgram::Block> blocks;
    const auto& given = steps_.algo.gpus[static_cast<std::size_t>(gpu)].blocks;
    for (std::size_t block = 0; block < given.size(); ++block) {
      const MscclAlgo::Block& from = given[block];
      blocks.push_back({from.send, from.recv, from.channel, from.line, {}});
      add_steps(from, steps_.first[static_cast<std::size_t>(gpu)][block], blocks.back());
    }
    // Only now all steps of the GPU have their places.
    for (BlockProgram::Block& block : blocks) {
      for (BlockProgram::Step& step : block.steps) {
        for (BlockProgram::Awaited& one : step.awaits) {
          const auto id = static_cast<std::size_t>(one.step);
          one = {steps_.ids[id].block, index_[id]};
        }
      }
    }
    return blocks;
  }

 private:
  void add_steps(const MscclAlgo::Block& from, int first, BlockProgram::Block& block) {
    std::vector<BlockProgram::Awaited> awaits;
    for (std::size_t i = 0; i < from.steps.size(); ++i) {
      const MscclAlgo::Step& step = from.steps[i];
      const int id = first + static_cast<int>(i);
      // Numbers of steps of the whole file, until `blocks_of` knows their places.
      if (const int one = steps_.awaited(id); one >= 0) awaits.push_back({0, one});
      if (step.kind == Kind::nop) continue;
      if (i > 0 && is_fused(from.steps[i - 1], step)) {
        ++block.steps.back().accesses;
      } else {
        block.steps.push_back({std::string(to_string(step.kind)), static_cast<int>(i), step.line,
                               receives(step.kind), sends(step.kind), accesses_of(step.kind),
                               step.count, std::exchange(awaits, {})});
      }
      index_[static_cast<std::size_t>(id)] = static_cast<int>(block.steps.size()) - 1;
    }
  }

  const MscclSteps& steps_;
  std::vector<int> index_;  ///< by step: its place in its block
};

}  // namespace

std::shared_ptr<const BlockProgram> msccl_blocks(const MscclSteps& steps, const std::string& file) {
  const MscclAlgo& algo = steps.algo;
  auto made = std::make_shared<BlockProgram>();
  made->file = file;
  made->protocol = algo.protocol;
  made->chunks = algo.chunks;
  made->in_place = algo.in_place;
  made->out_of_place = algo.out_of_place;
  Writer writer(steps);
  for (int gpu = 0; gpu < algo.ranks(); ++gpu) made->gpus.push_back(writer.blocks_of(gpu));
  return made;
}

}  // namespace espalier
