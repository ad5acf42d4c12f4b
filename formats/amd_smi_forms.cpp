// SPDX-License-Identifier: Apache-2.0
// The three forms of `amd-smi topology` (ROCm/amdsmi, amdsmi_cli/amdsmi_commands.py and
// amdsmi_logger.py).
#include "formats/amd_smi_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/words.h"
#include "formats/json_text.h"
#include "formats/text_words.h"

namespace espalier {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{1} << 22;
constexpr std::size_t kLooksAt = 20'000;
constexpr std::size_t kMaxGpus = 256;
constexpr std::int64_t kLargestNumber = 1'000'000;

struct TopicNames {
  AmdSmiTopic topic;
  std::string_view title;   ///< of a table
  std::string_view column;  ///< of CSV, and the key of JSON before ROCm 6.2
  const char* key;          ///< of JSON
};
constexpr std::array<TopicNames, 5> kTopics = {
    {{AmdSmiTopic::type, "LINK TYPE TABLE:", "link_type", "link_type"},
     {AmdSmiTopic::weight, "WEIGHT TABLE:", "weight", "weight"},
     {AmdSmiTopic::hops, "HOPS TABLE:", "hops", "num_hops"},
     {AmdSmiTopic::bandwidth, "NUMA BW TABLE:", "numa_bandwidth", "bandwidth"},
     {AmdSmiTopic::access, "ACCESS TABLE:", "link_accessibility", "link_status"}}};

/// "0000:0c:00.0"
bool is_bus_id(std::string_view word) {
  constexpr std::string_view kShape = "hhhh:hh:hh.h";
  if (word.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool is_hex =
        std::string_view("0123456789abcdefABCDEF").find(word[i]) != std::string_view::npos;
    if (kShape[i] == 'h' ? !is_hex : word[i] != kShape[i]) return false;
  }
  return true;
}

/// Words between commas; a word in double quotes may hold some.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') {
      is_quoted = !is_quoted;
    } else if (c == ',' && !is_quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  for (std::string& cell : cells) cell = trim(cell);
  return cells;
}

bool is_csv_header(std::string_view line) {
  return line.starts_with("gpu,") && std::ranges::any_of(kTopics, [&](const TopicNames& one) {
           return line.find(fmt::format(",{}_gpu_", one.column)) != std::string_view::npos;
         });
}

std::string_view without_mark(std::string_view text) {
  return text.substr(text.starts_with("\xef\xbb\xbf") ? 3 : 0);
}

bool is_json(std::string_view head) {
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || head[begin] != '[') return false;
  const auto has = [&](const char* key) { return head.find(key) != std::string_view::npos; };
  return has("\"gpu\"") &&
         (has("\"link_type\"") || has("\"link_status\"") || has("\"link_accessibility\""));
}

/// What all forms share.
class Form {
 public:
  explicit Form(const std::string& file) : file_(file) {}

 protected:
  [[noreturn]] void fail(int line, std::string message) const {
    throw Error(ErrorKind::input, {Diagnostic{"", std::move(message), {}, {file_, line, 0}}});
  }
  void problem(int line, std::string message) {
    problems_.add({file_, line, 0}, std::move(message));
  }
  void limit(std::size_t gpus, int line) const {
    if (gpus > kMaxGpus) fail(line, fmt::format("more than {} GPUs", kMaxGpus));
  }
  AmdSmiTables::Words& table(AmdSmiTopic topic) {
    AmdSmiTables::Words& words = read_.tables[topic];
    words.resize(read_.gpus.size());
    for (auto& row : words) row.resize(read_.gpus.size());
    return words;
  }
  AmdSmiTables finish() {
    problems_.throw_if_any();
    return std::move(read_);
  }

  const std::string& file_;
  AmdSmiTables read_;
  DiagnosticList problems_;
};

/// "LINK TYPE TABLE:", then a line of all bus ids, then one for each with what it has for all.
class Tables : public Form {
 public:
  using Form::Form;

  AmdSmiTables read(std::string_view text) {
    const std::vector<std::string> lines = split(without_colours(text), '\n');
    for (std::size_t i = 0; i < lines.size(); ++i) {
      read_line(std::string(trim(lines[i])), static_cast<int>(i) + 1);
    }
    end_table();
    return finish();
  }

 private:
  void read_line(const std::string& line, int number) {
    if (line.ends_with("TABLE:")) {
      begin_table(line, number);
      return;
    }
    const auto words = words_of(line);
    if (title_.empty() || words.empty()) return;
    if (!is_bus_id(words[0])) {
      end_table();
    } else if (!has_header_) {
      read_header(words, number);
    } else {
      read_row(words, number);
    }
  }

  void begin_table(const std::string& line, int number) {
    end_table();
    title_ = line;
    line_ = number;
    topic_.reset();
    has_header_ = false;
    for (const TopicNames& one : kTopics) {
      if (one.title != line) continue;
      topic_ = one.topic;
      if (!read_.tables.contains(one.topic)) continue;
      read_.notes.push_back(fmt::format(
          "the table on line {} is left out: there is one of the same name before", number));
      topic_.reset();
      title_.clear();
    }
  }

