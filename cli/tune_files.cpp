// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "cli/text.h"
#include "cli/written_choices.h"
#include "core/file.h"
#include "core/units.h"
#include "core/words.h"
#include "ir/print.h"
#include "nccl/version.h"

namespace espalier {
namespace {

constexpr std::string_view kCsv = "nccl-csv";
std::string file_name(const TuningRow& row, std::int64_t from, Collective collective,
                      const std::string& extension) {
  std::string algorithm = row.algorithm;
  std::ranges::replace_if(
      algorithm, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '_'; },
      '-');
  return fmt::format("{}_{}-{}_{}{}", to_string(collective), from, row.up_to_bytes, algorithm,
                     extension);
}

struct File {
  std::string name;
  std::string text;
  double time_s = 0;            ///< simulated as it is written; 0: not known, or that of its row
  std::int64_t from_bytes = 0;  ///< of the smallest message that it is for
};

/// For MSCCL: msccl_algos, which its runtime reads; for everybody: a list.
std::vector<File> selectors(const std::vector<File>& files, const std::vector<TuningRow>& rows,
                            const TuningTable& table, const ExportTarget& folder) {
  const bool is_own = folder.format == nullptr;
  std::string list =
      fmt::format("# {} on {}, {} ranks{}{}\n", to_string(table.collective), table.machine,
                  table.ranks, kChoicesColumns, is_own ? "" : ", us as it is written");
  const auto after = [&](const File& file) {
    if (is_own) return std::string();
    return file.time_s > 0 ? fmt::format(" {:.2f}", file.time_s * 1e6) : std::string(" -");
  };
  std::string config = "<msccl_algos>\n";
  for (std::size_t i = 0; i < files.size(); ++i) {
    const TuningRow& row = rows[i];
    list += fmt::format("{} {} {} {} {:.2f}{}\n", files[i].from_bytes, row.up_to_bytes,
                        files[i].name, row.algorithm, row.time_s * 1e6, after(files[i]));
    config += fmt::format("  <load path=\"{}\" minbytes=\"{}\" maxbytes=\"{}\"/>\n", files[i].name,
                          files[i].from_bytes, row.up_to_bytes);
  }
  std::vector<File> made{{"choices.txt", list}};
  const bool is_msccl = folder.format != nullptr && folder.format->name == "msccl-xml";
  if (is_msccl) made.push_back({"msccl_algos.xml", config + "</msccl_algos>\n"});
  return made;
}

/// In our own format programs are as they were.
std::vector<std::optional<WrittenChoice>> as_chosen(Study& study,
                                                    const std::vector<Outcome>& choices) {
  std::vector<std::optional<WrittenChoice>> made;
  for (const Outcome& choice : choices) {
    made.push_back(WrittenChoice{choice,
                                 choice.query.algorithm,
                                 print_program(*whole_program(study, choice)),
                                 {choice.query.size_bytes, choice.report.time_s, 0, {}},
                                 {}});
  }
  return made;
}

/// What is written for a range of sizes.
struct WrittenRange {
  std::int64_t from_bytes = 0;
  WrittenChoice choice;  ///< for the largest of them
};

/// Neighbours for which the same is written are one range. Sizes for which nothing is are in none.
std::vector<WrittenRange> ranges_of(const std::vector<Outcome>& choices,
                                    const std::vector<std::optional<WrittenChoice>>& made) {
  std::vector<WrittenRange> ranges;
  std::int64_t from = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i]) {
      const bool goes_on = i > 0 && made[i - 1] && ranges.back().choice.text == made[i]->text;
      if (goes_on) {
        ranges.back().choice = *made[i];
      } else {
        ranges.push_back({from, *made[i]});
      }
    }
    from = choices[i].query.size_bytes + 1;
  }
  return ranges;
}

}  // namespace

TunerFormat read_tuner_format(Arguments& arguments) {
  const std::string word = arguments.text("--format");
  const std::string name = word.substr(0, word.find(':'));
  if (name == "yaml" && name == word) return {};
  if (name != kCsv) {
    arguments.problem_of(
        "--format", "unknown format " + quote(word),
        fmt::format("yaml, or {0} (of NCCL {1}), or {0}:VERSION", kCsv, kNewestTuner));
    return {};
  }
  const std::string version =
      name == word ? std::string(kNewestTuner) : word.substr(name.size() + 1);
  // Where ext-tuner/ came into NCCL's sources.
  constexpr int kFirstWithPlugins = 19;
  const auto asked = library_version(version);
  if (asked && *asked < nccl_library_version({kFirstWithPlugins})) {
    arguments.problem_of("--format", fmt::format("NCCL {} takes no tuner plugin", version),
                         fmt::format("2.{} is the first that does", kFirstWithPlugins));
  }
  return {true, version};
}

void export_choices(const Console& console, const ExportTarget& folder, Study& study,
                    const Tuning& tuning, const std::vector<Outcome>& choices) {
  const TuningTable& table = tuning.table;
  std::vector<Outcome> ran;
  std::ranges::copy_if(choices, std::back_inserter(ran), &Outcome::ran);
  WrittenChoices writer(folder, study);
  const auto made = folder.format == nullptr ? as_chosen(study, ran) : writer.choose(tuning, ran);
  const std::string extension = folder.format == nullptr ? ".esp" : folder.format->extension;
  std::vector<File> files;
  std::vector<TuningRow> rows;
  std::set<std::string> notes;
  for (const auto& [from, choice] : ranges_of(ran, made)) {
    rows.push_back({choice.times.size_bytes, choice.algorithm, 0, choice.times.before_s});
    const Written written = writer.write(choice.outcome, from, rows.back().up_to_bytes);
    files.push_back({file_name(rows.back(), from, table.collective, extension), written.text,
                     choice.times.after_s, from});
    const auto note = [&](const std::string& text) {
      notes.insert(fmt::format("{}: {}", files.back().name, text));
    };
    if (folder.format != nullptr) note(describe(choice.times));
    if (!choice.instead_of.empty()) {
      note(fmt::format("in place of {}, which is faster before it is written", choice.instead_of));
    }
    for (const std::string& text : written.notes) note(text);
  }
  std::vector<std::string> left;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (!made[i]) left.push_back(describe_size(ran[i].query.size_bytes));
  }
  if (!left.empty()) {
    notes.insert(fmt::format(
        "nothing is written for {}: its reader would use nothing that {} can hold, and does what "
        "it does by itself",
        join(left, ", "), folder.format->name));
  }
  const std::vector<File> lists = selectors(files, rows, table, folder);
  files.insert(files.end(), lists.begin(), lists.end());
  std::error_code failed;
  std::filesystem::create_directories(folder.path, failed);
  for (const File& file : files) {
    write_file((std::filesystem::path(folder.path) / file.name).string(), file.text);
  }
  for (const std::string& note : notes) say(console, "note: " + printable(note));
  say(console, fmt::format("wrote {} to {}", counted(files.size(), "file"), folder.path));
}

}  // namespace espalier
