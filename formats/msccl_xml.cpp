// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/check.h"
#include "core/units.h"
#include "core/words.h"
#include "formats/format.h"
#include "formats/msccl_blocks.h"
#include "formats/msccl_buffers.h"
#include "formats/msccl_lowering.h"
#include "formats/msccl_program.h"
#include "formats/msccl_verify.h"
#include "formats/msccl_writer.h"

namespace espalier {
namespace {

/// Files in the wild have comments, or what a tool printed, before the XML.
constexpr std::size_t kLooksAt = 65536;

std::string facts_of(const MscclAlgo& algo) {
  std::size_t most = 0, steps = 0;
  for (const MscclAlgo::Gpu& gpu : algo.gpus) {
    most = std::max(most, gpu.blocks.size());
    for (const MscclAlgo::Block& block : gpu.blocks) steps += block.steps.size();
  }
  const auto number = [](auto count) { return static_cast<std::size_t>(count); };
  return fmt::format("{}, {} ({}), {}: {}, {}, {} of a GPU at most, {}", algo.name, algo.label,
                     algo.protocol, counted(number(algo.ranks()), "rank"),
                     counted(number(algo.chunks), "chunk"), counted(steps, "step"),
                     counted(most, "thread block"), counted(number(algo.channels), "channel"));
}

using Severity = ForeignNote::Severity;

/// A file that says it is for no messages so large never meets them.
void note_fifos(const MscclAlgo& algo, const MscclFifos& fifos, std::vector<ForeignNote>& notes) {
  if (!fifos.hangs_above_bytes) return;
  const bool is_met = algo.max_bytes < 0 || algo.max_bytes > *fifos.hangs_above_bytes;
  const std::string when =
      *fifos.hangs_above_bytes == 0
          ? fmt::format("it needs FIFOs of {} slots and hangs", fifos.least_slots)
          : fmt::format("it hangs with messages above {}", describe_size(*fifos.hangs_above_bytes));
  notes.push_back({fmt::format("{} where a connection has {}, as with protocol {} of RCCL", when,
                               fifos.slots, algo.protocol),
                   is_met ? Severity::warning : Severity::remark});
}

/// What runtimes have no room for. What only RCCL has no room for runs in the others.
void note_limits(const MscclAlgo& algo, std::vector<ForeignNote>& notes) {
  using Limits = MscclLimits;
  std::size_t blocks = 0, steps = 0;
  int awaited = 0;
  for (const MscclAlgo::Gpu& gpu : algo.gpus) {
    blocks = std::max(blocks, gpu.blocks.size());
    for (const MscclAlgo::Block& block : gpu.blocks) {
      steps = std::max(steps, block.steps.size());
      for (const MscclAlgo::Step& step : block.steps) awaited = std::max(awaited, step.block);
    }
  }
  const auto note = [&](std::size_t has, const char* of, int most, const char* who = "MSCCL") {
    if (has <= static_cast<std::size_t>(most)) return;
    const bool is_rccl = std::string_view(who) == "RCCL";
    notes.push_back({fmt::format("up to {} {}; {} takes {}", has, of, who, most),
                     is_rccl ? Severity::remark : Severity::warning});
  };
  note(blocks, "thread blocks of a GPU", Limits::kBlocksOfGpu);
  note(steps, "steps of a thread block", Limits::kStepsOfRccl, "RCCL");
  note(steps, "steps of a thread block", Limits::kStepsOfBlock);
  note(static_cast<std::size_t>(algo.channels), "channels", Limits::kChannels);
  note(static_cast<std::size_t>(awaited), "as the number of a thread block that others wait for",
       Limits::kLastAwaitedBlock);
}

ForeignProgram read(const FormatText& given) {
  ForeignProgram foreign;
  const MscclAlgo algo = parse_msccl(given.text, given.file, foreign.notes);
  foreign.facts = facts_of(algo);
  foreign.protocol = algo.protocol;
  foreign.min_bytes = algo.min_bytes;
  foreign.max_bytes = algo.max_bytes;
  foreign.multiple_of_elements = algo.chunks;
  const MscclSteps steps(algo);
  note_limits(algo, foreign.notes);
  MscclVerdict verdict = verify_msccl(steps, algo.in_place);
  if (algo.in_place && algo.out_of_place && verdict.verification.ok()) {
    const MscclVerdict apart = verify_msccl(steps, false);
    if (!apart.verification.ok()) verdict.verification = apart.verification;
  }
  foreign.verification = std::move(verdict.verification);
  foreign.program.name = algo.name;
  if (verdict.contract) foreign.program.contract = *verdict.contract;
  if (!foreign.verification.ok()) return foreign;
  const MscclFifos fifos = fifos_of(steps);
  note_fifos(algo, fifos, foreign.notes);
  if (!verdict.contract) {
    foreign.notes.push_back(
        {"its results were not compared: what it does is no collective of ours"});
    return foreign;
  }
  if (!msccl_collective(algo.label)) {
    foreign.notes.push_back({fmt::format("labelled {}; what it does is {}", algo.label,
                                         to_string(verdict.contract->collective)),
                             algo.label == "custom" ? Severity::remark : Severity::warning});
  }
  auto program = msccl_program(steps, *verdict.contract, fifos.least_slots);
  if (!program) {
    foreign.notes.push_back(note_moved_chunks());
    return foreign;
  }
  foreign.program = std::move(*program);
  foreign.has_program = true;
  foreign.blocks = msccl_blocks(steps, given.file);
  return foreign;
}

/// With what would make it fit.
[[noreturn]] void refuse(const std::string& what, std::size_t has, int most) {
  throw Error(ErrorKind::unsupported, fmt::format("{} {}, MSCCL takes {} at most", what, has, most),
              "fewer trees, lanes or channels make a smaller program: other parameters, as in "
              "nccl:channels=16, or another algorithm");
}

/// Every lane is a thread block or several. To find out what each of very many waits for takes
/// long.
void require_few_lanes(const Program& program) {
  std::map<PlaceId, std::set<int>> lanes;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::combine) lanes[op.at].insert(op.lane);
  }
  for (const auto& [gpu, of_gpu] : lanes) {
    if (of_gpu.size() <= MscclLimits::kBlocksOfGpu) continue;
    refuse(fmt::format("thread blocks of gpu {}:", gpu), of_gpu.size(), MscclLimits::kBlocksOfGpu);
  }
}