  /// All tables are about the same GPUs.
  void read_header(const std::vector<std::string_view>& words, int line) {
    has_header_ = true;
    limit(words.size(), line);
    const std::vector<std::string> ids(words.begin(), words.end());
    if (ids_.empty()) {
      ids_ = ids;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!is_bus_id(ids[i])) problem(line, fmt::format("{} is no bus id", quote(ids[i])));
        if (std::ranges::count(ids, ids[i]) > 1) {
          fail(line, fmt::format("{} is in the header twice", ids[i]));
        }
        read_.gpus.push_back({fmt::format("GPU{}", i), line});
      }
    } else if (ids != ids_) {
      problem(line, fmt::format("'{}' is about other GPUs than the table before", title_));
      title_.clear();
    }
    has_row_.assign(ids_.size(), false);
  }

  void read_row(const std::vector<std::string_view>& words, int line) {
    const auto gpu = std::ranges::find(ids_, words[0]);
    if (gpu == ids_.end()) {
      problem(line, fmt::format("{} is not in the header", words[0]));
      return;
    }
    const auto row = static_cast<std::size_t>(gpu - ids_.begin());
    if (has_row_[row]) problem(line, fmt::format("{} has two rows", words[0]));
    has_row_[row] = true;
    if (!topic_) return;
    if (words.size() != ids_.size() + 1) {
      // What could not be found out may be a sentence there.
      if (*topic_ == AmdSmiTopic::type) {
        problem(line, fmt::format("{} has {}, but there are {} GPUs", words[0],
                                  counted(words.size() - 1, "cell"), ids_.size()));
      }
      return;
    }
    if (*topic_ == AmdSmiTopic::type) read_.gpus[row].line = line;
    auto& cells = table(*topic_)[row];
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = words[i + 1];
  }

  void end_table() {
    if (title_.empty()) return;
    if (topic_ == AmdSmiTopic::type) {
      const auto missing = std::ranges::find(has_row_, false);
      if (!has_header_ || missing != has_row_.end()) {
        problem(line_,
                fmt::format("'{}' has no row of {}", title_,
                            has_header_ ? ids_[static_cast<std::size_t>(missing - has_row_.begin())]
                                        : "any GPU"));
      }
    }
    title_.clear();
  }

  std::string title_;  ///< of the table that is read; empty: none
  int line_ = 0;
  std::optional<AmdSmiTopic> topic_;  ///< nothing: it says nothing of interest
  bool has_header_ = false;
  std::vector<std::string> ids_;
  std::vector<bool> has_row_;
};

/// A row for each GPU, with columns "link_type_gpu_3".
class Csv : public Form {
 public:
  using Form::Form;

  AmdSmiTables read(std::string_view text) {
    const std::vector<std::string> lines = split(without_mark(text), '\n');
    const auto header = std::ranges::find_if(lines, is_csv_header);
    const std::vector<std::string> columns = cells_of(*header);
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> ids;
    for (auto line = header + 1; line != lines.end() && !trim(*line).empty(); ++line) {
      const int number = static_cast<int>(line - lines.begin()) + 1;
      rows.push_back(cells_of(*line));
      limit(rows.size(), number);
      if (rows.back().size() != columns.size()) {
        fail(number, fmt::format("the row has {}, the header {}",
                                 counted(rows.back().size(), "cell"), columns.size()));
      }
      const std::string& id = rows.back().front();
      if (!parse_whole(id, 0, kLargestNumber)) {
        problem(number, fmt::format("{} is no number of a GPU", quote(id)));
      }
      if (std::ranges::count(ids, id) > 0) problem(number, fmt::format("GPU {} has two rows", id));
      ids.push_back(id);
      read_.gpus.push_back({"GPU" + id, number});
    }
    problems_.throw_if_any();
    for (const TopicNames& one : kTopics) {
      const std::string prefix = fmt::format("{}_gpu_", one.column);
      for (std::size_t c = 0; c < columns.size(); ++c) {
        if (!columns[c].starts_with(prefix)) continue;
        const auto to = std::ranges::find(ids, columns[c].substr(prefix.size()));
        if (to == ids.end()) {
          problem(static_cast<int>(header - lines.begin()) + 1,
                  fmt::format("there is a column {}, but no such row", quote(columns[c])));
          continue;
        }
        AmdSmiTables::Words& words = table(one.topic);
        for (std::size_t row = 0; row < rows.size(); ++row) {
          words[row][static_cast<std::size_t>(to - ids.begin())] = rows[row][c];
        }
      }
    }
    return finish();
  }
};

std::string describe(const std::vector<JsonStep>& path) {
  for (auto step = path.rbegin(); step != path.rend(); ++step) {
    if (step->index >= 0 && step->key != "links") return fmt::format("entry {}", step->index);
  }
  return {};
}

