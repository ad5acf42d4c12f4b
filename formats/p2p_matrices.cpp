// SPDX-License-Identifier: Apache-2.0
#include "formats/p2p_matrices.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/words.h"
#include "formats/text_words.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxMatrices = 1000;
constexpr std::size_t kLongestTitle = 200;
constexpr double kLargest = 1e5;  ///< GB/s or us

using Words = std::vector<std::string_view>;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// "D\D 0 1 2": how many columns; 0 for other lines.
std::size_t columns_of(const Words& words, std::size_t first) {
  if (words.size() <= first) return 0;
  for (std::size_t i = first; i < words.size(); ++i) {
    if (!parse_whole(words[i], 0, kMostP2pGpus)) return 0;
  }
  return words.size() - first;
}

/// Whether one of nvbandwidth's tests measures pairs of GPUs: others have one row, for all GPUs or
/// the host, whatever the title says of rows.
bool measures_pairs(std::string_view test) {
  constexpr std::string_view kPairs = "device_to_device_";
  const std::size_t at = test.find(kPairs);
  if (at == std::string_view::npos) return false;
  const std::string_view what = test.substr(at + kPairs.size());
  return what.starts_with("memcpy") || what.starts_with("bidirectional_memcpy") ||
         what.starts_with("latency");
}

/// "Running device_to_device_memcpy_read_ce.": the name; empty for other lines.
std::string_view test_of(const Words& words) {
  if (words.size() != 2 || words[0] != "Running" || !words[1].ends_with(".")) return {};
  return words[1].substr(0, words[1].size() - 1);
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, DiagnosticList& problems)
      : text_(text), file_(file), problems_(problems) {}

  P2pText read() {
    std::size_t begin = 0;
    for (line_ = 1; begin < text_.size(); ++line_) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      read_line(trim(text_.substr(begin, end - begin)));
      begin = end + 1;
    }
    finish();
    return std::move(read_);
  }

 private:
  void problem(int line, std::string message) {
    problems_.add({file_, line, 0}, std::move(message));
  }

  void read_line(std::string_view line) {
    const Words words = words_of(line);
    if (columns_ > 0 && read_row(words)) return;
    const bool is_titled = !title_.empty();
    const bool has_corner =
        !words.empty() && (words[0] == "D\\D" || words[0] == "GPU" || words[0] == "CPU");
    const std::size_t columns = has_corner ? columns_of(words, 1) : columns_of(words, 0);
    if (is_titled && columns > 0) {
      begin(words, has_corner, columns);
    } else if (contains(line, "Matrix")) {
      title_ = std::string(line.substr(0, kLongestTitle));
      test_.clear();
    } else if (contains(line, "(column)")) {
      title_ = std::string(line.substr(0, kLongestTitle));
    } else if (line.starts_with("Device")) {
      read_device(line, words);
    } else if (const std::string_view test = test_of(words); !test.empty()) {
      test_ = std::string(test.substr(0, kLongestTitle));
      title_.clear();
    }
  }

  /// "Device: 0, NVIDIA A100-SXM4-80GB, pciBusID: 7, ...", "Device=0 CAN Access Peer Device=1", and
  /// "Device 0: NVIDIA H100 80GB HBM3 (00000000:4e:00)" of nvbandwidth.
  void read_device(std::string_view line, const Words& words) {
    if (line.starts_with("Device=") && words.size() == 5) {
      const auto a = parse_whole(words[0].substr(7), 0, kMostP2pGpus);
      const auto b = words[4].starts_with("Device=")
                         ? parse_whole(words[4].substr(7), 0, kMostP2pGpus)
                         : std::nullopt;
      if (a && b && (words[1] == "CAN" || words[1] == "CANNOT")) {
        read_.maps[{static_cast<int>(*a), static_cast<int>(*b)}] = words[1] == "CAN";
      }
      return;
    }
    if (words.size() < 3) return;
    std::string_view number = words[1];
    if (number.ends_with(",") || number.ends_with(":")) number.remove_suffix(1);
    const auto device = parse_whole(number, 0, kMostP2pGpus);
    if (!device) return;
    const auto begin = static_cast<std::size_t>(words[2].data() - line.data());
    std::string_view name = line.substr(begin);
    name = name.substr(0, name.find_first_of(",("));
    read_.names[static_cast<int>(*device)] = std::string(trim(name));
  }

  void begin(const Words& words, bool has_corner, std::size_t columns) {
    if (columns > kMostP2pGpus || read_.matrices.size() >= kMaxMatrices) {
      problem(line_, fmt::format("more than {} GPUs or {} tables", kMostP2pGpus, kMaxMatrices));
      throw Error(ErrorKind::input, problems_.all());
    }
    auto matrix = matrix_titled(title_, test_);
    // The latency test prints the times of the CPU below those of GPUs, under one title.
    if (!matrix || (has_corner && words[0] == "CPU")) return title_.clear();
    matrix_ = std::move(*matrix);
    matrix_.line = line_;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string_view word = words[i + (has_corner ? 1 : 0)];
      if (parse_whole(word, 0, kMostP2pGpus) == static_cast<std::int64_t>(i)) continue;
      problem(line_, fmt::format("column {} is numbered {}", i, quote(word)));
      break;
    }
    columns_ = columns;
  }

  /// Whether the line is a row; what is none ends the matrix.
  bool read_row(const Words& words) {
    const auto row = words.empty() ? std::nullopt : parse_whole(words[0], 0, kMostP2pGpus);
    const std::size_t at = matrix_.cells.size();
    if (!row || at == columns_) {
      finish();
      return false;
    }
    if (*row != static_cast<std::int64_t>(at)) {
      problem(line_, fmt::format("row {} of {} stands where row {} should", *row,
                                 quote(matrix_.title), at));
    }
    if (words.size() != columns_ + 1) {
      problem(line_,
              fmt::format("row {} of {} has {}, but there are {} columns", at, quote(matrix_.title),
                          counted(words.size() - 1, "cell"), columns_));
    }
    std::vector<std::optional<double>> cells(columns_);
    for (std::size_t i = 0; i < std::min(columns_, words.size() - 1); ++i) {
      const std::string_view word = words[i + 1];
      if (word == "N/A") continue;
      cells[i] = parse_p2p_rate(word);
      if (!cells[i]) {
        problem(line_, fmt::format("row {}, column {} of {}: {} is no rate", at, i,
                                   quote(matrix_.title), quote(word)));
      }
    }
    matrix_.cells.push_back(std::move(cells));
    return true;
  }

  void finish() {
    if (columns_ == 0) return;
    if (matrix_.cells.size() < columns_) {
      problem(matrix_.line, fmt::format("{} has {} columns: row {} is missing",
                                        quote(matrix_.title), columns_, matrix_.cells.size()));
    }
    read_.matrices.push_back(std::move(matrix_));
    matrix_ = {};
    columns_ = 0;
  }

  std::string_view text_;
  const std::string& file_;
  DiagnosticList& problems_;
  P2pText read_;
  P2pMatrix matrix_;         ///< at hand
  std::size_t columns_ = 0;  ///< of it; 0: there is none
  std::string title_;
  std::string test_;  ///< of nvbandwidth; empty: none was named
  int line_ = 0;
};

}  // namespace

