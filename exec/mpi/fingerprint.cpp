// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <type_traits>

#include "core/words.h"
#include "topologies/load.h"
#include "topologies/route.h"

namespace espalier {
namespace {

/// Mixes 64 bits at a time (the finalizer of splitmix64).
class Hash {
 public:
  template <class Number>
  void add(Number number) {
    static_assert(std::is_arithmetic_v<Number> || std::is_enum_v<Number>);
    if constexpr (std::is_floating_point_v<Number>) {
      mix(std::bit_cast<std::uint64_t>(static_cast<double>(number)));
    } else {
      mix(static_cast<std::uint64_t>(number));
    }
  }
  void add(std::string_view text) {
    add(text.size());
    for (; text.size() >= sizeof(std::uint64_t); text.remove_prefix(sizeof(std::uint64_t))) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data(), sizeof word);
      mix(word);
    }
    for (const char letter : text) mix(static_cast<unsigned char>(letter));
  }
  void add(const Operand& operand) {
    add(operand.place);
    add(operand.buffer);
    add(operand.begin);
  }
  std::uint64_t value() const { return state_; }

 private:
  void mix(std::uint64_t word) {
    state_ += word + 0x9E3779B97F4A7C15;
    state_ = (state_ ^ (state_ >> 30)) * 0xBF58476D1CE4E5B9;
    state_ = (state_ ^ (state_ >> 27)) * 0x94D049BB133111EB;
    state_ ^= state_ >> 31;
  }
  std::uint64_t state_ = 0;
};

std::uint64_t hash_of(const Program& program) {
  Hash hash;
  const Contract& contract = program.contract;
  hash.add(contract.collective);
  hash.add(contract.ranks);
  hash.add(contract.root);
  hash.add(contract.units);
  hash.add(contract.in_place);
  hash.add(program.hosts);
  hash.add(program.relays);
  for (const Op& op : program.ops) {
    hash.add(op.kind);
    hash.add(op.at);
    hash.add(op.lane);
    hash.add(op.length);
    hash.add(op.dst);
    hash.add(op.src_count);
    hash.add(op.copy_count);
    hash.add(op.dep_count);
  }
  for (const Operand& source : program.sources) hash.add(source);
  for (const OpId dependency : program.dependencies) hash.add(dependency);
  return hash.value();
}

std::uint64_t hash_of(const Target& target) {
  if (target.router == nullptr) return 0;
  Hash hash;
  Topology machine = target.router->topology();
  machine.hosts = 1;  // as one: every node and link of every host by its name
  hash.add(std::string_view(print_topology(machine)));
  for (const auto& nodes :
       {target.placement.ranks, target.placement.hosts, target.placement.relays}) {
    for (const NodeId node : nodes) hash.add(node);
  }
  return hash.value();
}

std::uint64_t hash_of(const RunOptions& options) {
  Hash hash;
  hash.add(options.size_bytes);
  hash.add(options.type);
  hash.add(options.op);
  hash.add(options.iterations);
  hash.add(options.warmup);
  hash.add(options.check);
  hash.add(options.timeline);
  return hash.value();
}

/// By a name that leads to the program itself even where another file has taken its place.
std::string file_of_this_code() {
  const auto here = reinterpret_cast<std::uintptr_t>(&file_of_this_code);
  const std::string program = "/proc/self/exe";
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    const bool is_range = std::sscanf(line.c_str(), "%zx-%zx", &begin, &end) == 2;
    if (!is_range || here < begin || here >= end) continue;
    const std::string file = line.substr(std::min(line.find('/'), line.size()));
    std::error_code none;
    return file == std::filesystem::read_symlink(program, none) || file.empty() ? program : file;
  }
  return program;
}

/// "rank 3", "ranks 3 and 5".
std::string name_ranks(const std::vector<std::string>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(ranks, ", ");
}

}  // namespace

Fingerprint fingerprint(const Program& program, const Target& target, const RunOptions& options,
                        std::uint64_t build, std::string_view memory) {
  return {hash_of(program), hash_of(target), hash_of(options), build, hash_bytes(memory)};
}

std::vector<std::string> disagreements(const std::vector<Fingerprint>& prints) {
  struct Part {
    const char* what;
    std::uint64_t Fingerprint::*hash;
  };
  static constexpr std::array kParts{
      Part{"another build of espalier", &Fingerprint::build},
      Part{"another topology", &Fingerprint::machine},
      Part{"another memory or transport", &Fingerprint::memory},
      Part{"another size, type, operator or number of runs", &Fingerprint::question},
      Part{"another program", &Fingerprint::program}};
  std::vector<std::string> sentences;
  for (const Part& part : kParts) {
    std::vector<std::string> ranks;
    for (std::size_t rank = 1; rank < prints.size(); ++rank) {
      if (prints[rank].*part.hash == prints[0].*part.hash) continue;
      ranks.push_back(fmt::format("{}", rank));
    }
    if (ranks.empty()) continue;
    sentences.push_back(fmt::format("{} {} {} than rank 0", name_ranks(ranks),
                                    ranks.size() == 1 ? "has" : "have", part.what));
  }
  return sentences;
}

std::uint64_t hash_bytes(std::string_view bytes) {
  Hash hash;
  hash.add(bytes);
  return hash.value();
}

std::uint64_t hash_of_build() {
  std::ifstream file(file_of_this_code(), std::ios::binary | std::ios::ate);
  if (!file) return 0;
  std::string bytes(static_cast<std::size_t>(file.tellg()), '\0');
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file ? hash_bytes(bytes) : 0;
}

}  // namespace espalier
