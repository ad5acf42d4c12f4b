// SPDX-License-Identifier: Apache-2.0
// What `amd-smi topology` says of how GPUs reach each other.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/words.h"
#include "formats/amd_smi_forms.h"
#include "formats/smi_table.h"
#include "formats/text_words.h"

namespace espalier {
namespace {

constexpr std::int64_t kLargestNumber = 1'000'000'000;
constexpr int kMostLinks = 64;  ///< of one pair
/// GPUs of one NUMA node are two hops over PCIe apart, others three (AMD's "System optimization").
constexpr std::int64_t kHopsWithinSocket = 2;

/// Of "50000-200000": MB/s of the narrowest and of all links between two GPUs.
struct Range {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

class Maker {
 public:
  Maker(AmdSmiTables tables, const std::string& file) : read_(std::move(tables)), file_(file) {}

  SmiTable make() {
    if (!read_.tables.contains(AmdSmiTopic::type)) {
      throw Error(ErrorKind::input, {Diagnostic{"",
                                                "there is no table of link types",
                                                "`amd-smi topology` prints it, or with -t",
                                                {file_, 0, 0}}});
    }
    table_.is_amd = true;
    table_.notes = read_.notes;
    for (std::size_t a = 0; a < size(); ++a) {
      for (std::size_t b = 0; b < size(); ++b) note_pair(a, b);
    }
    for (std::size_t a = 0; a < size(); ++a) {
      SmiDevice device;
      device.name = read_.gpus[a].name;
      device.is_gpu = true;
      device.line = read_.gpus[a].line;
      for (std::size_t b = 0; b < size(); ++b) device.cells.push_back(cell(a, b));
      table_.devices.push_back(std::move(device));
    }
    problems_.throw_if_any();
    check_smi_table(table_, file_);
    add_notes();
    return std::move(table_);
  }

 private:
  std::size_t size() const { return read_.gpus.size(); }

  const std::string& word(AmdSmiTopic topic, std::size_t a, std::size_t b) const {
    static const std::string kNone;
    const auto found = read_.tables.find(topic);
    return found == read_.tables.end() ? kNone : found->second[a][b];
  }
  std::optional<std::int64_t> number(AmdSmiTopic topic, std::size_t a, std::size_t b) const {
    return parse_whole(word(topic, a, b), 0, kLargestNumber);
  }
  std::optional<Range> range(std::size_t a, std::size_t b) const {
    const std::string& text = word(AmdSmiTopic::bandwidth, a, b);
    const std::size_t dash = text.find('-');
    if (dash == std::string::npos) return std::nullopt;
    const auto least = parse_whole(std::string_view(text).substr(0, dash), 0, kLargestNumber);
    const auto most = parse_whole(std::string_view(text).substr(dash + 1), 0, kLargestNumber);
    if (!least || !most) return std::nullopt;
    return Range{*least, *most};
  }
  bool is_xgmi(std::size_t a, std::size_t b) const {
    return a != b && word(AmdSmiTopic::type, a, b) == "XGMI";
  }

  /// What the pairs together say about each.
  void note_pair(std::size_t a, std::size_t b) {
    if (a != b && word(AmdSmiTopic::access, a, b) == "DISABLED") ++disabled_;
    if (!is_xgmi(a, b)) return;
    if (const auto known = range(a, b); known && known->most > 0) has_bandwidths_ = true;
    const auto weight = number(AmdSmiTopic::weight, a, b);
    if (weight && *weight > 0) least_weight_ = std::min(least_weight_.value_or(*weight), *weight);
  }

  /// Whether links of their own join two GPUs. A type of XGMI only says that data comes there over
  /// such links; a pair that is not joined has no bandwidth, and the weight of several hops.
  bool is_joined(std::size_t a, std::size_t b) const {
    if (has_bandwidths_) {
      const auto known = range(a, b);
      return !known || known->most > 0;
    }
    const auto weight = number(AmdSmiTopic::weight, a, b);
    return !weight || !least_weight_ || *weight < 2 * *least_weight_;
  }

  int links(std::size_t a, std::size_t b) const {
    const auto known = range(a, b);
    if (!known || known->least <= 0 || known->most % known->least != 0) return 1;
    return static_cast<int>(std::min<std::int64_t>(known->most / known->least, kMostLinks));
  }

  SmiCell cell(std::size_t a, std::size_t b) {
    const std::string& type = word(AmdSmiTopic::type, a, b);
    const auto problem = [&](const std::string& message) {
      problems_.add({file_, read_.gpus[a].line, 0}, message);
    };
    const std::string pair = fmt::format("{} and {}", read_.gpus[a].name, read_.gpus[b].name);
    if (a == b) {
      if (type != "SELF") problem(fmt::format("{} must have SELF for itself", read_.gpus[a].name));
      return {SmiWay::self, 0};
    }
    if (type == "XGMI" && is_joined(a, b)) return {SmiWay::fabric, links(a, b)};
    if (type == "XGMI") {
      if (a < b) ++not_joined_;
    } else if (type == "UNKNOWN" || type == "N/A") {
      if (a < b) ++unknown_;
    } else if (type != "PCIE") {
      problem(fmt::format("{}: {} is no type of link", pair, quote(type)));
    }
    const auto hops = number(AmdSmiTopic::hops, a, b);
    return {hops && *hops > kHopsWithinSocket ? SmiWay::sys : SmiWay::node, 0};
  }

  void add_notes() {
    const auto note = [&](std::string text) { table_.notes.push_back(std::move(text)); };
    note(
        "amd-smi does not say which GPUs share a socket: all do that no PCIe way between sockets "
        "divides");
    if (not_joined_ > 0) {
      note(
          fmt::format("{} reach each other over links of other GPUs only, and get none of "
                      "their own",
                      counted(not_joined_, "pair")));
    }
    if (unknown_ > 0) {
      note(
          fmt::format("of {} no type of link is known: taken for PCIe", counted(unknown_, "pair")));
    }
    table_.lacks_peer_access = disabled_ > 0;
    if (disabled_ > 0) {
      note(
          "some GPUs have no access to others: those without a link between them go through host "
          "memory");
    }
  }

  const AmdSmiTables read_;
  const std::string& file_;
  SmiTable table_;
  bool has_bandwidths_ = false;
  std::optional<std::int64_t> least_weight_;
  std::size_t disabled_ = 0, not_joined_ = 0, unknown_ = 0;
  DiagnosticList problems_;
};

}  // namespace

SmiTable read_amd_smi_table(std::string_view text, const std::string& file) {
  return Maker(read_amd_smi_tables(text, file), file).make();
}

}  // namespace espalier
