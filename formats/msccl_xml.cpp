// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"
#include "core/units.h"
#include "core/words.h"
#include "formats/format.h"
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
  return fmt::format("{}, {} ({}), {} ranks: {} chunks, {} steps, {} of a GPU at most, {}",
                     algo.name, algo.label, algo.protocol, algo.ranks(), algo.chunks, steps,
                     counted(most, "thread block"),
                     counted(static_cast<std::size_t>(algo.channels), "channel"));
}

void note_fifos(const MscclAlgo& algo, const MscclFifos& fifos, std::vector<std::string>& notes) {
  if (!fifos.hangs_above_bytes) return;
  const std::string when =
      *fifos.hangs_above_bytes == 0
          ? fmt::format("it needs FIFOs of {} slots and hangs", fifos.least_slots)
          : fmt::format("it hangs with messages above {}", describe_size(*fifos.hangs_above_bytes));
  notes.push_back(fmt::format("{} where a connection has {}, as with protocol {} of the runtime",
                              when, fifos.slots, algo.protocol));
}

/// What the runtime has no room for.
void note_limits(const MscclSteps& steps, std::vector<std::string>& notes) {
  using Limits = MscclLimits;
  const auto note = [&](int gpu, std::size_t has, const char* of, int most) {
    notes.push_back(fmt::format("gpu {} has {} {}; MSCCL was made for {}", gpu, has, of, most));
  };
  for (int gpu = 0; gpu < steps.algo.ranks(); ++gpu) {
    const auto& blocks = steps.algo.gpus[static_cast<std::size_t>(gpu)].blocks;
    if (blocks.size() > Limits::kBlocksOfGpu) {
      note(gpu, blocks.size(), "thread blocks", Limits::kBlocksOfGpu);
      return;
    }
    for (const MscclAlgo::Block& block : blocks) {
      if (block.steps.size() <= Limits::kStepsOfBlock) continue;
      note(gpu, block.steps.size(), "steps in one thread block", Limits::kStepsOfBlock);
      return;
    }
  }
}

ForeignProgram read(const FormatText& given) {
  ForeignProgram foreign;
  const MscclAlgo algo = parse_msccl(given.text, given.file, foreign.notes);
  foreign.facts = facts_of(algo);
  const MscclSteps steps(algo);
  note_limits(steps, foreign.notes);
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
    foreign.notes.push_back("its results were not compared: what it does is no collective of ours");
    return foreign;
  }
  if (!msccl_collective(algo.label)) {
    foreign.notes.push_back(fmt::format("labelled {}; what it does is {}", algo.label,
                                        to_string(verdict.contract->collective)));
  }
  auto program = msccl_program(steps, *verdict.contract, fifos.least_slots);
  if (!program) {
    foreign.notes.push_back(
        "it takes chunks to other positions of the message, which only messages do that divide "
        "evenly: it can be verified, but not simulated");
    return foreign;
  }
  foreign.program = std::move(*program);
  foreign.has_program = true;
  return foreign;
}

/// With what would make it fit.
void require_limits(const MscclAlgo& algo) {
  using Limits = MscclLimits;
  const std::string knob =
      "fewer trees or lanes make a smaller program: other parameters, or another algorithm";
  const auto refuse = [&](const std::string& what, std::size_t has, int most) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} {}, MSCCL takes {} at most", what, has, most), knob);
  };
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
  for (const std::string& note : back.notes) notes.push_back(note);
}

Written write(const Program& program, const WritingOptions& options) {
  if (program.ranks() == 1) {
    throw Error(ErrorKind::unsupported, "MSCCL has no algorithm for one GPU");
  }
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
  require_limits(*algo);
  Written written;
  written.text = print_msccl(*algo);
  std::size_t most = 0;
  for (const MscclAlgo::Gpu& gpu : algo->gpus) most = std::max(most, gpu.blocks.size());
  written.notes.push_back(
      fmt::format("{} of a GPU at most, {}; message sizes must be multiples of {} elements",
                  counted(most, "thread block"),
                  counted(static_cast<std::size_t>(algo->channels), "channel"), algo->chunks));
  for (const std::string& change : lowered.changes) written.notes.push_back(change);
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
            return text.substr(0, kLooksAt).find("<algo ") != std::string_view::npos;
          },
      .read_program = read,
      .write_program = write};
  return format;
}

}  // namespace espalier
