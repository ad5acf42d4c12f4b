// SPDX-License-Identifier: Apache-2.0
// Tables of `nvidia-smi topo -m` and mx-smi, and those of hops and link types of
// `rocm-smi --showtopo`. No line is searched with regular expressions: std::regex calls itself for
// every character of a word, and a text may be one long word.
#include "formats/smi_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/words.h"
#include "formats/text_words.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDevices = 256;
constexpr std::size_t kLargestNumber = 1'000'000;
constexpr int kLargestNuma = 1023;
constexpr int kMostLinks = 64;  ///< of one cell

using Words = std::vector<std::string_view>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_gpu_name(std::string_view name) {
  return name.starts_with("GPU") && parse_whole(name.substr(3), 0, kLargestNumber);
}
bool is_device_name(std::string_view name) {
  return std::ranges::all_of(
      name, [](char c) { return is_digit(c) || is_letter(c) || c == '_' || c == '-' || c == '.'; });
}

std::optional<SmiCell> cell_of(std::string_view word) {
  static const std::map<std::string_view, SmiWay> kWays = {
      {"X", SmiWay::self},    {"PIX", SmiWay::pix},    {"PSB", SmiWay::pix}, {"PXB", SmiWay::pxb},
      {"PHB", SmiWay::phb},   {"NODE", SmiWay::node},  {"SYS", SmiWay::sys}, {"SOC", SmiWay::sys},
      {"MX", SmiWay::fabric}, {"XGMI", SmiWay::fabric}};
  if (const auto known = kWays.find(word); known != kWays.end()) {
    return SmiCell{known->second, known->second == SmiWay::fabric ? 1 : 0};
  }
  if (!word.starts_with("NV")) return std::nullopt;
  const auto links = parse_whole(word.substr(2), 1, kMostLinks);
  if (!links) return std::nullopt;
  return SmiCell{SmiWay::fabric, static_cast<int>(*links)};
}

/// Characters of the name of a device or of a cell that other text may follow without a blank;
/// 0 where the word begins with neither.
std::size_t length_of_token(std::string_view word) {
  constexpr std::array<std::string_view, 6> kCells = {"PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  for (const std::string_view cell : kCells) {
    if (word.starts_with(cell)) return cell.size();
  }
  for (const std::string_view kind : {"GPU", "NIC", "NV"}) {
    if (!word.starts_with(kind)) continue;
    std::size_t end = kind.size();
    while (end < word.size() && is_digit(word[end])) ++end;
    if (end > kind.size()) return end;
  }
  return 0;
}

/// "0-19,40-59".
bool is_set_of_processors(std::string_view word) {
  return is_digit(word.front()) && word.find_first_not_of("0123456789-,") == std::string_view::npos;
}

/// The words of a line. GPU0GPU1 and PXBNODE, where a paste has lost the tabs, are taken apart.
Words pieces_of(std::string_view line) {
  Words pieces;
  for (std::string_view word : words_of(line)) {
    for (;;) {
      const std::size_t length = length_of_token(word);
      if (length == 0 || length == word.size() || !is_letter(word[length])) break;
      pieces.push_back(word.substr(0, length));
      word.remove_prefix(length);
    }
    pieces.push_back(word);
  }
  return pieces;
}

/// What stands behind the devices of a header: "CPU Affinity", "NUMA Affinity", "GPU NUMA ID", and
/// "Node Affinity" of mx-smi.
bool is_other_column(std::string_view word) {
  return word.starts_with("CPU") || word == "NUMA" || word == "Node" || word == "GPU";
}

