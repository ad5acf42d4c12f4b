// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "formats/foreign_program.h"
#include "ir/program.h"
#include "scenarios/study.h"

namespace espalier {

/// What `verify` and `show` need to build programs: a machine, or only a number of ranks. A program
/// from a file is asked for as its header states, but for what was given.
struct ProgramRequest {
  std::optional<Machine> machine;
  int ranks = 0;
  std::optional<Collective> collective;  ///< nothing: whatever the algorithm serves
  int root = 0;
  bool in_place = false;
  bool ranks_given = false;
  bool root_given = false;
  std::int64_t chunks = 1;                 ///< pieces of the longest op
  std::optional<std::int64_t> size_bytes;  ///< for algorithms whose programs depend on it
};

/// Notes a problem if --gpus or --relay is given without a machine.
void refuse_gpus(Arguments& arguments);

/// Reads --relay for ranks on `gpus` of a machine, null when it is not known; notes problems and
/// then returns nothing.
std::optional<std::vector<int>> read_relays(Arguments& arguments, const Topology* machine,
                                            const std::vector<int>& gpus);

/// The options that `read_program_request` reads, between others of a verb.
std::vector<OptionUse> program_options(std::vector<OptionUse> before,
                                       const std::vector<OptionUse>& after);

/// The contract of the first program file among the `words` of --algorithm: what the command line
/// leaves open is as it says. Nothing when there is none or it can't be read, which is noted where
/// the words are read.
std::optional<Contract> contract_in(const std::vector<std::string>& words);

/// Reads --topology, --gpus, --relay, --ranks, --collective, --root, --in-place and --chunks; notes
/// problems.
ProgramRequest read_program_request(Arguments& arguments);

/// Notes a problem when the algorithm does not serve the collective asked for, if one is.
void require_served(Arguments& arguments, const AlgorithmChoice& choice,
                    std::optional<Collective> collective);

/// The collectives of the request that the algorithm serves: the one asked for, or all.
std::vector<Collective> served(const AlgorithmChoice& choice, const ProgramRequest& request);

/// Why the algorithm can't be built for this collective, or nothing.
std::optional<std::string> not_buildable(const AlgorithmChoice& choice, Collective collective,
                                         const ProgramRequest& request);

/// A program from a file that the verifier refuses is left whole. \pre `not_buildable` answered
/// nothing.
Program build_program(const AlgorithmChoice& choice, Collective collective,
                      const ProgramRequest& request);

/// One sentence for each file that is not meant for some of the sizes asked for.
std::vector<std::string> sizes_not_meant(Study& study, const std::vector<Query>& queries);

/// "protocol LL, messages from 1KiB up to 1MiB": what a file says beside its program.
std::string beside_program(const ForeignProgram& foreign);

}  // namespace espalier
