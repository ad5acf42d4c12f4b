// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/block_program.h"
#include "ir/program.h"
#include "ir/verify.h"

namespace espalier {

/// What the user of a file should know although it is no error.
struct ForeignNote {
  enum class Severity : std::uint8_t {
    remark,   ///< a guess, or what the file does beside what it says
    warning,  ///< its runtime would refuse it, hang or do something else, or that was not ruled out
  };
  std::string text;
  Severity severity = Severity::remark;
};
/// "note: ..." or "warning: ...", printable.
std::string render(const ForeignNote& note);

/// Adds to the first of the problems that the file does not name its root, and that of `tried`
/// ones out of `ranks`, `root` is the one for which the least is wrong.
void name_best_root(int root, int tried, int ranks, std::vector<Diagnostic>& problems);
/// Where to say that a file does another collective than its label says: first, or, where little is
/// wrong under the label, last, since that is rather a slip.
std::vector<Diagnostic>::const_iterator place_of_other_label(
    const std::vector<Diagnostic>& problems, const Contract& labelled);
/// Its chunks change their positions in the message, which units of a program can't.
ForeignNote note_moved_chunks();

/// A program in another program's file: what it does when the runtime it was written for carries it
/// out.
struct ForeignProgram {
  std::string facts;  ///< "MSCCL XML: allreduce in place, 8 ranks, 24 thread blocks of a GPU, ..."
  /// What is wrong with it: everything that `verify` knows, and deadlocks, races and other faults
  /// of the runtime's own means. Messages name GPU, thread block and step of the file.
  Verification verification;
  /// The same data movement for everybody else here, with the line of every op. Where the file is
  /// wrong or does no collective that Espalier knows (`has_program`), only its name, and the
  /// contract that the file claims to serve.
  Program program;
  bool has_program = false;
  // What the file says beside the program; empty and -1: nothing.
  std::string protocol;
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = -1;
  /// Its runtime takes it for messages of a multiple of so many elements and bytes.
  std::int64_t multiple_of_elements = 1;
  std::int64_t multiple_of_bytes = 1;
  std::vector<int> host_of_rank;  ///< which ranks share a computer; empty: it does not say
  /// How the runtime's thread blocks carry it out; null where that is not known.
  std::shared_ptr<const BlockProgram> blocks;
  std::vector<ForeignNote> notes;
};

/// The messages that a program's runtime uses it for, where this is not one of them: "messages from
/// 1KiB up to 1MiB"; nothing where it is. MSCCL's takes another algorithm then without a word,
/// MSCCL++'s ends with an error.
std::optional<std::string> not_among(const ForeignProgram& foreign, std::int64_t message_bytes,
                                     std::int64_t element_bytes);
/// "messages from 1KiB up to 1MiB", or nothing where the file says no such thing.
std::string range_of(const ForeignProgram& foreign);

}  // namespace espalier
