// SPDX-License-Identifier: Apache-2.0
#include "planner/trees/branchings.h"

#include <algorithm>
#include <map>

#include "core/check.h"
#include "planner/graph/max_flow.h"
#include "planner/graph/work_budget.h"

namespace espalier {
namespace {

/// A set of ranks, for unions and comparisons of whole words.
class RankBits {
 public:
  explicit RankBits(int ranks = 0) : words_((static_cast<std::size_t>(ranks) + 63) / 64, 0) {}
  bool contains(int rank) const { return words_[word(rank)] >> (rank % 64) & 1U; }
  void insert(int rank) { words_[word(rank)] |= std::uint64_t{1} << (rank % 64); }
  RankBits common(const RankBits& other) const {
    RankBits result = *this;
    for (std::size_t i = 0; i < words_.size(); ++i) result.words_[i] &= other.words_[i];
    return result;
  }
  bool meets(const RankBits& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & other.words_[i]) != 0) return true;
    }
    return false;
  }
  bool operator<(const RankBits& other) const { return words_ < other.words_; }

 private:
  static std::size_t word(int rank) { return static_cast<std::size_t>(rank) / 64; }
  std::vector<std::uint64_t> words_;
};

/// Trees from one root that are alike so far.
struct Batch {
  Branching tree;
  RankBits reached;
  std::vector<int> level, next_level;  ///< ranks at the depth in the works, and below
  int missing = 0;                     ///< ranks not reached
  // Where growth is, so that trees split off go on there: an arc refused once stays refused.
  std::vector<int> heads;   ///< of the arcs from the rank being tried, best first
  std::size_t at = 0;       ///< of `level`
  std::size_t head_at = 0;  ///< of `heads`; 0: to be listed
};