/// The devices that a header names: none for any other line. Cards have names of all kinds, so
/// every word before the other columns is one.
Words devices_of(const Words& words) {
  if (words.empty() || !is_gpu_name(words[0])) return {};
  const auto end = std::ranges::find_if(words, is_other_column);
  Words devices(words.begin(), end);
  // Sentences may begin with a GPU, too.
  const bool has_affinity = std::any_of(end, words.end(), [](std::string_view word) {
    return word.find("Affinity") != std::string_view::npos;
  });
  const bool is_header = has_affinity || devices.size() == 1 || is_gpu_name(devices[1]) ||
                         devices[1].starts_with("NIC") || devices[1].starts_with("mlx");
  const bool has_cell =
      std::ranges::any_of(devices, [](std::string_view word) { return cell_of(word).has_value(); });
  if (!is_header || has_cell) devices.clear();
  return devices;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : file_(file) {
    if (text.size() > kMaxBytes) {
      fail(0, fmt::format("the text has {} bytes, more than the {} that are read", text.size(),
                          kMaxBytes));
    }
    lines_ = split(without_colours(text), '\n');
    table_.is_amd = text.find("between two GPUs") != std::string_view::npos;
  }

  SmiTable read() {
    table_.is_amd ? read_rocm() : read_matrix();
    number_by_processors();
    if (devices().empty()) {
      fail(0, "no table of GPUs was found", "expected what `nvidia-smi topo -m` prints");
    }
    problems_.throw_if_any();
    check_smi_table(table_, file_);
    return std::move(table_);
  }

 private:
  [[noreturn]] void fail(int line, std::string message, std::string suggestion = {}) const {
    throw Error(ErrorKind::input,
                {Diagnostic{"", std::move(message), std::move(suggestion), {file_, line, 0}}});
  }
  void problem(int line, std::string message) {
    problems_.add({file_, line, 0}, std::move(message));
  }

  std::vector<SmiDevice>& devices() { return table_.devices; }
  SmiDevice* find(std::string_view name) {
    const auto at = std::ranges::find(devices(), name, &SmiDevice::name);
    return at == devices().end() ? nullptr : &*at;
  }

  /// The header names the devices; each row begins with one of them.
  void read_matrix() {
    bool is_over = false;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const Words words = pieces_of(lines_[i]);
      const int line = static_cast<int>(i) + 1;
      if (words.empty()) continue;
      if (const Words header = devices_of(words); !header.empty()) {
        is_over = is_over || has_rows_;
        if (!is_over) headers_.clear();
        headers_.push_back(line);
        if (!is_over) read_header(words, header, line);
        continue;
      }
      SmiDevice* row = is_over ? nullptr : find(words[0]);
      const bool is_legend = words.size() > 1 && words[1] == ":";
      if (row != nullptr && !is_legend) {
        read_row(*row, words, line);
      } else {
        is_over = is_over || has_rows_;
      }
    }
    // As of several hosts.
    if (headers_.size() > 1) {
      table_.notes.push_back(
          fmt::format("there are {} tables of GPUs, on lines {} and {}{}; that on line {} counts",
                      headers_.size(), headers_[0], headers_[1], headers_.size() > 2 ? ", ..." : "",
                      headers_[0]));
    }
  }

  void read_header(const Words& words, const Words& names, int line) {
    if (names.size() > kMaxDevices) fail(line, fmt::format("more than {} devices", kMaxDevices));
    devices().clear();
    for (const std::string_view name : names) {
      if (!is_device_name(name)) {
        fail(line, fmt::format("{} in the header is no name of a device", quote(name)));
      }
      if (find(name) != nullptr) fail(line, fmt::format("{} is in the header twice", name));
      SmiDevice device;
      device.name = name;
      device.is_gpu = is_gpu_name(name);
      devices().push_back(std::move(device));
    }
    numa_column_ = names.size() < words.size() && words[names.size()] == "Node" ? 0 : 1;
  }

  void read_row(SmiDevice& device, const Words& words, int line) {
    has_rows_ = true;
    if (!device.cells.empty()) {
      problem(line, fmt::format("{} has two rows, the first on line {}", device.name, device.line));
      return;
    }
    device.line = line;
    const std::size_t columns = devices().size();
    for (std::size_t i = 1; i <= columns; ++i) {
      const auto cell = i < words.size() ? cell_of(words[i]) : std::nullopt;
      if (!cell) {
        problem(line, i < words.size() ? fmt::format("{}: {} is no way between two devices",
                                                     device.name, quote(words[i]))
                                       : fmt::format("{} has {}, but there are {} devices",
                                                     device.name, counted(i - 1, "cell"), columns));
        return;
      }
      device.cells.push_back(*cell);
    }
    if (columns + 1 < words.size() && cell_of(words[columns + 1])) {
      problem(line, fmt::format("{} has more cells than the header has devices, {}", device.name,
                                columns));
    }
    const std::size_t numa = columns + 1 + numa_column_;
    if (numa < words.size()) {
      device.numa = static_cast<int>(parse_whole(words[numa], 0, kLargestNuma).value_or(-1));
    }
    if (device.is_gpu && columns + 1 < words.size() && is_set_of_processors(words[columns + 1])) {
      processors_.emplace_back(device.name, words[columns + 1]);
    }
  }

  /// Older drivers name the processors that are near, and not the NUMA node: GPUs with the same
  /// ones are on one. Where all have the same, the cells say as much.
  void number_by_processors() {
    std::vector<std::string> sets;
    for (const auto& [name, processors] : processors_) {
      if (std::ranges::count(sets, processors) == 0) sets.push_back(processors);
    }
    const bool has_numa =
        std::ranges::any_of(devices(), [](const SmiDevice& device) { return device.numa >= 0; });
    if (sets.size() < 2 || has_numa) return;
    for (const auto& [name, processors] : processors_) {
      const auto set = std::ranges::find(sets, processors);
      find(name)->numa = static_cast<int>(set - sets.begin());
    }
  }

  /// "Link Type between two GPUs", and the NUMA nodes below.
  void read_rocm() {
    bool in_types = false;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].find("====") != std::string::npos) {
        in_types = lines_[i].find("Link Type between two GPUs") != std::string::npos;
        continue;
      }
      Words words = words_of(lines_[i]);
      if (words.empty() || read_numa(words) || !in_types) continue;
      const int line = static_cast<int>(i) + 1;
      if (devices().empty()) {
        read_header(words, devices_of(words), line);
      } else if (SmiDevice* row = find(words[0])) {
        for (std::string_view& word : words) {
          if (word == "0") word = "X";
          if (word == "PCIE") word = "NODE";
        }
        read_row(*row, words, line);
      }
    }
  }

  /// "GPU[0] : (Topology) Numa Node: 0".
  bool read_numa(const Words& words) {
    const std::string_view first = words[0];
    if (!first.starts_with("GPU[") || !first.ends_with("]")) return false;
    for (std::size_t i = 1; i + 2 < words.size(); ++i) {
      if (words[i] != "Numa" || (words[i + 1] != "Node:" && words[i + 1] != "Affinity:")) continue;
      const auto numa = parse_whole(words[i + 2], 0, kLargestNuma);
      SmiDevice* device = find(fmt::format("GPU{}", first.substr(4, first.size() - 5)));
      if (numa && device != nullptr) device->numa = static_cast<int>(*numa);
    }
    return true;
  }

  const std::string& file_;
  std::vector<std::string> lines_;
  SmiTable table_;
  std::vector<int> headers_;  ///< lines: that of this table, then those of others
  std::vector<std::pair<std::string, std::string>> processors_;  ///< by name of the GPU
  std::size_t numa_column_ = 1;  ///< behind the cells: "0-23 0" is processors, then the NUMA node
  bool has_rows_ = false;
  DiagnosticList problems_;
};

}  // namespace

