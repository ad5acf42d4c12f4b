// SPDX-License-Identifier: Apache-2.0
// NCCL's own choice for this machine, collective and size, as the program that its kernels carry
// out: the room nccl/ has its rules, nccl_program.cpp the programs. On GPUs of AMD it stands for
// RCCL, whose search for rings and tuner are NCCL's with other constants.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "algorithms/machine_findings.h"
#include "algorithms/nccl_across_nodes.h"
#include "algorithms/nccl_program.h"
#include "algorithms/nccl_symmetric.h"
#include "algorithms/schedules.h"
#include "core/check.h"

namespace espalier {
namespace {

constexpr std::int64_t kOpen = -1;
constexpr const char* kPxn = "pxn";
constexpr std::int64_t kSymmetric = 1;  // `registered`
constexpr const char* kKernel = "kernel";
/// The profile of kernels over symmetric memory.
constexpr const char* kSymmetricRuntime = "nccl_symmetric";
/// What one rank copies for itself is no kernel of NCCL's but a cudaMemcpyAsync (ncclLaunchOneRank
/// of src/device/onerank.cu), and in place there is nothing to do.
constexpr const char* kCopyRuntime = "copy_engine";
/// A message whose size nobody gave.
constexpr std::int64_t kUsualBytes = 64 * 1024;

double bytes_of(const BuildRequest& request) {
  return static_cast<double>(request.size_bytes.value_or(kUsualBytes));
}

/// The version that was asked for, or else the newest.
NcclVersion version_of(const BuildRequest& request) {
  const std::int64_t version = request.parameter(kLibraryVersion);
  return version == kOpen ? NcclVersion{} : nearest_nccl(static_cast<int>(version));
}

NcclCall call_of(const BuildRequest& request) {
  NcclCall call;
  call.collective = request.collective;
  call.bytes = bytes_of(request);
  call.version = version_of(request);
  if (const std::int64_t algorithm = request.parameter("algo"); algorithm != kOpen) {
    call.algorithm = static_cast<NcclAlgorithm>(algorithm);
  }
  if (const std::int64_t protocol = request.parameter("proto"); protocol != kOpen) {
    call.protocol = static_cast<NcclProtocol>(protocol);
  }
  call.channels = static_cast<int>(request.parameter("channels"));
  call.threads = static_cast<int>(request.parameter("threads"));
  call.pxn = request.parameter(kPxn) != 0;
  call.is_registered = request.parameter(kLibraryBuffers) == kSymmetric;
  if (const std::int64_t kernel = request.parameter(kKernel); kernel != kOpen) {
    call.kernel = static_cast<NcclSymmetricKernel>(kernel);
  }
  return call;
}

std::shared_ptr<const NcclChoice> choice_of(const BuildRequest& request) {
  return nccl_choice(call_of(request), *request.router, *request.placement, *request.found->nccl);
}

Program build_nccl(const BuildRequest& request) {
  if (request.ranks == 1) {
    Builder builder("nccl", request.contract(1));
    keep_own(builder, 0, 0, 1, 0);
    return builder.finish();
  }
  const std::shared_ptr<const NcclChoice> choice = choice_of(request);
  if (std::string note = choice->note(); !note.empty()) request.notes->push_back(std::move(note));
  return nccl_program(request, bytes_of(request), *choice);
}

std::optional<std::string> why_not(const BuildRequest& request) {
  if (request.ranks == 1) return std::nullopt;
  if (request.in_place && !nccl_has_in_place(request.collective)) {
    return fmt::format("does not support {} in place", to_string(request.collective));
  }
  const std::shared_ptr<const NcclChoice> choice = choice_of(request);
  const bool is_given = request.parameter(kLibraryVersion) != kOpen;
  if (choice->machine.is_amd && is_given && version_of(request).minor != kKnownRccl.minor) {
    return fmt::format("is {} on AMD's GPUs, of which no other version is known",
                       choice->library());
  }
  if (choice->why_not.empty()) return std::nullopt;
  return choice->why_not;
}

double ops_of(const BuildRequest& request) {
  if (request.ranks == 1) return 1;
  return nccl_ops(request, bytes_of(request), *choice_of(request)) / request.fold.groups;
}

std::int64_t rounds_of(const BuildRequest& request) {
  if (request.ranks == 1) return 0;
  return nccl_rounds(request, bytes_of(request), *choice_of(request));
}

std::optional<std::string> recipe_of(const BuildRequest& request) {
  if (request.ranks == 1) return std::nullopt;
  const std::shared_ptr<const NcclChoice> choice = choice_of(request);
  if (!choice->note().empty()) return std::nullopt;
  return nccl_recipe(request, bytes_of(request), *choice);
}

std::vector<Fold> folds_of(const BuildRequest& request) {
  if (request.ranks == 1 || why_not(request)) return {};
  return nccl_folds(request, bytes_of(request), *choice_of(request));
}

/// Sends and receives have the channels of every peer, of which several may share a block.
int launched(const NcclChoice& choice) {
  if (choice.algorithm != NcclAlgorithm::p2p) return choice.work.channels;
  const int peers = std::max(1, choice.machine.ranks - 1);
  return std::min(nccl_p2p_blocks(choice.graph), choice.work.channels * peers);
}

/// Of a block's rate, what each of the lanes reaches that its threads are divided among.
double share_of_lane(const BuildRequest& request, const NcclChoice& choice) {
  switch (choice.algorithm) {
    case NcclAlgorithm::symmetric:
      return 1.0 / nccl_symmetric_lanes(request, choice);
    case NcclAlgorithm::tree:
      return nccl_tree_share(choice.protocol);
    default:
      return is_across_nodes(choice) ? 1.0 / kNcclStages : 1;
  }
}

/// A round of a ring has one op more than it has hops: under Simple what a rank begins with is
/// copied into its own FIFO where receivers read, and what comes last is copied, or added up, out
/// of it where senders write (the kernels of src/device). Chains have other ranks at their ends.
/// That of LL and LL128 is in their rates, which were fitted without it.
int ops_per_local(const BuildRequest& request, const NcclChoice& choice) {
  const bool is_round = choice.algorithm == NcclAlgorithm::ring &&
                        choice.protocol == NcclProtocol::simple && !info(request.collective).rooted;
  if (!is_round) return 0;
  const bool is_allreduce = request.collective == Collective::allreduce;
  return (is_allreduce ? 2 : 1) * (request.ranks - 1);
}

/// What one rank does by itself.
void copy_own(const BuildRequest& request, LibraryCall& made) {
  const bool is_launched = is_nccl_p2p(request.collective) && !request.in_place;
  const auto algorithm = is_launched ? NcclAlgorithm::p2p : NcclAlgorithm::ring;
  made.protocol = to_string(NcclProtocol::simple);
  made.parameters["algo"] = static_cast<std::int64_t>(algorithm);
  made.parameters["proto"] = static_cast<std::int64_t>(NcclProtocol::simple);
  made.parameters["channels"] = 1;
  if (!is_launched) made.runtime = kCopyRuntime;
}

LibraryCall call_library(const BuildRequest& request) {
  LibraryCall made;
  made.parameters = request.parameters;
  // What is not NCCL's choice, or not worth a word by default.
  if (request.parameter(kPxn) != 0) made.parameters.erase(kPxn);
  if (request.parameter(kLibraryBuffers) != kSymmetric) made.parameters.erase(kLibraryBuffers);
  made.parameters.erase(kKernel);
  const bool is_rccl =
      request.router != nullptr && is_amd(request.router->topology(), *request.placement);
  made.version = nccl_library_version(is_rccl ? kKnownRccl : version_of(request));
  // RCCL has but one.
  made.parameters.erase(kLibraryVersion);
  if (!is_rccl) made.parameters[kLibraryVersion] = made.version;
  if (request.ranks == 1) {
    copy_own(request, made);
    return made;
  }
  const std::shared_ptr<const NcclChoice> choice = choice_of(request);
  if (!choice->why_not.empty()) return made;
  made.protocol = to_string(choice->protocol);
  made.parameters["algo"] = static_cast<std::int64_t>(choice->algorithm);
  made.parameters["proto"] = static_cast<std::int64_t>(choice->protocol);
  made.parameters["channels"] = choice->work.channels;
  made.parameters["threads"] = choice->work.threads;
  // Ops in switches are cut by the profile where the program is not.
  const bool is_cut = choice->machine.nodes > 1 && choice->work.chunk_bytes > 0;
  const bool is_streamed = nccl_part_bytes(request.collective, choice->algorithm, choice->protocol,
                                           choice->work.threads) > 0;
  made.blocks = {
      .one_per_lane = true,
      .rate = share_of_lane(request, *choice) * choice->work.threads / choice->work.most_threads,
      .slices_per_op = choice->work.slices,
      .ops_per_local = ops_per_local(request, *choice),
      .ops_are_slices = is_cut,
      .streams = is_streamed,
      .launched = launched(*choice)};
  if (choice->algorithm == NcclAlgorithm::symmetric) {
    made.parameters[kKernel] = static_cast<std::int64_t>(choice->kernel);
    made.parameters[kLibraryBuffers] = kSymmetric;
    made.runtime = kSymmetricRuntime;
    made.blocks.rate *= nccl_symmetric_block_share(choice->kernel, choice->machine);
  }
  return made;
}

std::string explain_nccl(const BuildRequest& request) {
  if (request.ranks == 1) return "one rank: NCCL copies what it keeps, and does nothing in place\n";
  return explain(call_of(request), *choice_of(request));
}

template <class Value>
std::vector<AlgorithmParameter::Word> words_of(const std::vector<Value>& values) {
  std::vector<AlgorithmParameter::Word> words;
  for (const Value value : values) {
    words.push_back({std::string(to_string(value)), static_cast<std::int64_t>(value)});
  }
  return words;
}

std::vector<AlgorithmParameter::Word> versions() {
  std::vector<AlgorithmParameter::Word> words;
  for (const NcclVersion version : all_nccl_versions()) {
    words.push_back({nccl_version_text(version), nccl_library_version(version)});
  }
  return words;
}

std::vector<AlgorithmParameter> parameters() {
  const auto last = static_cast<std::int64_t>(all_nccl_algorithms().size()) - 1;
  const auto last_kernel = static_cast<std::int64_t>(all_nccl_symmetric_kernels().size()) - 1;
  std::vector<AlgorithmParameter> all = {
      {kLibraryVersion, "whose rules hold: 2.4 to 2.30; left out: the newest", kOpen, kOpen,
       nccl_library_version({kNewestNccl})},
      {"algo", "as NCCL_ALGO: ring, tree, nvls, ...; left out: NCCL's choice", kOpen, kOpen, last},
      {"proto", "as NCCL_PROTO: ll, ll128 or simple; left out: NCCL's choice", kOpen, kOpen, 2},
      {"channels", "as NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS; 0: NCCL's choice", 0, 0, 64},
      {"threads", "as NCCL_NTHREADS; 0: NCCL's choice", 0, 0, 640},
      {kPxn, "0 as NCCL_PXN_DISABLE=1: no data leaves a node through a neighbor's NIC", 1, 0, 1},
      {kLibraryBuffers, "whether buffers are symmetric windows: none, symmetric", 0, 0, kSymmetric},
      {kKernel, "over symmetric memory, as NCCL_SYM_KERNEL; left out: NCCL's choice", kOpen, kOpen,
       last_kernel}};
  const auto words = [&](std::string_view name) -> std::vector<AlgorithmParameter::Word>& {
    return std::ranges::find(all, name, &AlgorithmParameter::name)->words;
  };
  words(kLibraryVersion) = versions();
  words("algo") = words_of(all_nccl_algorithms());
  words("proto") = words_of(all_nccl_protocols());
  words(kLibraryBuffers) = {{"none", 0}, {"symmetric", kSymmetric}};
  words(kKernel) = words_of(all_nccl_symmetric_kernels());
  return all;
}

}  // namespace

const Algorithm& nccl_algorithm() {
  static const Algorithm algorithm = {
      .name = "nccl",
      .summary = "NCCL's own choice for the size: algorithm, protocol, channels, chunks",
      .constraints = "any number of ranks; needs a machine",
      .paper = "NVIDIA NCCL, src/graph/tuning.cc, src/enqueue.cc, src/device",
      .collectives = {Collective::allreduce, Collective::broadcast, Collective::reduce,
                      Collective::allgather, Collective::reducescatter, Collective::gather,
                      Collective::scatter, Collective::alltoall, Collective::sendrecv},
      .parameters = parameters(),
      .needs_machine = true,
      .max_ranks = kMaxLinearRanks,
      .unsupported = why_not,
      .ops = ops_of,
      .rounds = rounds_of,
      .recipe = recipe_of,
      .folds = folds_of,
      .build = build_nccl,
      .call = call_library,
      .explain = explain_nccl};
  return algorithm;
}

}  // namespace espalier
