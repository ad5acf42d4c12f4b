// SPDX-License-Identifier: Apache-2.0
// What `nvbandwidth -j` writes: for each test a matrix of texts, "396.76" or
// "N/A". It has no lines of rows, so that messages name tests by their number.
#include <fmt/format.h>

#include "core/words.h"
#include "formats/json_text.h"
#include "formats/p2p_matrices.h"
#include "formats/text_words.h"

namespace espalier {
namespace {

using Json = nlohmann::json;

std::string describe(const std::vector<JsonStep>& path) {
  for (auto step = path.rbegin(); step != path.rend(); ++step) {
    if (step->index >= 0 && step->key == "testcases") return fmt::format("test {}", step->index);
  }
  return {};
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : json_(text, file, describe) {}

  P2pText read() {
    const auto inner = json_.root().find("nvbandwidth");
    if (inner == json_.root().end()) {
      json_.problem("", "'nvbandwidth' is missing");
    } else if (json_.is_object(*inner, "'nvbandwidth'")) {
      const Json* tests = json_.list(*inner, "testcases", "'nvbandwidth'");
      for (std::size_t i = 0; tests != nullptr && i < tests->size(); ++i) {
        const std::string where = fmt::format("test {}", i);
        if (json_.is_object((*tests)[i], where)) read_test((*tests)[i], where);
      }
    }
    json_.problems().throw_if_any();
    return std::move(read_);
  }

 private:
  void read_test(const Json& test, const std::string& where) {
    // Tests that were waived or failed have no matrix.
    const Json* rows = json_.list_or(test, "bandwidth_matrix", where);
    const auto name = json_.word(test, "name", where);
    if (rows == nullptr || rows->empty() || !name) return;
    const auto title = json_.word(test, "bandwidth_description", where);
    if (!title) return;
    auto matrix = matrix_titled(*title, *name);
    if (!matrix) return;
    const std::size_t size = rows->front().size();
    if (size == 0 || size > kMostP2pGpus || rows->size() % size != 0) {
      json_.problem(where,
                    fmt::format("'bandwidth_matrix' has {} with {} in the first, but must "
                                "be square, with at most {}",
                                counted(rows->size(), "row"), counted(size, "cell"), kMostP2pGpus));
      return;
    }
    // Those of both directions stand above their sum, which is what the title names.
    for (std::size_t row = rows->size() - size; row < rows->size(); ++row) {
      matrix->cells.push_back(row_of((*rows)[row], size, fmt::format("{}, row {}", where, row)));
    }
    read_.matrices.push_back(std::move(*matrix));
  }

  std::vector<std::optional<double>> row_of(const Json& row, std::size_t size,
                                            const std::string& where) {
    std::vector<std::optional<double>> cells(size);
    if (!row.is_array() || row.size() != size) {
      json_.problem(where, fmt::format("a list of {} is expected here", counted(size, "cell")));
      return cells;
    }
    for (std::size_t i = 0; i < size; ++i) {
      const std::string word = row[i].is_string() ? row[i].get<std::string>() : row[i].dump();
      if (word == "N/A") continue;
      cells[i] = parse_p2p_rate(word);
      if (!cells[i]) json_.problem(where, fmt::format("column {}: {} is no rate", i, quote(word)));
    }
    return cells;
  }

  JsonText json_;
  P2pText read_;
};

}  // namespace

P2pText read_p2p_json(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

}  // namespace espalier