void require_limits(const MscclAlgo& algo) {
  using Limits = MscclLimits;
  if (algo.channels > Limits::kChannels) {
    refuse("channels:", static_cast<std::size_t>(algo.channels), Limits::kChannels);
  }
  for (int gpu = 0; gpu < algo.ranks(); ++gpu) {
    const auto& blocks = algo.gpus[static_cast<std::size_t>(gpu)].blocks;
    if (blocks.size() > Limits::kBlocksOfGpu) {
      refuse(fmt::format("thread blocks of gpu {}:", gpu), blocks.size(), Limits::kBlocksOfGpu);
    }
    if (algo.gpus[static_cast<std::size_t>(gpu)].scratch > Limits::kChunks) {
      refuse(fmt::format("chunks of scratch of gpu {}:", gpu),
             static_cast<std::size_t>(algo.gpus[static_cast<std::size_t>(gpu)].scratch),
             Limits::kChunks);
    }
    for (std::size_t id = 0; id < blocks.size(); ++id) {
      const auto& steps = blocks[id].steps;
      if (steps.size() > Limits::kStepsOfBlock) {
        refuse(fmt::format("steps of gpu {}, thread block {}:", gpu, id), steps.size(),
               Limits::kStepsOfBlock);
      }
      for (const MscclAlgo::Step& step : steps) {
        if (step.block <= Limits::kLastAwaitedBlock) continue;
        refuse(fmt::format("gpu {}, thread block {} waits for thread block", gpu, id),
               static_cast<std::size_t>(step.block), Limits::kLastAwaitedBlock);
      }
    }
  }
}

std::int64_t bytes_of_transfers(const Program& program, std::int64_t units) {
  std::int64_t moved = 0;
  for (const Op& op : program.ops) {
    for_each_transfer(program, op, [&](PlaceId, PlaceId) { moved += op.length; });
  }
  return moved * (units / program.contract.units);
}

