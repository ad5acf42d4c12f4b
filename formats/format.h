// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/foreign_program.h"
#include "topologies/topology.h"

namespace espalier {

struct MeasuredTables;

/// What a reader is given of a machine.
struct MachineText {
  std::string_view text;
  std::string file;              ///< for messages
  const Topology* as = nullptr;  ///< a machine that fills in what the text leaves out, or none
};

/// What a reader is given of anything else.
struct FormatText {
  std::string_view text;
  std::string file;  ///< for messages
};

/// What a writer is given of a program beside itself.
struct WritingOptions {
  std::string protocol;           ///< "Simple", "LL", "LL128"; empty: the format's for bulk data
  std::int64_t min_bytes = 0;     ///< message sizes that the program is meant for
  std::int64_t max_bytes = -1;    ///< -1: no largest one
  std::vector<int> host_of_rank;  ///< which ranks share a computer; empty: all do
  int multiprocessors = 0;        ///< of the GPU that has the fewest; 0: not known
  bool for_amd = false;           ///< GPUs are AMD's, whose libraries have words of their own
};

/// What a writer made: text, and what its reader should know ("thread blocks: ...").
struct Written {
  std::string text;
  std::vector<std::string> notes;
  /// Ops were staged, divided or put on other lanes, so that it may take another time.
  bool is_reshaped = false;
};

/// A format of files, made for or by other programs. One record per file in formats/. What a format
/// can't do is null.
struct Format {
  std::string name;            ///< "nccl-topology"
  std::string title;           ///< one line: what it is and who writes or reads it
  std::string extension = "";  ///< of files that are written: ".xml"
  /// Whether a text looks like this format: looks at its beginning, and is wrong about no other
  /// format's files. Null: it is only written.
  bool (*recognises)(std::string_view text) = nullptr;
  /// Makes a machine, with what it had to guess in Topology::notes. Throws Error{input} with
  /// everything that is wrong with the text, line by line.
  Topology (*read_machine)(const MachineText& text) = nullptr;
  /// Throws Error{input} likewise where the text is no program; a program that is wrong is no
  /// error, but has the reasons in its verification.
  ForeignProgram (*read_program)(const FormatText& text) = nullptr;
  /// Measured times or rates. Throws Error{input} likewise.
  MeasuredTables (*read_tables)(const FormatText& text) = nullptr;
  /// Throw Error{unsupported} with everything that the format can't say, and what would help.
  Written (*write_machine)(const Topology& machine) = nullptr;
  Written (*write_program)(const Program& program, const WritingOptions& options) = nullptr;
  /// Whoever reads a program that was written repeats it side by side as is good for the machine.
  bool is_repeated_by_reader = false;
  /// Whoever reads a program uses it only for messages that divide into its chunks. Most messages
  /// are multiples of large powers of two.
  bool needs_whole_chunks = false;
};

/// Every format, by name. Made from the files of the folder by CMake.
const std::vector<const Format*>& all_formats();
/// The format of a text, or null.
const Format* recognise(std::string_view text);
/// What a text may be that is in no format of others: a program in the text form, or a machine as
/// YAML.
enum class OwnForm : std::uint8_t { program, machine };
/// The same for a text that may otherwise be in a form of our own; null for that. Throws
/// Error{input} for one that can't be: it is empty, XML or JSON of another kind, or has no line
/// that such a text begins with, unless the file's name says that it is one.
const Format* recognise_foreign(std::string_view text, const std::string& file,
                                OwnForm own = OwnForm::program);

}  // namespace espalier
