// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/foreign_program.h"
#include "ir/collective.h"

namespace espalier {

/// What an MSCCL algorithm file says, as plain data (msccl-tools msccl/language/ir.py writes it,
/// NCCL's fork and RCCL read it in src/graph/topo.cc and src/misc/msccl/msccl_parser.cc). A GPU has
/// thread blocks, a thread block steps, which it carries out one after the other. Private to the
/// room.
struct MscclAlgo {
  /// What a step does: receives, reduces, copies to its destination, sends.
  enum class Kind : std::uint8_t { s, r, rcs, rrs, rrc, rrcs, cpy, re, nop };

  struct Reference {
    char buffer = 'i';  ///< 'i', 'o' or 's'
    int offset = 0;     ///< chunks
  };

  struct Step {
    Kind kind = Kind::nop;
    Reference src;
    Reference dst;
    int count = 0;        ///< chunks
    int block = -1;       ///< the thread block of the same GPU that it waits for, or -1
    int step = -1;        ///< and its step
    bool awaited = true;  ///< `hasdep`: others wait for it, so that it says when it is done
    int line = 0;
  };

  struct Block {
    int send = -1;  ///< peer, or -1
    int recv = -1;
    int channel = 0;
    std::vector<Step> steps;
    int line = 0;
  };

  struct Gpu {
    int scratch = 0;  ///< chunks
    std::vector<Block> blocks;
    int line = 0;
  };

  std::string name;
  std::string protocol;  ///< "Simple", "LL", "LL128"
  std::string label;     ///< what `coll` says
  int channels = 1;
  int chunks = 1;  ///< of the larger one of input and output: `nchunksperloop`
  bool in_place = false;
  bool out_of_place = true;
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = -1;  ///< -1: no largest one
  std::vector<Gpu> gpus;
  int line = 0;

  int ranks() const { return static_cast<int>(gpus.size()); }
};

inline bool receives(MscclAlgo::Kind kind) {
  return kind >= MscclAlgo::Kind::r && kind <= MscclAlgo::Kind::rrcs;
}
inline bool sends(MscclAlgo::Kind kind) {
  using Kind = MscclAlgo::Kind;
  return kind == Kind::s || kind == Kind::rcs || kind == Kind::rrs || kind == Kind::rrcs;
}
/// Whether it adds `src` to something.
inline bool reduces(MscclAlgo::Kind kind) {
  using Kind = MscclAlgo::Kind;
  return kind == Kind::rrs || kind == Kind::rrc || kind == Kind::rrcs || kind == Kind::re;
}
/// Whether it reads `src`.
inline bool reads_source(MscclAlgo::Kind kind) {
  using Kind = MscclAlgo::Kind;
  return kind == Kind::s || kind == Kind::cpy || reduces(kind);
}
/// Whether it writes `dst`.
inline bool stores(MscclAlgo::Kind kind) {
  using Kind = MscclAlgo::Kind;
  return kind != Kind::s && kind != Kind::rrs && kind != Kind::nop;
}
std::string_view to_string(MscclAlgo::Kind kind);

/// Limits of the runtime (src/include/msccl.h).
struct MscclLimits {
  static constexpr int kStepsOfBlock = 256;
  static constexpr int kBlocksOfGpu = 216;
  static constexpr int kBlocksOfChannel = 32;  ///< that send, and that receive, of one GPU
  static constexpr int kChunksOfStep = 71;
  static constexpr int kChannels = 32;
  static constexpr int kStepsOfRccl = 64;        ///< of a thread block, in RCCL
  static constexpr int kLastAwaitedBlock = 127;  ///< numbers of thread blocks to wait for: int8
  static constexpr int kChunks = 32767;          ///< offsets: int16
};

/// "gpu 0, thread block 1, step 2 (rrc)".
std::string step_name(const MscclAlgo& algo, int gpu, int block, int step);

/// Throws Error{input} with everything that the runtime's reader would refuse, or that has no
/// meaning; `notes` gets what was left out, and what it would refuse although its meaning is clear.
MscclAlgo parse_msccl(std::string_view text, const std::string& file,
                      std::vector<ForeignNote>& notes);
/// What `parse_msccl` reads.
std::string print_msccl(const MscclAlgo& algo);

}  // namespace espalier
