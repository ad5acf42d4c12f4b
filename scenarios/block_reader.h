// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/yaml.h"
#include "scenarios/reading.h"
#include "scenarios/study.h"
#include "topologies/topology.h"
#include "training/model.h"

// Private to the room.

namespace espalier {

/// Where questions of a block are asked.
struct Place {
  Query question;  ///< machine, GPUs, relays and profile beside all that the questions share
  int ranks = 0;   ///< 0: a problem hides it
  const Topology* machine = nullptr;  ///< the reader's; null: it does not load
};

/// Reads what blocks of all kinds have.
class BlockReader {
 public:
  /// A sweep beyond this is a mistake in the file rather than a question.
  static constexpr int kMaxQueries = 100'000;

  BlockReader(std::filesystem::path folder, DiagnosticList& problems)
      : folder_(std::move(folder)), problems_(problems) {}

  /// Every machine with every set of GPUs and every profile, in file order. Nothing, with a
  /// problem, when `questions` at each (a product that may be beyond any integer) are too many.
  std::vector<Place> read_places(YamlMap& map, Query question, double questions);

  /// The links and the chunk size.
  void read_transfers(YamlMap& map, Query& question) const;

  /// One or a list of sizes and ranges, each once.
  std::vector<std::int64_t> read_sizes(const YamlValue& values, const std::string& key) const;

  /// One or a list, each once; `usual` when there are none. A word is checked by `check`, which
  /// throws; paths of tuning tables count from the folder.
  using Check = std::function<void(const std::string& algorithm)>;
  std::vector<std::string> read_algorithms(const YamlValue& value, Collective collective,
                                           const std::vector<std::string>& usual,
                                           const Check& check) const;
  std::string read_algorithm(const YamlValue& value, const std::string& spec,
                             const Check& check) const;

  /// What `topology` of a query loads; null when it does not, which is a problem at `value` once.
  const Topology* load(const YamlValue& value, const std::string& topology);
  /// The same for a model; its path counts from the folder.
  std::shared_ptr<const Model> load_model(const YamlValue& value, const std::string& model);

  const std::filesystem::path& folder() const { return folder_; }

  template <class Read>
  auto located(const YamlValue& value, Read&& read) const {
    return read_located(value, problems_, std::forward<Read>(read));
  }

 private:
  struct GpuSet;
  struct RelaySet;

  static std::vector<GpuSet> read_gpu_sets(const YamlValue& value);
  static RelaySet read_relay_set(const YamlValue& value);
  void choose_gpus(const YamlValue& machine, const GpuSet& gpu_set, const RelaySet& relay_set,
                   Place& place) const;

  std::filesystem::path folder_;
  DiagnosticList& problems_;
  std::map<std::string, std::optional<Topology>> machines_;     ///< nothing: did not load
  std::map<std::string, std::shared_ptr<const Model>> models_;  ///< null: did not load
};

}  // namespace espalier
