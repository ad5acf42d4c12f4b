// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/algorithm.h"
#include "formats/foreign_program.h"
#include "ir/program.h"
#include "ir/verify.h"

// A program in a file (docs/ir.md, "Text form") stands wherever an algorithm does. It serves the
// one contract that its header states. Whoever made it, it may be wrong: `verify` it before
// anything else is done with it.

namespace espalier {

struct ProgramFile {
  std::string path;  ///< as given
  Program program;
  Algorithm record;  ///< what there is to say of it as an algorithm; its name is the path
  /// Of a file in another program's format: what reading it showed, but for the program.
  std::optional<ForeignProgram> foreign = {};
};

/// Whether a name ends as those of files with programs do: ".esp", ".xml", ".json".
bool ends_like_program(std::string_view name);

/// Whether a word names a file rather than an algorithm: it has a slash or ends like a program,
/// with or without something behind a colon, and what stands before a colon is no algorithm's name.
/// Nothing is looked for on the disk.
bool is_program_file(std::string_view word);

/// Reads a program in the text form, or in a format of formats/ that has programs. Throws
/// Error{usage} when there is no such file, with what may have been meant, Error{input} with
/// everything that is wrong with the text, and Error{unsupported} when it does no collective that
/// can be asked for.
std::shared_ptr<const ProgramFile> read_program_file(const std::string& path);

/// The same of what a file would hold. `path`: its name, for messages. Throws as above.
std::shared_ptr<const ProgramFile> program_file_of(std::string_view text, const std::string& path);
/// A program that is in no file, as if it were in one.
std::shared_ptr<const ProgramFile> program_file_of(Program program, const std::string& path);

/// Why the program is not what is asked for, or nothing: collective, ranks, root, in place or not,
/// host memories and relays. Names the line of the file that says so.
std::optional<std::string> mismatch(const ProgramFile& file, const BuildRequest& request);

/// Rules R1 to R9, and for a file in another program's format what its runtime makes of it;
/// problems name the file beside the line.
Verification verify(const ProgramFile& file);

}  // namespace espalier
