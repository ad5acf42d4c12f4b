// SPDX-License-Identifier: Apache-2.0
#include "formats/peer_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/words.h"
#include "formats/text_words.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxGpus = 256;
constexpr std::size_t kMaxTables = 64;
/// The legend of nvidia-smi.
constexpr std::array<std::string_view, 8> kWords = {"X",   "OK", "CNS", "GNS",
                                                    "TNS", "NS", "DR",  "U"};

bool is_gpu(std::string_view word) {
  return word.starts_with("GPU") && parse_whole(word.substr(3), 0, 100'000).has_value();
}

bool is_header(const std::vector<std::string_view>& words) {
  return !words.empty() && std::ranges::all_of(words, is_gpu);
}

/// "nvidia-smi topo -p2p r".
char property_of(const std::vector<std::string_view>& words) {
  const auto option = std::ranges::find_if(
      words, [](std::string_view word) { return word == "-p2p" || word == "--p2p_status"; });
  if (option == words.end() || option + 1 == words.end() || option[1].size() > 2) return 0;
  return option[1].back();
}

class Reader {
 public:
  Reader(const std::string& file, DiagnosticList& problems) : file_(file), problems_(problems) {}

  std::vector<PeerTable> read(std::string_view text) {
    std::size_t begin = 0;
    for (line_ = 1; begin < text.size(); ++line_) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      read_line(words_of(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    finish();
    return std::move(tables_);
  }

 private:
  void problem(int line, std::string message, std::string suggestion = {}) {
    problems_.add({file_, line, 0}, std::move(message), std::move(suggestion));
  }

  void read_line(const std::vector<std::string_view>& words) {
    if (const char property = property_of(words); property != 0) property_ = property;
    if (is_header(words) && (words.size() > 1 || table_.devices.empty())) {
      finish();
      if (words.size() > kMaxGpus || tables_.size() >= kMaxTables) {
        problem(line_, fmt::format("more than {} GPUs or {} tables", kMaxGpus, kMaxTables));
        return;
      }
      table_.line = line_;
      table_.property = property_;
      for (const std::string_view word : words) table_.devices.emplace_back(word);
    } else if (!table_.devices.empty() && !words.empty() && is_gpu(words[0])) {
      read_row(words);
    }
  }

  void read_row(const std::vector<std::string_view>& words) {
    const std::size_t row = table_.cells.size();
    const std::size_t columns = table_.devices.size();
    if (row >= columns || words[0] != table_.devices[row]) {
      problem(line_, fmt::format("a row of {} stands where {} should", words[0],
                                 row < columns ? "one of " + table_.devices[row] : "none"));
      return;
    }
    if (words.size() != columns + 1) {
      problem(line_, fmt::format("{} has {}, but there are {} columns", words[0],
                                 counted(words.size() - 1, "cell"), columns));
    }
    std::vector<std::string> cells(columns);
    for (std::size_t i = 0; i < std::min(columns, words.size() - 1); ++i) {
      const std::string_view word = words[i + 1];
      cells[i] = word;
      if (std::ranges::count(kWords, word) == 0) {
        problem(line_,
                fmt::format("{}, column {}: {} is no peer access", words[0], table_.devices[i],
                            quote(word)),
                "one of: " + join({kWords.begin(), kWords.end()}, ", "));
      } else if ((word == "X") != (i == row)) {
        problem(line_, fmt::format("{}, column {}: X is for a GPU itself, and only there", words[0],
                                   table_.devices[i]));
      }
    }
    table_.cells.push_back(std::move(cells));
  }

  void finish() {
    if (!table_.devices.empty()) {
      if (table_.cells.size() < table_.devices.size()) {
        problem(table_.line, fmt::format("{} is in the header, but has no row",
                                         table_.devices[table_.cells.size()]));
      }
      tables_.push_back(std::move(table_));
    }
    table_ = {};
  }

  const std::string& file_;
  DiagnosticList& problems_;
  std::vector<PeerTable> tables_;
  PeerTable table_;  ///< at hand
  char property_ = 0;
  int line_ = 0;
};

}  // namespace

std::vector<PeerTable> read_peer_tables(std::string_view text, const std::string& file,
                                        DiagnosticList& problems) {
  return Reader(file, problems).read(text);
}

bool is_peer_table(std::string_view text) {
  std::size_t begin = 0;
  bool has_header = false;
  const std::size_t most = std::min<std::size_t>(text.size(), 20'000);
  while (begin < most) {
    const std::size_t end = std::min(text.find('\n', begin), most);
    const auto words = words_of(text.substr(begin, end - begin));
    if (has_header && words.size() > 1 && is_gpu(words[0])) {
      // A lone GPU has no word that would tell.
      return std::any_of(words.begin() + 1, words.end(), [](std::string_view word) {
        return word != "X" && std::ranges::count(kWords, word) > 0;
      });
    }
    has_header = has_header || is_header(words);
    begin = end + 1;
  }
  return false;
}

}  // namespace espalier
