// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "cli/text.h"
#include "cli/written_choices.h"
#include "core/check.h"
#include "core/file.h"
#include "core/units.h"
#include "core/words.h"
#include "formats/nccl_tuner.h"
#include "ir/print.h"
#include "nccl/choice.h"
#include "topologies/launch_costs.h"

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

/// How many channels NCCL itself would use for the row's algorithm and protocol: the plugin gives
/// it one where a row says nothing. -1 where NCCL could not do this here.
int nccl_channels(const TunerRow& row, const Outcome& choice, const Machine& machine,
                  const std::string& version) {
  if (choice.ranks < 2) return -1;
  NcclCall call;
  call.collective = row.collective;
  call.bytes = static_cast<double>(choice.report.message_bytes);
  call.version = nearest_nccl(library_version(version).value_or(kNewestNccl));
  const auto algorithm = std::ranges::find(all_nccl_algorithms(), row.algorithm,
                                           [](NcclAlgorithm one) { return to_string(one); });
  const auto protocol = std::ranges::find(all_nccl_protocols(), row.protocol,
                                          [](NcclProtocol one) { return to_string(one); });
  CHECK(algorithm != all_nccl_algorithms().end() && protocol != all_nccl_protocols().end());
  call.algorithm = *algorithm;
  call.protocol = *protocol;
  const NcclChoice made = nccl_choice(call, *machine.router, machine.placement);
  return made.why_not.empty() ? made.work.channels : -1;
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
    arguments.problem_of("--format", "unknown format " + quote(word),
                         fmt::format("yaml, or {0} (of NCCL {1}), or {0}:VERSION", kCsv, kNewest));
    return {};
  }
  return {true, name == word ? std::string(kNewest) : word.substr(name.size() + 1)};
}

int count_nodes(const Machine& machine) {
  std::set<int> nodes;
  for (const int host : writing_options(machine).host_of_rank) nodes.insert(host);
  return static_cast<int>(nodes.size());
}

bool is_of_nccl(std::string_view algorithm, Collective collective, int nodes,
                const TunerFormat& format) {
  const auto known = nccl_names().find(algorithm);
  // Across computers NCCL's NVLS is another algorithm, with trees or with the network's switches.
  return known != nccl_names().end() && (known->second != "nvls" || nodes == 1) &&
         nccl_has(known->second, collective, format.nccl_version);
}

std::string choices_csv(const std::vector<Outcome>& choices, const Machine& machine,
                        const TunerFormat& format) {
  const int nodes = count_nodes(machine);
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
    row.channels = nccl_channels(row, choice, machine, format.nccl_version);
    from = row.max_bytes + 1;
    const bool goes_on = !rows.empty() && rows.back().algorithm == row.algorithm &&
                         rows.back().protocol == row.protocol &&
                         rows.back().channels == row.channels;
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
