// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <pugixml.hpp>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace espalier {

/// A second opinion on MSCCL algorithms, which shares no code with the first: it carries out the
/// steps of a file on numbers, one step of a randomly chosen thread block after the other, and
/// compares the results. Every input has a random number of its own, so that wrong sums differ from
/// right ones; what nothing has written is a number that nothing else is.
class MscclMachine {
 public:
  /// \pre `text` is well-formed
  explicit MscclMachine(const std::string& text) {
    pugi::xml_document document;
    document.load_string(text.c_str());
    const pugi::xml_node algo = document.child("algo");
    label_ = algo.attribute("coll").value();
    chunks_ = algo.attribute("nchunksperloop").as_int();
    in_place_ = algo.attribute("inplace").as_int() == 1;
    for (const pugi::xml_node gpu : algo.children("gpu")) {
      std::vector<Block> blocks;
      for (const pugi::xml_node tb : gpu.children("tb")) {
        Block block{tb.attribute("send").as_int(),
                    tb.attribute("recv").as_int(),
                    tb.attribute("chan").as_int(),
                    {}};
        for (const pugi::xml_node step : tb.children("step")) {
          block.steps.push_back(
              {step.attribute("type").value(), *step.attribute("srcbuf").value(),
               *step.attribute("dstbuf").value(), step.attribute("srcoff").as_int(),
               step.attribute("dstoff").as_int(), step.attribute("cnt").as_int(),
               step.attribute("depid").as_int(), step.attribute("deps").as_int()});
        }
        blocks.push_back(std::move(block));
      }
      gpus_.push_back(std::move(blocks));
    }
  }

  /// Whether it runs to its end with FIFOs of `slots`, in a random order, and every result is
  /// right. Root: of a broadcast or reduction.
  bool is_right(std::size_t slots, int root, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    fill(random, root);
    std::vector<std::pair<std::size_t, std::size_t>> left;
    done_.assign(gpus_.size(), {});
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      done_[gpu].assign(gpus_[gpu].size(), 0);
      for (std::size_t block = 0; block < gpus_[gpu].size(); ++block) left.emplace_back(gpu, block);
    }
    fifos_.clear();
    std::vector<std::size_t> tried;
    while (!left.empty()) {
      const std::size_t at = random() % left.size();
      const auto [gpu, block] = left[at];
      if (done_[gpu][block] == gpus_[gpu][block].steps.size()) {
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      if (step(gpu, block, slots)) continue;
      // Stuck, when nobody can go on.
      bool any = false;
      for (const auto& [g, b] : left) {
        any = any || done_[g][b] == gpus_[g][b].steps.size() || step(g, b, slots);
        if (any) break;
      }
      if (!any) return false;
    }
    for (const auto& [connection, fifo] : fifos_) {
      if (!fifo.empty()) return false;
    }
    return results_are_right(root);
  }

 private:
  using Number = std::uint64_t;
  struct Step {
    std::string type;
    char src_buffer = 'i', dst_buffer = 'o';
    int src = 0, dst = 0, count = 0, block = -1, step = -1;
  };
  struct Block {
    int send = -1, recv = -1, channel = 0;
    std::vector<Step> steps;
  };

  int ranks() const { return static_cast<int>(gpus_.size()); }
  int per_rank() const { return chunks_ / ranks(); }
  bool gathers() const { return label_ == "allgather"; }
  bool scatters() const { return label_ == "reduce_scatter"; }

  Number& chunk(std::size_t gpu, char buffer, int offset) {
    const int first = static_cast<int>(gpu) * per_rank();
    if (in_place_ && buffer != 's') {
      const bool is_block = (buffer == 'i' && gathers()) || (buffer == 'o' && scatters());
      return memory_[{gpu, 'o', is_block ? first + offset : offset}];
    }
    const auto [entry, is_new] = memory_.try_emplace({gpu, buffer, offset}, 0);
    if (is_new) entry->second = garbage_ += 0x9e3779b97f4a7c15ULL;
    return entry->second;
  }

  void fill(std::mt19937_64& random, int root) {
    memory_.clear();
    inputs_.assign(gpus_.size(), {});
    const int inputs = gathers() ? per_rank() : chunks_;
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      if (label_ == "broadcast" && static_cast<int>(gpu) != root) continue;
      for (int i = 0; i < inputs; ++i) {
        inputs_[gpu].push_back(random());
        chunk(gpu, 'i', i) = inputs_[gpu].back();
      }
    }
    if (!in_place_) return;
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      for (int i = 0; i < chunks_; ++i) memory_.try_emplace({gpu, 'o', i}, random());
    }
  }

  bool step(std::size_t gpu, std::size_t id, std::size_t slots) {
    const Block& block = gpus_[gpu][id];
    const Step& one = block.steps[done_[gpu][id]];
    if (one.block >= 0 &&
        done_[gpu][static_cast<std::size_t>(one.block)] <= static_cast<std::size_t>(one.step)) {
      return false;
    }
    const bool receives = one.type[0] == 'r' && one.type != "re";
    const bool sends = one.type.back() == 's';
    auto& in = fifos_[{block.recv, static_cast<int>(gpu), block.channel}];
    auto& out = fifos_[{static_cast<int>(gpu), block.send, block.channel}];
    if ((receives && in.empty()) || (sends && out.size() >= slots)) return false;
    std::vector<Number> message;
    for (int i = 0; i < one.count; ++i) {
      const bool adds = one.type == "rrs" || one.type == "rrc" || one.type == "rrcs";
      Number value = receives ? in.front()[static_cast<std::size_t>(i)]
                              : chunk(gpu, one.src_buffer, one.src + i);
      if (adds) value += chunk(gpu, one.src_buffer, one.src + i);
      if (one.type == "re") value += chunk(gpu, one.dst_buffer, one.dst + i);
      if (one.type != "s" && one.type != "rrs") chunk(gpu, one.dst_buffer, one.dst + i) = value;
      message.push_back(value);
    }
    if (receives) in.pop_front();
    if (sends) out.push_back(std::move(message));
    ++done_[gpu][id];
    return true;
  }

  Number sum(int i) const {
    Number all = 0;
    for (const auto& input : inputs_) all += input[static_cast<std::size_t>(i)];
    return all;
  }

  bool results_are_right(int root) {
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      if (label_ == "reduce" && static_cast<int>(gpu) != root) continue;
      const int first = static_cast<int>(gpu) * per_rank();
      for (int i = 0; i < (scatters() ? per_rank() : chunks_); ++i) {
        const auto from = static_cast<std::size_t>(per_rank() > 0 ? i / per_rank() : 0);
        const auto within = static_cast<std::size_t>(per_rank() > 0 ? i % per_rank() : 0);
        const Number right =
            gathers()              ? inputs_[from][within]
            : scatters()           ? sum(first + i)
            : label_ == "alltoall" ? inputs_[from][static_cast<std::size_t>(first) + within]
            : label_ == "broadcast"
                ? inputs_[static_cast<std::size_t>(root)][static_cast<std::size_t>(i)]
                : sum(i);
        if (chunk(gpu, 'o', i) != right) return false;
      }
    }
    return true;
  }

  std::string label_;
  int chunks_ = 1;
  bool in_place_ = false;
  std::vector<std::vector<Block>> gpus_;
  std::vector<std::vector<std::size_t>> done_;  ///< steps, by GPU and thread block
  std::map<std::tuple<std::size_t, char, int>, Number> memory_;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<Number>>> fifos_;
  std::vector<std::vector<Number>> inputs_;
  Number garbage_ = 1;
};

}  // namespace espalier
