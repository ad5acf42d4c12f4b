// SPDX-License-Identifier: Apache-2.0
#include "algorithms/program_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/words.h"
#include "formats/format.h"
#include "ir/text.h"

namespace espalier {

namespace {

constexpr std::array<std::string_view, 3> kExtensions{".esp", ".xml", ".json"};

/// What may have been meant by the name of a file that is not there.
std::string suggestion_for(const std::string& path) {
  std::error_code ignored;
  const std::size_t colon = path.rfind(':');
  if (colon != std::string::npos &&
      std::filesystem::is_regular_file(path.substr(0, colon), ignored)) {
    return fmt::format("{} by itself: a program in a file has no parameters",
                       quote(path.substr(0, colon)));
  }
  const std::filesystem::path wanted(path);
  const std::filesystem::path folder = wanted.parent_path();
  std::vector<std::string> there;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    if (!ends_like_program(entry.path().filename().string())) continue;
    there.push_back((folder / entry.path().filename()).string());
  }
  std::ranges::sort(there);
  const std::string meant = nearest(path, there);
  return meant.empty() ? "espalier show ring > FILE writes a program to begin with"
                       : fmt::format("did you mean {}?", quote(meant));
}

/// Programs are read more than once in a run, which pipes can't be.
void require_regular(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) {
    throw Error(ErrorKind::usage, fmt::format("there is no program file {}", quote(path)),
                suggestion_for(path));
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw Error(ErrorKind::usage, fmt::format("{} is not a regular file", quote(path)),
                "save the program in a file first");
  }
}

void read_foreign(const Format& format, std::string_view text, ProgramFile& file) {
  ForeignProgram foreign = format.read_program({text, file.path});
  if (foreign.verification.ok() && !foreign.has_program) {
    const std::string why = foreign.notes.empty() ? "" : ": " + foreign.notes.back().text;
    throw Error(ErrorKind::unsupported, fmt::format("{} can't be run here{}", file.path, why));
  }
  file.program = std::move(foreign.program);
  foreign.program = {};
  file.foreign = std::move(foreign);
}

Algorithm record_of(const std::string& path, const Program& program) {
  return {
      .name = path,
      .summary = "a program in a file",
      .constraints = "what its header states",
      .paper = {},
      .collectives = {program.contract.collective},
      // Any program can be cut; whether it gains from that is for the search to find out.
      .pipelined = true,
      // Lanes have numbers for this alone, and saved plans count on it.
      .staggered = true,
      .uses_hosts = program.hosts > 0,
      .uses_relays = program.relays > 0,
      .max_ranks = kMaxPlaces,
  };
}

}  // namespace

bool ends_like_program(std::string_view name) {
  return std::ranges::any_of(kExtensions,
                             [&](std::string_view end) { return name.ends_with(end); });
}

bool is_program_file(std::string_view word) {
  const std::string_view name = word.substr(0, word.find(':'));
  if (find_algorithm(trim(name)) != nullptr) return false;
  return word.find('/') != std::string_view::npos || ends_like_program(word) ||
         ends_like_program(name);
}

std::shared_ptr<const ProgramFile> read_program_file(const std::string& path) {
  require_regular(path);
  return program_file_of(read_file(path), path);
}

std::shared_ptr<const ProgramFile> program_file_of(std::string_view text, const std::string& path) {
  auto file = std::make_shared<ProgramFile>();
  file->path = path;
  const Format* format = recognise_foreign(text, path);
  if (format != nullptr && format->read_program != nullptr) {
    read_foreign(*format, text, *file);
  } else if (format != nullptr) {
    throw Error(ErrorKind::usage,
                fmt::format("{} holds no program: it is {}", quote(path), format->title));
  } else {
    file->program = parse_program(text, path);
  }
  file->record = record_of(path, file->program);
  return file;
}

std::shared_ptr<const ProgramFile> program_file_of(Program program, const std::string& path) {
  auto file = std::make_shared<ProgramFile>();
  file->path = path;
  file->program = std::move(program);
  file->record = record_of(path, file->program);
  return file;
}

std::optional<std::string> mismatch(const ProgramFile& file, const BuildRequest& request) {
  const Contract& contract = file.program.contract;
  const HeaderLines& lines = file.program.header_lines;
  // A program that is in no file has no lines.
  const auto at = [&](int line) {
    return line > 0 ? fmt::format(" ({}:{})", file.path, line) : std::string();
  };
  if (contract.collective != request.collective) {
    return fmt::format("the program does {}{}, not {}", to_string(contract.collective),
                       at(lines.collective), to_string(request.collective));
  }
  if (contract.ranks != request.ranks) {
    return fmt::format("the program is for {} ranks{}, not for {}", contract.ranks, at(lines.ranks),
                       request.ranks);
  }
  if (info(contract.collective).rooted && contract.root != request.root) {
    return fmt::format("the program's root is rank {}{}, not rank {}", contract.root,
                       at(lines.collective), request.root);
  }
  if (contract.in_place && !request.in_place) {
    return fmt::format("the program works in place{}, not out of place", at(lines.in_place));
  }
  if (!contract.in_place && request.in_place) {
    return "the program works out of place, not in place";
  }
  if (request.placement == nullptr) return std::nullopt;
  if (file.program.hosts > request.hosts) {
    return fmt::format("the program has {} host {}{}, the machine {}", file.program.hosts,
                       file.program.hosts == 1 ? "memory" : "memories", at(lines.hosts),
                       request.hosts);
  }
  const std::size_t relays = request.placement->relays.size();
  if (static_cast<std::size_t>(file.program.relays) > relays) {
    return fmt::format("the program has {} {}{}, the question {}", file.program.relays,
                       file.program.relays == 1 ? "relay" : "relays", at(lines.relays), relays);
  }
  return std::nullopt;
}

Verification verify(const ProgramFile& file) {
  const bool is_wrong = file.foreign && !file.foreign->verification.ok();
  Verification verification = is_wrong ? file.foreign->verification : verify(file.program);
  for (Diagnostic& problem : verification.problems) problem.where.file = file.path;
  return verification;
}

}  // namespace espalier
