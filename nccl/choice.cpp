// SPDX-License-Identifier: Apache-2.0
#include "nccl/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace espalier {
namespace {

/// Whether NVLink joins all ranks directly or by switches.
bool is_joined_directly(const Router& router, const Placement& placement) {
  for (const NodeId from : placement.ranks) {
    for (const NodeId to : placement.ranks) {
      if (from == to) continue;
      const Route* const route = router.route(from, to);
      if (route == nullptr || route->kind != RouteKind::gpu_fabric) return false;
    }
  }
  return true;
}

bool asks_for_symmetric(const NcclCall& call) {
  return call.kernel || call.algorithm == NcclAlgorithm::symmetric;
}

/// Kernels over symmetric memory, where buffers are registered. NCCL does not compare them with its
/// tuner's choice: "the perf model accuracy from asymmetric kernels is too inaccurate", says
/// src/enqueue.cc of 2.27. Whether it takes one.
bool choose_symmetric(const NcclCall& call, const Router& router, const Placement& placement,
                      NcclChoice& made) {
  const bool is_other = call.algorithm && call.algorithm != NcclAlgorithm::symmetric;
  if (is_other && call.kernel) {
    made.why_not =
        fmt::format("kernel {} is none of {}", to_string(*call.kernel), to_string(*call.algorithm));
  }
  if (is_other || !(call.is_registered || asks_for_symmetric(call))) return false;
  const NcclSymmetricCall asked = {call.collective, call.bytes, made.version, call.kernel,
                                   call.channels};
  // Routes are only asked for where the question is not decided before.
  std::string& why = made.why_not_symmetric;
  why = why_no_symmetric(asked, made.machine, true);
  if (why.empty()) {
    why = why_no_symmetric(asked, made.machine, is_joined_directly(router, placement));
  }
  const NcclSymmetricCell* chosen = nullptr;
  if (why.empty()) {
    made.symmetric = nccl_symmetric_cells(asked, made.machine);
    chosen = chosen_symmetric(made.symmetric);
    if (chosen == nullptr) {
      const auto first = std::ranges::find_if(made.symmetric, [&](const NcclSymmetricCell& cell) {
        return !call.kernel || cell.kernel == *call.kernel;
      });
      why = fmt::format("{}: {}", to_string(first->kernel), first->why_not);
    }
  }
  const NcclProtocol own =
      chosen != nullptr && is_packets(chosen->kernel) ? NcclProtocol::ll : NcclProtocol::simple;
  if (chosen != nullptr && call.protocol && *call.protocol != own) {
    why = fmt::format("{} has {} only", to_string(chosen->kernel), to_string(own));
    chosen = nullptr;
  }
  if (chosen == nullptr) {
    if (asks_for_symmetric(call)) made.why_not = why;
    return false;
  }
  made.algorithm = NcclAlgorithm::symmetric;
  made.protocol = own;
  made.kernel = chosen->kernel;
  made.work = nccl_symmetric_work(asked, *chosen, made.machine);
  return true;
}

void choose_p2p(const NcclCall& call, NcclChoice& made) {
  made.algorithm = NcclAlgorithm::p2p;
  if (const int first = first_version_of(NcclAlgorithm::p2p); made.version < first) {
    made.why_not = fmt::format("sends and receives came with NCCL 2.{}", first);
    return;
  }
  if (call.algorithm && *call.algorithm != NcclAlgorithm::p2p) {
    made.why_not = fmt::format("NCCL makes {} of sends and receives, not of {}",
                               to_string(call.collective), to_string(*call.algorithm));
    return;
  }
  const double per_peer = nccl_p2p_bytes(call.collective, call.bytes, made.machine);
  const std::string why_no_ll = why_no_p2p_ll(made.machine, made.version);
  const bool is_ll =
      why_no_ll.empty() && per_peer <= nccl_p2p_ll_bytes(made.machine, made.graph, made.version);
  made.protocol = call.protocol.value_or(is_ll ? NcclProtocol::ll : NcclProtocol::simple);
  if (call.protocol == NcclProtocol::ll128) made.why_not = "sends and receives have no ll128";
  if (call.protocol == NcclProtocol::ll) made.why_not = why_no_ll;
}

bool is_asked_for(const NcclCall& call, const NcclCell& cell) {
  switch (cell.asked_for) {
    case NcclAskedFor::never:
      return false;
    case NcclAskedFor::by_algorithm:
      return call.algorithm.has_value();
    case NcclAskedFor::by_either:
      return call.algorithm || call.protocol;
  }
  return false;
}

void choose_cell(const NcclCall& call, NcclChoice& made) {
  if (call.algorithm == NcclAlgorithm::p2p) {
    made.why_not =
        fmt::format("NCCL does not make {} of sends and receives", to_string(call.collective));
    return;
  }
  made.cells = nccl_cells(call.collective, call.bytes, made.machine, made.graph, made.version);
  const NcclCell* best = nullptr;
  const NcclCell* ruled_out = nullptr;
  for (const NcclCell& cell : made.cells) {
    if (call.algorithm && cell.algorithm != *call.algorithm) continue;
    if (call.protocol && cell.protocol != *call.protocol) continue;
    if (!cell.why_not.empty() && !is_asked_for(call, cell)) {
      // The first: rings are what others would be instead of.
      const bool is_first = ruled_out == nullptr || ruled_out->why_not == kSimpleOnly;
      if (is_first) ruled_out = &cell;
      continue;
    }
    if (best == nullptr || cell.time_s < best->time_s) best = &cell;
  }
  if (best == nullptr) {
    made.why_not = fmt::format("{} cannot use {} with {} here ({})", made.library(),
                               to_string(ruled_out->algorithm), to_string(ruled_out->protocol),
                               ruled_out->why_not);
    return;
  }
  made.algorithm = best->algorithm;
  made.protocol = best->protocol;
}

/// What NCCL does not take of the numbers asked for.
std::string why_not_forced(const NcclCall& call, const NcclChoice& choice) {
  constexpr int kWarp = 32;
  const bool has_all = has_all_nccl_threads(choice.algorithm, choice.version);
  if (has_all && call.threads > 0 && call.threads != choice.work.threads) {
    return fmt::format("{} has {} threads for {} with {}, whatever NCCL_NTHREADS says",
                       choice.library(), choice.work.threads, to_string(choice.algorithm),
                       to_string(choice.protocol));
  }
  if (const int most = nccl_most_channels(choice.version); call.channels > most) {
    return fmt::format("{} has {} channels at most", choice.library(), most);
  }
  const int least = choice.protocol == NcclProtocol::ll128 ? 5 * kWarp : 2 * kWarp;
  const int most = std::max(choice.work.most_threads, choice.work.threads);
  const bool is_possible =
      call.threads % kWarp == 0 && call.threads >= least && call.threads <= most;
  if (call.threads == 0 || is_possible) return {};
  return fmt::format("NCCL's blocks have multiples of {} threads, from {} to {} with {}", kWarp,
                     least, most, to_string(choice.protocol));
}

NcclChoice choose(const NcclCall& call, const Router& router, const Placement& placement,
                  NcclSurvey& survey) {
  NcclChoice made;
  made.machine = survey.machine(router, placement);
  made.version = made.machine.is_amd ? kKnownRccl : call.version;
  made.graph = survey.graph(router, placement, made.version, call.pxn);
  if (!made.graph.why_not.empty()) {
    made.why_not = "no ring through all ranks: " + made.graph.why_not;
    return made;
  }
  const bool is_symmetric = choose_symmetric(call, router, placement, made);
  if (!made.why_not.empty()) return made;
  if (is_nccl_p2p(call.collective)) {
    choose_p2p(call, made);
  } else if (!is_symmetric) {
    choose_cell(call, made);
  }
  if (!made.why_not.empty()) return made;
  if (is_symmetric) {
    made.why_not = why_not_forced(call, made);
    if (made.why_not.empty() && call.threads > 0 && call.threads != made.work.threads) {
      made.why_not =
          fmt::format("blocks of kernels over symmetric memory have {} threads", made.work.threads);
    }
    return made;
  }
  made.work = nccl_work(call.collective, call.bytes, made.algorithm, made.protocol, made.machine,
                        made.graph, made.version);
  made.why_not = why_not_forced(call, made);
  if (call.channels > 0) made.work.channels = call.channels;
  if (call.threads > 0) made.work.threads = call.threads;
  return made;
}

}  // namespace