std::optional<P2pMatrix> matrix_titled(const std::string& title, std::string_view test) {
  const bool is_of_pairs = !test.empty() ? measures_pairs(test)
                           : contains(title, "(column)")
                               ? contains(title, "GPU(row)") && contains(title, "GPU(column)")
                               : contains(title, "Matrix");
  for (const std::string_view part : {" Read1 ", " Read2 ", " Write1 ", " Write2 "}) {
    if (contains(title, part)) return std::nullopt;
  }
  if (!is_of_pairs) return std::nullopt;
  P2pMatrix matrix;
  matrix.title = title;
  if (contains(title, "Latency") || contains(title, "(us)") || contains(title, "(ns)")) {
    matrix.what = P2pMatrix::What::latency;
  } else if (contains(title, "Connectivity")) {
    matrix.what = P2pMatrix::What::connectivity;
  }
  // Old versions of nvbandwidth have an arrow one way above sums of both.
  matrix.both_directions =
      contains(title, "Bidirectional") || contains(title, "<->") || contains(test, "bidirectional");
  matrix.by_peer_access = !contains(title, "P2P=Disabled");
  matrix.is_read = contains(title, "Reads") || contains(test, "memcpy_read");
  return matrix;
}

std::optional<double> parse_p2p_rate(std::string_view word) {
  const auto figure = parse_figure(word);
  if (!figure || figure->value < 0 || figure->value > kLargest) return std::nullopt;
  return figure->value;
}

P2pText read_p2p_text(std::string_view text, const std::string& file, DiagnosticList& problems) {
  return Reader(text, file, problems).read();
}

std::optional<double> P2pRates::slower(const Matrix& matrix, int a, int b) {
  if (matrix.empty()) return std::nullopt;
  const auto& there = matrix[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  const auto& back = matrix[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)];
  if (there && back) return std::min(*there, *back);
  return there ? there : back;
}

}  // namespace espalier