/// A list of GPUs, each with "links" to all, or, before ROCm 6.2, with an object for every table.
class Lists : public Form {
 public:
  using Form::Form;

  AmdSmiTables read(std::string_view text) {
    JsonLines lines;
    const Json root = parse_json(text, file_, describe, &lines);
    if (!root.is_array()) fail(1, fmt::format("the file holds {}, not a list", shown(root)));
    limit(root.size(), 1);
    for (std::size_t i = 0; i < root.size(); ++i) {
      const auto known = lines.find(fmt::format("entry {}", i));
      add_gpu(root[i], known == lines.end() ? 0 : known->second);
    }
    problems_.throw_if_any();
    for (std::size_t i = 0; i < root.size(); ++i) {
      const auto links = root[i].find("links");
      if (links == root[i].end()) {
        read_objects(root[i], i);
      } else if (links->is_array()) {
        for (const Json& link : *links) read_link(link, i);
      } else {
        problem(read_.gpus[i].line, fmt::format("'links' is {}, not a list", shown(*links)));
      }
    }
    return finish();
  }

 private:
  static std::optional<std::int64_t> number_of(const Json& object) {
    const auto id = object.is_object() ? object.find("gpu") : object.end();
    if (!object.is_object() || id == object.end() || !id->is_number_integer()) return std::nullopt;
    const auto number = id->get<std::int64_t>();
    if (number < 0 || number > kLargestNumber) return std::nullopt;
    return number;
  }

  void add_gpu(const Json& entry, int line) {
    const auto id = number_of(entry);
    if (!id) {
      problem(line, "an entry has no 'gpu' that is a number");
      return;
    }
    if (std::ranges::count(ids_, *id) > 0) problem(line, fmt::format("GPU {} is there twice", *id));
    ids_.push_back(*id);
    read_.gpus.push_back({fmt::format("GPU{}", *id), line});
  }

  void put(AmdSmiTopic topic, std::size_t from, std::int64_t to_id, const Json& value) {
    const auto to = std::ranges::find(ids_, to_id);
    const int line = read_.gpus[from].line;
    if (to == ids_.end()) {
      problem(line, fmt::format("{} has a link to GPU {}, which is not there",
                                read_.gpus[from].name, to_id));
      return;
    }
    if (!value.is_string() && !value.is_number_integer()) {
      problem(line, fmt::format("{} has {} in place of a word about GPU {}", read_.gpus[from].name,
                                shown(value), to_id));
      return;
    }
    table(topic)[from][static_cast<std::size_t>(to - ids_.begin())] =
        value.is_string() ? value.get<std::string>() : value.dump();
  }

  void read_link(const Json& link, std::size_t from) {
    const auto to = number_of(link);
    if (!to) {
      problem(read_.gpus[from].line,
              fmt::format("{} has a link without a 'gpu'", read_.gpus[from].name));
      return;
    }
    for (const TopicNames& one : kTopics) {
      const auto value = link.find(one.key);
      if (value != link.end()) put(one.topic, from, *to, *value);
    }
  }

  void read_objects(const Json& entry, std::size_t from) {
    for (const TopicNames& one : kTopics) {
      const auto object = entry.find(one.column);
      if (object == entry.end() || !object->is_object()) continue;
      for (const auto& [key, value] : object->items()) {
        const auto to =
            key.starts_with("gpu_") ? parse_whole(key.substr(4), 0, kLargestNumber) : std::nullopt;
        if (!to) {
          problem(read_.gpus[from].line, fmt::format("{} is no GPU", quote(key)));
        } else {
          put(one.topic, from, *to, value);
        }
      }
    }
  }

  std::vector<std::int64_t> ids_;
};

}  // namespace

bool has_amd_smi_tables(std::string_view text) {
  const std::string_view head = without_mark(text.substr(0, std::min(text.size(), kLooksAt)));
  if (is_json(head)) return true;
  bool has_title = false;
  for (const std::string& line : split(without_colours(head), '\n')) {
    if (is_csv_header(line)) return true;
    const auto words = words_of(line);
    if (has_title && !words.empty() && is_bus_id(words[0])) return true;
    const std::string_view title = trim(line);
    has_title = std::ranges::any_of(kTopics, [&](const auto& one) { return one.title == title; });
  }
  return false;
}

AmdSmiTables read_amd_smi_tables(std::string_view text, const std::string& file) {
  if (text.size() > kMaxBytes) {
    throw Error(ErrorKind::input,
                {Diagnostic{"",
                            fmt::format("the text has {} bytes, more than the {} that are read",
                                        text.size(), kMaxBytes),
                            {},
                            {file, 0, 0}}});
  }
  const std::string_view head = without_mark(text.substr(0, std::min(text.size(), kLooksAt)));
  if (is_json(head)) return Lists(file).read(text);
  const auto lines = split(head, '\n');
  if (std::ranges::any_of(lines, is_csv_header)) return Csv(file).read(text);
  return Tables(file).read(text);
}

}  // namespace espalier