class Packer {
 public:
  Packer(int ranks, std::vector<std::int64_t> trees, const Supply& supply, std::int64_t max_work)
      : ranks_(ranks), left_(std::move(trees)), budget_(max_work) {
    for (int root = 0; root < ranks; ++root) {
      if (supply[root] == 0) continue;
      Batch batch;
      batch.tree = {root, supply[root], {}};
      batch.reached = RankBits(ranks);
      batch.reached.insert(root);
      batch.level = {root};
      batch.missing = ranks - 1;
      batches_.push_back(std::move(batch));
    }
    heads_.resize(static_cast<std::size_t>(ranks));
    out_left_.assign(static_cast<std::size_t>(ranks), 0);
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (from == to || left(from, to) == 0) continue;
        heads_[from].push_back(to);
        out_left_[from] += left(from, to);
      }
    }
  }

  std::vector<Branching> run() {
    bool unfinished = ranks_ > 1;
    while (unfinished) {
      unfinished = false;
      // Batches that split off in the loop are reached by it.
      for (std::size_t i = 0; i < batches_.size(); ++i) {
        if (batches_[i].missing == 0) continue;
        if (budget_.is_spent()) {
          complete(batches_[i]);
          continue;
        }
        grow_level(i);
        Batch& batch = batches_[i];
        batch.level = std::move(batch.next_level);
        batch.next_level.clear();
        batch.at = 0;
        // An arc refused once would be refused for ever, so a level is never gone through again,
        // and as long as the trees exist a batch never runs out of levels.
        CHECK(batch.missing == 0 || !batch.level.empty() || budget_.is_spent());
        unfinished = unfinished || batch.missing > 0;
      }
    }
    std::vector<Branching> trees;
    for (Batch& batch : batches_) trees.push_back(std::move(batch.tree));
    std::stable_sort(trees.begin(), trees.end(),
                     [](const Branching& a, const Branching& b) { return a.root < b.root; });
    return trees;
  }

 private:
  std::int64_t& left(int from, int to) {
    return left_[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
                 static_cast<std::size_t>(to)];
  }

  void grow_level(std::size_t index) {
    for (; batches_[index].at < batches_[index].level.size(); ++batches_[index].at) {
      const int from = batches_[index].level[batches_[index].at];
      if (batches_[index].head_at == 0) list_heads(batches_[index], from);
      while (batches_[index].head_at < batches_[index].heads.size()) {
        const int to = batches_[index].heads[batches_[index].head_at++];
        if (batches_[index].reached.contains(to) || left(from, to) == 0) continue;
        if (const std::int64_t maximum = affordable(index, from, to); maximum > 0) {
          add_edge(index, from, to, maximum);
        }
        if (batches_[index].missing == 0 || budget_.is_spent()) return;
      }
      batches_[index].head_at = 0;
    }
  }

  /// Wide arcs first: they split the fewest batches.
  void list_heads(Batch& batch, int from) {
    batch.heads = heads_[from];
    std::stable_sort(batch.heads.begin(), batch.heads.end(),
                     [&](int a, int b) { return left(from, a) > left(from, b); });
  }

  void add_edge(std::size_t index, int from, int to, std::int64_t weight) {
    if (weight < batches_[index].tree.weight) {
      Batch rest = batches_[index];
      rest.tree.weight -= weight;
      batches_[index].tree.weight = weight;
      batches_.push_back(std::move(rest));
    }
    Batch& batch = batches_[index];
    batch.tree.edges.emplace_back(from, to);
    batch.reached.insert(to);
    --batch.missing;
    batch.next_level.push_back(to);
    left(from, to) -= weight;
    out_left_[from] -= weight;
  }

  /// Without asking whether that leaves room for others: the arcs with most left, or least
  /// overloaded.
  void complete(Batch& batch) {
    std::vector<int> reached{batch.tree.root};
    for (const auto& [from, to] : batch.tree.edges) reached.push_back(to);
    for (; batch.missing > 0; --batch.missing) {
      int best_from = -1, best_to = -1;
      for (const int from : reached) {
        for (const int to : heads_[from]) {
          if (batch.reached.contains(to)) continue;
          if (best_from >= 0 && left(from, to) <= left(best_from, best_to)) continue;
          best_from = from;
          best_to = to;
        }
      }
      CHECK(best_from >= 0);
      batch.tree.edges.emplace_back(best_from, best_to);
      batch.reached.insert(best_to);
      reached.push_back(best_to);
      left(best_from, best_to) -= batch.tree.weight;
    }
  }

  /// A set that as many arcs enter as batches still have to: whoever has been inside is kept out.
  bool is_shut_out(const Batch& batch, int from, int to) const {
    return std::any_of(tight_.begin(), tight_.end(), [&](const RankBits& set) {
      return set.contains(to) && !set.contains(from) && set.meets(batch.reached);
    });
  }

  /// How many trees of the batch can take the arc so that all the others can still be completed
  /// (Lovasz' proof of Edmonds' theorem): what flows from `from` and from the batches that miss
  /// `to` into `to`, beyond what these batches need.
  std::int64_t affordable(std::size_t index, int from, int to) {
    if (is_shut_out(batches_[index], from, to)) return 0;
    const std::int64_t wanted = std::min(batches_[index].tree.weight, left(from, to));
    const int size = static_cast<int>(batches_.size());
    // Batches that miss `to` are sources. Of the ranks they have reached only those matter from
    // which something can flow on; batches alike in that are one source.
    RankBits leads_on(ranks_);
    for (int tail = 0; tail < ranks_; ++tail) {
      if (tail != to && tail != from && out_left_[tail] > 0) leads_on.insert(tail);
    }
    std::map<RankBits, std::int64_t> sources;
    std::int64_t others = 0;
    for (int other = 0; other < size; ++other) {
      const Batch& batch = batches_[other];
      if (static_cast<std::size_t>(other) == index || batch.reached.contains(to)) continue;
      others += batch.tree.weight;
      sources[batch.reached.common(leads_on)] += batch.tree.weight;
    }
    flow_.clear(ranks_ + static_cast<int>(sources.size()));
    constexpr std::int64_t kArcsPerBatch = 8;
    budget_.spend(size * kArcsPerBatch);
    int source = ranks_;
    for (const auto& [ways, weight] : sources) {
      flow_.add(from, source, weight);
      for (int rank = 0; rank < ranks_; ++rank) {
        if (ways.contains(rank)) flow_.add(source, rank, weight);
      }
      budget_.spend(ranks_);
      ++source;
    }
    for (int tail = 0; tail < ranks_; ++tail) {
      if (tail == to) continue;
      budget_.spend(static_cast<std::int64_t>(heads_[tail].size()));
      for (const int head : heads_[tail]) {
        if (const std::int64_t units = left(tail, head); units > 0) flow_.add(tail, head, units);
      }
    }
    const std::int64_t maximum = flow_.run(from, to, others + wanted) - others;
    if (maximum < wanted) remember_tight_set(to, leads_on);
    return maximum;
  }

  /// The far side of the cut that stopped the last flow, without ranks that lead nowhere. It is
  /// tight once the arc is taken, and stays so.
  void remember_tight_set(int to, const RankBits& leads_on) {
    RankBits set(ranks_);
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!flow_.on_source_side(rank) && (rank == to || leads_on.contains(rank))) set.insert(rank);
    }
    tight_.push_back(std::move(set));
  }

  const int ranks_;
  std::vector<std::int64_t> left_;       ///< by from x ranks + to
  std::vector<std::vector<int>> heads_;  ///< by rank: where arcs lead
  std::vector<std::int64_t> out_left_;   ///< by rank
  std::vector<Batch> batches_;
  std::vector<RankBits> tight_;
  MaxFlow flow_;
  WorkBudget budget_;
};

}  // namespace

std::vector<Branching> pack_branchings(int ranks, std::vector<std::int64_t> trees,
                                       const Supply& supply, std::int64_t max_work) {
  const Activity activity("growing trees");
  return Packer(ranks, std::move(trees), supply, max_work).run();
}

}  // namespace espalier