/// What is written does what the program does, or nothing is written.
void require_same(const std::string& text, const Program& program,
                  std::vector<std::string>& notes) {
  const ForeignProgram back = read({text, "what was to be written"});
  CHECK(back.verification.ok() && back.has_program);
  const std::int64_t units = program.contract.units;
  CHECK(bytes_of_transfers(back.program, units) == bytes_of_transfers(program, units));
  CHECK(back.program.contract.collective == program.contract.collective);
  for (const ForeignNote& note : back.notes) notes.push_back(note.text);
}

/// Nobody is to call it for messages with which it hangs.
void keep_from_hanging(MscclAlgo& algo, std::vector<std::string>& notes) {
  const MscclFifos fifos = fifos_of(MscclSteps(algo));
  if (!fifos.hangs_above_bytes) return;
  const std::int64_t most = *fifos.hangs_above_bytes;
  if (most <= algo.min_bytes) {
    throw Error(ErrorKind::unsupported,
                fmt::format("it would hang: a connection needs {} slots, and protocol {} has {}",
                            fifos.least_slots, algo.protocol, fifos.slots),
                "another protocol, or another algorithm");
  }
  if (algo.max_bytes >= 0 && algo.max_bytes <= most) return;
  algo.max_bytes = most;
  notes.push_back(
      fmt::format("maxBytes is {}: it hangs with larger messages, which fill the {} "
                  "slots of a connection",
                  describe_size(most), fifos.slots));
}

/// Scratch beside the message, where there is more of it.
void note_scratch(const MscclAlgo& algo, std::vector<std::string>& notes) {
  int most = 0;
  for (const MscclAlgo::Gpu& gpu : algo.gpus) most = std::max(most, gpu.scratch);
  if (most <= algo.chunks) return;
  notes.push_back(fmt::format("scratch of a GPU is {:.1f} times the message",
                              static_cast<double>(most) / algo.chunks));
}

Written write(const Program& program, const WritingOptions& options) {
  if (program.ranks() == 1) {
    throw Error(ErrorKind::unsupported, "MSCCL has no algorithm for one GPU");
  }
  require_few_lanes(program);
  // Thread blocks that send and receive are half as many, but two that send to each other more than
  // a FIFO holds before they receive get stuck.
  MscclLowering lowered = lower_to_msccl(program, false);
  if (lowered.program.contract.units > MscclLimits::kChunks) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the message has {} chunks, MSCCL takes {} at most",
                            lowered.program.contract.units, MscclLimits::kChunks),
                "fewer units");
  }
  auto algo = write_msccl_steps(lowered.program, false, options);
  if (!algo || fifos_of(MscclSteps(*algo)).hangs_above_bytes) {
    lowered = lower_to_msccl(program, true);
    algo = write_msccl_steps(lowered.program, true, options);
    CHECK(algo);
  }
  Written written;
  keep_from_hanging(*algo, written.notes);
  require_limits(*algo);
  written.text = print_msccl(*algo);
  std::size_t most = 0;
  for (const MscclAlgo::Gpu& gpu : algo->gpus) most = std::max(most, gpu.blocks.size());
  written.notes.push_back(fmt::format(
      "{} of a GPU at most, {}{}", counted(most, "thread block"),
      counted(static_cast<std::size_t>(algo->channels), "channel"),
      algo->chunks == 1
          ? ""
          : fmt::format("; message sizes must be multiples of {} elements", algo->chunks)));
  note_scratch(*algo, written.notes);
  for (const std::string& change : lowered.changes) written.notes.push_back(change);
  written.is_reshaped = !lowered.changes.empty();
  require_same(written.text, program, written.notes);
  return written;
}

}  // namespace

const Format& msccl_xml_format() {
  static const Format format = {
      .name = "msccl-xml",
      .title = "algorithm XML of MSCCL, for NCCL's forks and RCCL (msccl-tools, TACCL, ...)",
      .extension = ".xml",
      .recognises =
          [](std::string_view text) {
            const std::string_view beginning = text.substr(0, kLooksAt);
            const std::size_t at = beginning.find("<algo");
            return at != std::string_view::npos && at + 5 < beginning.size() &&
                   std::string_view(" \t\r\n").find(beginning[at + 5]) != std::string_view::npos;
          },
      .read_program = read,
      .write_program = write,
      .needs_whole_chunks = true};
  return format;
}

}  // namespace espalier