SmiTable read_smi_table(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

void check_smi_table(const SmiTable& table, const std::string& file) {
  const std::vector<SmiDevice>& devices = table.devices;
  DiagnosticList problems;
  const auto without =
      std::ranges::find_if(devices, [](const SmiDevice& device) { return device.cells.empty(); });
  if (without != devices.end()) {
    problems.add({file, 0, 0}, fmt::format("{} is in the header, but has no row", without->name));
  }
  problems.throw_if_any();
  for (std::size_t a = 0; a < devices.size(); ++a) {
    const SmiDevice& one = devices[a];
    if (one.cells[a].way != SmiWay::self) {
      problems.add({file, one.line, 0}, fmt::format("{} must have X in its own column", one.name));
    }
    for (std::size_t b = 0; b < a; ++b) {
      const SmiDevice& other = devices[b];
      if (one.cells[b] == other.cells[a]) continue;
      problems.add({file, one.line, 0},
                   fmt::format("{} and {} reach each other in different ways, here and on line {}",
                               other.name, one.name, other.line));
    }
  }
  problems.throw_if_any();
}

bool has_smi_table(std::string_view text) {
  const std::string_view head = text.substr(0, std::min<std::size_t>(text.size(), 20'000));
  for (const std::string& line : split(without_colours(head), '\n')) {
    const std::vector<std::string_view> devices = devices_of(pieces_of(line));
    // A table of some GPUs begins with any: `nvidia-smi topo -m -i 4,5`.
    const bool has_two = devices.size() > 1 && is_gpu_name(devices[1]);
    if (!devices.empty() && (devices[0] == "GPU0" || has_two)) return true;
  }
  return false;
}

}  // namespace espalier
