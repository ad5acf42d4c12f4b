// SPDX-License-Identifier: Apache-2.0
#include "scenarios/tuning_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/check.h"
#include "core/units.h"
#include "core/words.h"
#include "ir/program.h"
#include "scenarios/chooser.h"
#include "scenarios/reading.h"

namespace espalier {

namespace {

constexpr std::string_view kSchema = "espalier.tuning/1";

/// "16KiB" when that says all of it, otherwise bytes.
std::string size_text(std::int64_t bytes) {
  const std::string text = format_bytes(bytes);
  return bytes % 1024 == 0 && bytes > 0 && parse_bytes(text) == bytes ? text
                                                                      : fmt::format("{}", bytes);
}

class TuningReader {
 public:
  TuningReader(std::string folder, DiagnosticList& problems)
      : folder_(std::move(folder)), problems_(problems) {}

  TuningTable read(const YamlValue& document) {
    TuningTable table;
    if (!document.present()) return table;
    YamlMap map(document, "a tuning table");
    const YamlValue schema = map.need("schema");
    if (const auto text = schema.text("schema"); text && *text != kSchema) {
      schema.problem(fmt::format("unknown schema {}", quote(*text)), std::string(kSchema));
    }
    read_machine(map, table);
    const YamlValue collective = map.need("collective");
    table.collective = read_collective(collective);
    read_root(map.get("root"), table);
    table.profile = map.need("profile").text("profile").value_or("");
    table.links = read_links(map.get("links"));
    table.in_place = map.boolean("in_place", false);
    const YamlValue rows = map.need("rows");
    map.finish();
    for (const YamlValue& row : rows.items("rows")) read_row(row, table);
    if (rows.kind() == YamlValue::Kind::list && table.rows.empty()) {
      rows.problem("a tuning table needs at least one row");
    }
    return table;
  }

 private:
  void read_machine(YamlMap& map, TuningTable& table) {
    table.machine = map.need("machine").text("machine").value_or("");
    const YamlValue ranks = map.need("ranks");
    if (const auto number = ranks.integer("ranks")) {
      if (*number < 1 || *number > kMaxPlaces) {
        ranks.problem(fmt::format("{} ranks are not possible", *number),
                      fmt::format("1 to {}", kMaxPlaces));
      } else {
        table.ranks = static_cast<int>(*number);
      }
    }
    read_relays(map.get("relay"), table);
    const YamlValue gpus = map.get("gpus");
    const auto text = gpus.text("gpus");
    if (!text || *text == "all") return;
    const auto numbers = parse_int_list(*text);
    if (!numbers || numbers->empty()) {
      gpus.problem(fmt::format("{} is not a set of GPUs", quote(*text)),
                   "all, or numbers and ranges such as 0-3,6");
    } else if (static_cast<int>(numbers->size()) != table.ranks) {
      gpus.problem(fmt::format("{} GPUs cannot be {} ranks", numbers->size(), table.ranks));
    } else {
      table.gpus = *numbers;
    }
  }

  void read_relays(const YamlValue& relay, TuningTable& table) {
    const auto text = relay.text("relay");
    if (!text) return;
    const auto numbers = parse_int_list(*text);
    if (!numbers || numbers->empty()) {
      relay.problem(fmt::format("{} is not a set of GPUs", quote(*text)),
                    "numbers and ranges such as 4-7");
    } else {
      table.relays = *numbers;
    }
  }

  void read_root(const YamlValue& root, TuningTable& table) {
    const auto number = root.integer("root");
    if (!number) return;
    if (!info(table.collective).rooted) {
      root.problem(fmt::format("{} has no root", to_string(table.collective)));
    } else if (*number < 0 || *number >= table.ranks) {
      root.problem(fmt::format("root {} is not one of the {} ranks", *number, table.ranks));
    } else {
      table.root = static_cast<int>(*number);
    }
  }

  std::int64_t read_size(const YamlValue& value, const std::string& what,
                         const std::string& suggestion) {
    const auto text = value.text(what);
    if (!text) return 0;
    const auto bytes = parse_bytes(*text);
    if (!bytes) value.problem(fmt::format("{} is not a {}", quote(*text), what), suggestion);
    return bytes.value_or(0);
  }

  void read_row(const YamlValue& value, TuningTable& table) {
    TuningRow row;
    YamlMap map(value, "a row");
    const YamlValue up_to = map.need("up_to");
    row.up_to_bytes = read_size(up_to, "size", "such as 64MiB");
    if (!table.rows.empty() && row.up_to_bytes <= table.rows.back().up_to_bytes) {
      up_to.problem("up_to must be in ascending order: this one is not above the one before");
    }
    const YamlValue algorithm = map.need("algorithm");
    if (const auto spec = algorithm.text("algorithm")) {
      row.algorithm = in_folder(*spec, folder_);
      read_located(algorithm, problems_, [&] {
        check_concrete_algorithm(row.algorithm, table.collective);
        return true;
      });
    }
    row.chunk_bytes =
        read_size(map.need("chunk"), "chunk size", "0 for whole messages, or a size such as 4MiB");
    const YamlValue time = map.need("time_us");
    if (const auto time_us = time.number("time_us")) {
      if (*time_us < 0) time.problem("a time cannot be negative");
      row.time_s = *time_us * 1e-6;
    }
    map.finish();
    table.rows.push_back(std::move(row));
  }

  const std::string folder_;
  DiagnosticList& problems_;
};

}  // namespace

const TuningRow& TuningTable::row_for(std::int64_t size_bytes) const {
  CHECK(!rows.empty());
  const auto row = std::ranges::lower_bound(rows, size_bytes, {}, &TuningRow::up_to_bytes);
  return row == rows.end() ? rows.back() : *row;
}

std::string print_tuning(const TuningTable& table, const std::vector<std::string>& remarks) {
  CHECK(remarks.empty() || remarks.size() == table.rows.size());
  std::string gpus = "all";
  if (!table.gpus.empty()) gpus = fmt::format("\"{}\"", fmt::join(table.gpus, ","));
  std::string text =
      fmt::format("schema: {}\nmachine: {}\ngpus: {}\nranks: {}\ncollective: {}\n", kSchema,
                  yaml_quoted(table.machine), gpus, table.ranks, to_string(table.collective));
  if (!table.relays.empty()) text += fmt::format("relay: \"{}\"\n", fmt::join(table.relays, ","));
  if (info(table.collective).rooted) text += fmt::format("root: {}\n", table.root);
  text += fmt::format("profile: {}\nlinks: {}\nin_place: {}\nrows:\n", yaml_quoted(table.profile),
                      to_string(table.links), table.in_place);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const TuningRow& row = table.rows[i];
    text += fmt::format("  - {{up_to: {}, algorithm: {}, chunk: {}, time_us: {:.6g}}}",
                        size_text(row.up_to_bytes), yaml_quoted(row.algorithm),
                        size_text(row.chunk_bytes), row.time_s * 1e6);
    const bool has_remark = !remarks.empty() && !remarks[i].empty();
    text += has_remark ? fmt::format("  # {}\n", remarks[i]) : "\n";
  }
  return text;
}

TuningTable parse_tuning(std::string_view yaml, const std::string& file) {
  DiagnosticList problems;
  const YamlValue document = YamlValue::parse(yaml, file, problems);
  TuningTable table =
      TuningReader(std::filesystem::path(file).parent_path().string(), problems).read(document);
  problems.throw_if_any();
  return table;
}

}  // namespace espalier
