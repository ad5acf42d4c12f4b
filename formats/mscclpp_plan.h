// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace espalier {

/// An execution plan of MSCCL++ as plain data, with every reference resolved: indices of a thread
/// block's channels and remote buffers are those of the GPU. Private to the room, as are all
/// headers of this name.
struct MscclppPlan {
  enum class Buffer : std::uint8_t { input, output, scratch };
  enum class Channel : std::uint8_t { none, memory, port, group };

  /// Chunks [index, index + size) of a buffer of `rank`, or of each rank of switch channel
  /// `group` of the GPU.
  struct Ref {
    enum class Access : std::uint8_t { local, remote, group };
    Access access = Access::local;
    Buffer buffer = Buffer::input;
    int rank = 0;
    int group = -1;
    std::int64_t index = 0;
    std::int64_t size = 0;
    bool operator==(const Ref&) const = default;
  };

  /// What an op does, apart from the form that its data take.
  enum class Kind : std::uint8_t {
    nop,
    barrier,
    sem_acquire,
    sem_release,
    signal,
    wait,
    flush,
    put,     ///< every source to the destination of the same number
    get,     ///< likewise
    spread,  ///< the one source to every destination (rppkt, gstore)
    copy,
    reduce,  ///< all sources into dst[0], and what it holds then to the other destinations
    switch_reduce,
    pipeline
  };

  /// What the fields of an op of a name may be.
  struct OpType {
    std::string_view name;
    Kind kind;
    Ref::Access source = Ref::Access::local;  ///< of all; of all but the first where it `reads`
    Ref::Access target = Ref::Access::local;  ///< of destinations beyond `local_targets`
    int local_targets = 0;
    bool reads = false;           ///< its first source is local, the others are `source`
    bool source_packets = false;  ///< its sources, all but the first of a reduce
    bool target_packets = false;  ///< destinations from the second on; of a copy or put all
    bool has_data = false;
    bool signals = false;  ///< a put that also signals
    bool flushes = false;
    bool relaxed = false;  ///< a signal or wait that promises no order of data
  };

  struct Op {
    const OpType* type = nullptr;
    Channel channel_type = Channel::none;
    std::vector<int> channels;  ///< of the GPU, of that type
    std::vector<Ref> sources;
    std::vector<Ref> targets;
    std::vector<int> semaphores;
    int barrier = 0;
    int barrier_blocks = 0;
    int slice = 0;  ///< of `slices`: this thread block's part of every reference
    int slices = 1;
    std::string reduce_op;
    std::int64_t unit_bytes = 0;   ///< of a pipeline
    std::int64_t unit_chunks = 0;  ///< of a pipeline
    std::vector<Op> body;          ///< of a pipeline
    int line = 0;                  ///< of the file
  };

  struct ThreadBlock {
    std::vector<Op> ops;
    std::array<int, 4> channels{};        ///< how many it has, by Channel
    std::array<int, 4> remote_buffers{};  ///< how many it refers to, by Channel
    int line = 0;                         ///< of the file
  };

  struct SwitchChannel {
    Buffer buffer = Buffer::input;
    std::vector<int> ranks;
  };

  struct Gpu {
    std::array<std::int64_t, 3> chunks{};  ///< by Buffer
    std::vector<ThreadBlock> blocks;
    std::array<std::vector<int>, 4> peers;  ///< of channels, by Channel: memory and port
    std::vector<SwitchChannel> groups;
    std::vector<std::int64_t> semaphores;  ///< initial values
  };

  std::string name;
  std::string collective;
  std::string protocol;
  bool in_place = false;
  bool reuse_resources = false;
  bool double_scratch = false;
  int threads = 1024;
  std::int64_t alignment = 16;
  std::uint64_t min_bytes = 0;
  std::uint64_t max_bytes = ~std::uint64_t{0};
  std::vector<Gpu> gpus;
  int line = 0;  ///< of the file
};

/// All names of ops that the reader of 2026 knows.
std::span<const MscclppPlan::OpType> mscclpp_op_types();
/// Null when there is none.
const MscclppPlan::OpType* find_mscclpp_op(std::string_view name);
/// "i", "o", "s".
std::string_view letter_of(MscclppPlan::Buffer buffer);
/// "none", "memory", "port", "switch".
std::string_view name_of(MscclppPlan::Channel channel);

/// What the numbers of a thread block's own tables stand for: channels of the GPU, by type, and
/// remote buffers, by the type of channel that reaches them; in the order of first use.
struct MscclppTables {
  struct Remote {
    int rank = 0;
    MscclppPlan::Buffer buffer = MscclppPlan::Buffer::input;
    auto operator<=>(const Remote&) const = default;
  };
  std::array<std::vector<int>, 4> channels;
  std::array<std::vector<Remote>, 4> buffers;
};
MscclppTables tables_of(const MscclppPlan::ThreadBlock& block);

/// The place of an op in a plan.
struct MscclppOpPlace {
  int gpu = 0;
  int block = 0;
  int op = 0;
  int inner = -1;  ///< in the body of a pipeline
  bool operator==(const MscclppOpPlace&) const = default;
};
/// "gpu 0, threadblock 1, op 2".
std::string describe(const MscclppOpPlace& place);

/// What a channel of a GPU leads to: the k-th channel of a type from a GPU to a peer and the k-th
/// from that peer to it are two ends of one (src/core/executor/executor.cc).
struct MscclppEnd {
  int gpu = -1;
  int channel = -1;  ///< -1: the peer has no such channel
};
/// By GPU and channel of the type.
std::vector<std::vector<MscclppEnd>> other_ends(const MscclppPlan& plan,
                                                MscclppPlan::Channel channel);

/// Which GPUs share a computer: memory channels and switches join those that do, port channels lead
/// to others.
struct MscclppHosts {
  std::vector<int> of_rank;  ///< empty where no port channel leads out of a computer
  /// Two GPUs that a port channel joins although they share a computer; equal: there are none.
  std::pair<int, int> same{0, 0};
};
MscclppHosts hosts_of(const MscclppPlan& plan);

}  // namespace espalier
