// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/mscclpp_run.h"
#include "ir/program.h"

namespace espalier {

/// The contracts that a plan's buffers fit, the one it is labelled with first; none fits when the
/// label is no collective of ours or the chunk counts are not the collective's. Rooted collectives
/// come with root 0.
struct MscclppContracts {
  std::optional<Contract> labelled;
  std::string misfit;  ///< why there is no `labelled`
  std::vector<Contract> others;
};
MscclppContracts mscclpp_contracts(const MscclppPlan& plan, std::int64_t split);

/// Chunks of MSCCL++ are equally large, so any may be copied to any. Elements of our units are
/// balanced, so only units at the same place of a block may (docs/ir.md, R4). Scratch that holds
/// now one, now another is therefore laid out several times, once for each shift.
struct MscclppLayout {
  Program program;
  bool scratch_is_shared = false;  ///< one chunk of scratch stands in several places of `program`
};
MscclppLayout lay_out(const MscclppPlan& plan, const MscclppRun& run, const Contract& contract);
/// With scratch where the plan has it: right where units are equally large, as its chunks are
/// (VerifyOptions::equal_units).
Program lay_out_equal(const MscclppPlan& plan, const MscclppRun& run, const Contract& contract);

/// The same moves under a contract that promises something else, for which buffers are where the
/// plan has them and every unit is a block: order and races are those of the plan itself, results
/// mean nothing. In place, `contract` says where inputs and outputs are in their buffer; without
/// one, they begin at its start. Nothing when it would be too large.
std::optional<Program> lay_out_as_is(const MscclppPlan& plan, const MscclppRun& run,
                                     const std::optional<Contract>& contract);

/// What a plan calls a slice of a program that `lay_out_equal` or `lay_out_as_is` made of it:
/// "s[1] of gpu 2", in chunks of `split` units.
std::string mscclpp_name(const Slice& slice, const std::optional<Contract>& contract,
                         std::int64_t split);

}  // namespace espalier
