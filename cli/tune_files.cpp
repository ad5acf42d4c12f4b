// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "cli/text.h"
#include "core/file.h"
#include "core/units.h"
#include "core/words.h"
#include "formats/nccl_tuner.h"
#include "ir/print.h"

namespace espalier {
namespace {

constexpr std::string_view kCsv = "nccl-csv";
/// The newest version of NCCL whose tuner plugin was looked at.
constexpr std::string_view kNewest = "2.27";

/// What NCCL calls what we have of it.
const std::map<std::string_view, std::string_view>& nccl_names() {
  static const std::map<std::string_view, std::string_view> names = {
      {"nccl_rings", "ring"}, {"ring", "ring"}, {"double_binary_tree", "tree"}, {"nvls", "nvls"}};
  return names;
}

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
  double time_s = 0;  ///< simulated as it is written; 0: not known, or that of its row
};

/// For MSCCL: msccl_algos, which its runtime reads; for everybody: a list.
std::vector<File> selectors(const std::vector<File>& files, const TuningTable& table,
                            const ExportTarget& folder) {
  const bool is_own = folder.format == nullptr;
  std::string list =
      fmt::format("# {} on {}, {} ranks{}{}\n", to_string(table.collective), table.machine,
                  table.ranks, kChoicesColumns, is_own ? "" : ", us as it is written");
  const auto after = [&](const File& file) {
    if (is_own) return std::string();
    return file.time_s > 0 ? fmt::format(" {:.2f}", file.time_s * 1e6) : std::string(" -");
  };
  std::string config = "<msccl_algos>\n";
  std::int64_t from = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const TuningRow& row = table.rows[i];
    list += fmt::format("{} {} {} {} {:.2f}{}\n", from, row.up_to_bytes, files[i].name,
                        row.algorithm, row.time_s * 1e6, after(files[i]));
    config += fmt::format("  <load path=\"{}\" minbytes=\"{}\" maxbytes=\"{}\"/>\n", files[i].name,
                          from, row.up_to_bytes);
    from = row.up_to_bytes + 1;
  }
  std::vector<File> made{{"choices.txt", list}};
  const bool is_msccl = folder.format != nullptr && folder.format->name == "msccl-xml";
  if (is_msccl) made.push_back({"msccl_algos.xml", config + "</msccl_algos>\n"});
  return made;
}

}  // namespace

TunerFormat read_tuner_format(Arguments& arguments) {
  const std::string word = arguments.text("--format");
  const std::string name = word.substr(0, word.find(':'));
  if (name == "yaml" && name == word) return {};
  if (name != kCsv) {
    arguments.problem_of("--format", "unknown format " + quote(word),
                         fmt::format("yaml, or {0} (of NCCL {1}), or {0}:VERSION", kCsv, kNewest));
    return {};
  }
  return {true, name == word ? std::string(kNewest) : word.substr(name.size() + 1)};
}

bool is_of_nccl(std::string_view algorithm, int nodes, const TunerFormat& format) {
  const auto known = nccl_names().find(algorithm);
  // Across computers NCCL's NVLS is another algorithm, with trees or with the network's switches.
  return known != nccl_names().end() && (known->second != "nvls" || nodes == 1) &&
         nccl_has(known->second, format.nccl_version);
}

std::string choices_csv(const std::vector<Outcome>& choices, int nodes, const TunerFormat& format) {
  std::vector<TunerRow> rows;
  std::int64_t from = 0;
  for (const Outcome& choice : choices) {
    static const std::set<std::string> kProtocols{"simple", "ll", "ll128"};
    if (!kProtocols.contains(choice.protocol)) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("profile {} has no protocols of NCCL", choice.query.profile),
                  "--profile nccl");
    }
    TunerRow row;
    row.collective = choice.query.collective;
    row.min_bytes = from;
    row.max_bytes = choice.query.size_bytes;
    const std::string& algorithm = choice.query.algorithm;
    row.algorithm = nccl_names().at(algorithm.substr(0, algorithm.find(':')));
    row.protocol = choice.protocol;
    row.nodes = nodes;
    row.ranks = choice.ranks;
    from = row.max_bytes + 1;
    const bool goes_on = !rows.empty() && rows.back().algorithm == row.algorithm &&
                         rows.back().protocol == row.protocol;
    if (goes_on) {
      rows.back().max_bytes = row.max_bytes;
    } else {
      rows.push_back(row);
    }
  }
  rows.back().max_bytes = -1;
  return tuner_csv(rows, format.nccl_version);
}

void export_choices(const Console& console, const ExportTarget& folder, Study& study,
                    const TuningTable& table, const std::vector<Outcome>& choices) {
  const std::string extension = folder.format == nullptr ? ".esp" : folder.format->extension;
  std::vector<File> files;
  std::set<std::string> notes;
  DiagnosticList impossible;
  std::int64_t from = 0;
  for (const TuningRow& row : table.rows) {
    const auto choice = std::ranges::find_if(
        choices, [&](const Outcome& one) { return one.query.size_bytes == row.up_to_bytes; });
    WritingOptions options = writing_options(study.machine(choice->query));
    options.protocol = choice->protocol;
    options.min_bytes = from;
    options.max_bytes = row.up_to_bytes;
    const auto program = whole_program(study, *choice);
    try {
      const Written written =
          write_for_machine(*program, folder, study.machine(choice->query), options);
      files.push_back({file_name(row, from, table.collective, extension), written.text});
      if (folder.format != nullptr) {
        Query query = choice->query;
        query.size_bytes = row.up_to_bytes;
        const TimesOfWritten times = time_written(study, query, written, choice->report.time_s);
        files.back().time_s = times.after_s;
        notes.insert(fmt::format("{}: {}", files.back().name, describe(times)));
      }
      for (const std::string& note : written.notes) {
        notes.insert(fmt::format("{}: {}", files.back().name, note));
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      for (const Diagnostic& problem : error.diagnostics()) {
        impossible.add({},
                       fmt::format("up to {}, {}: {}", describe_size(row.up_to_bytes),
                                   row.algorithm, problem.message),
                       problem.suggestion);
      }
    }
    from = row.up_to_bytes + 1;
  }
  impossible.throw_if_any(ErrorKind::unsupported);
  const std::vector<File> lists = selectors(files, table, folder);
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