std::string NcclChoice::library() const {
  return fmt::format("{} {}", nccl_name(machine.is_amd), nccl_version_text(version));
}

std::string NcclChoice::note() const {
  if (machine.is_amd || version >= first_nccl_for(machine.newest_capability)) return {};
  return fmt::format("{} is older than these GPUs (sm{}): its rules for older ones are applied",
                     library(), machine.newest_capability);
}

bool is_nccl_p2p(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::gather ||
         collective == Collective::scatter || collective == Collective::sendrecv;
}

bool nccl_has_in_place(Collective collective) {
  return collective != Collective::alltoall && collective != Collective::sendrecv;
}

NcclChoice nccl_choice(const NcclCall& call, const Router& router, const Placement& placement) {
  NcclSurvey survey;
  return *nccl_choice(call, router, placement, survey);
}

std::shared_ptr<const NcclChoice> nccl_choice(const NcclCall& call, const Router& router,
                                              const Placement& placement, NcclSurvey& survey) {
  std::shared_ptr<const NcclAnswer> answer = survey.latest(router, placement);
  if (answer == nullptr || answer->call != call) {
    answer = std::make_shared<const NcclAnswer>(
        NcclAnswer{call, choose(call, router, placement, survey)});
    survey.keep(answer);
  }
  return {answer, &answer->choice};
}

}  // namespace espalier
