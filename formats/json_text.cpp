// SPDX-License-Identifier: Apache-2.0
#include "formats/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>

#include "core/words.h"

namespace espalier {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = 64 << 20;
constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxProblems = 50;

/// Goes over a text and counts its lines, which the parser does not tell. All copies count as one.
class Counting {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Counting(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  Counting& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  bool operator==(const Counting& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  int* line_;
};

/// Follows the parser through the text: where it is, and which keys each open object has had.
class Tracker {
 public:
  Tracker(JsonText::Describe describe, JsonLines* lines) : describe_(describe), lines_(lines) {}

  /// Of what the parser has read.
  int line = 1;

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (static_cast<std::size_t>(depth) > kMaxDepth) too_deep_ = true;
    switch (event) {
      case Event::key:
        key_ = parsed.get<std::string>();
        if (!too_deep_ && !open_.back().keys.insert(key_).second) {
          twice.push_back({where(), key_, line});
        }
        break;
      case Event::object_start:
      case Event::array_start:
        step_into(event == Event::array_start);
        break;
      case Event::object_end:
      case Event::array_end:
        open_.pop_back();
        break;
      case Event::value:
        count_element();
        break;
    }
    return !too_deep_;
  }

  std::string where() const {
    std::vector<JsonStep> path;
    for (const Frame& frame : open_) {
      if (!frame.is_array) path.push_back(frame.step);
    }
    return describe_(path);
  }
  const std::string& key() const { return key_; }
  bool too_deep() const { return too_deep_; }

  struct Twice {
    std::string where;
    std::string key;
    int line = 0;
  };
  std::vector<Twice> twice;

 private:
  struct Frame {
    JsonStep step;
    bool is_array = false;
    int elements = 0;
    std::string key;  ///< of an array
    std::set<std::string> keys;
  };

  void count_element() {
    if (!open_.empty() && open_.back().is_array) ++open_.back().elements;
  }

  void step_into(bool is_array) {
    Frame frame;
    frame.is_array = is_array;
    frame.key = key_;
    if (!open_.empty()) {
      Frame& parent = open_.back();
      frame.step = parent.is_array ? JsonStep{parent.key, parent.elements} : JsonStep{key_, -1};
    }
    count_element();
    open_.push_back(std::move(frame));
    if (lines_ != nullptr && !is_array) lines_->try_emplace(where(), line);
  }

  JsonText::Describe describe_;
  JsonLines* lines_;
  std::vector<Frame> open_;
  std::string key_;
  bool too_deep_ = false;
};

/// Line and column of a byte, counted from 1.
Location place_of(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1);
  return {file, static_cast<int>(lines) + 1, static_cast<int>(std::max<std::size_t>(column, 1))};
}

/// What the JSON library says after its own prefixes.
std::string reason(const json::exception& error) {
  std::string text = error.what();
  const std::size_t end = text.find("; last read");
  if (end != std::string::npos) text.resize(end);
  const std::size_t colon = text.rfind(": ");
  return printable(colon == std::string::npos ? text : text.substr(colon + 2));
}

json parse(std::string_view text, const std::string& file, Tracker& tracker) {
  try {
    return json::parse(Counting(text.data(), &tracker.line),
                       Counting(text.data() + text.size(), &tracker.line), std::ref(tracker));
  } catch (const json::parse_error& error) {
    throw Error(ErrorKind::input, {{"", fmt::format("this is no JSON: {}", reason(error)), "",
                                    place_of(text, error.byte, file)}});
  } catch (const json::out_of_range&) {
    const std::string where = tracker.where();
    throw Error(ErrorKind::input,
                {{"",
                  fmt::format("{}{}'{}' is out of range: no number is so large", where,
                              where.empty() ? "" : ": ", printable(tracker.key())),
                  "",
                  {file, tracker.line, 0}}});
  }
}

}  // namespace

std::string shown(const json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (value.is_string()) return "the text " + quote(value.get<std::string>());
  return value.dump();
}

json parse_json(std::string_view text, const std::string& file, JsonText::Describe describe,
                JsonLines* lines) {
  DiagnosticList problems;
  const auto add = [&](const std::string& where, const std::string& message, int line = 0) {
    if (problems.all().size() >= kMaxProblems) return;
    problems.add({file, line, 0}, where.empty() ? message : where + ": " + message);
  };
  if (text.size() > kMaxBytes) {
    add("", fmt::format("the file has {} bytes, but at most {} are read", text.size(), kMaxBytes));
    problems.throw_if_any();
  }
  Tracker tracker(describe, lines);
  json root = parse(text, file, tracker);
  if (tracker.too_deep()) {
    add("",
        fmt::format("objects and lists stand within each other on more than {} levels", kMaxDepth));
  }
  for (const auto& [where, key, line] : tracker.twice) {
    add(where, fmt::format("the key {} is given twice", quote(key)), line);
  }
  problems.throw_if_any();
  return root;
}

JsonText::JsonText(std::string_view text, std::string file, Describe describe)
    : file_(std::move(file)), root_(parse_json(text, file_, describe, &lines_)) {
  if (!root_.is_object()) {
    problem("", fmt::format("the file holds {}, not an object", shown(root_)));
  }
  problems_.throw_if_any();
}

void JsonText::problem(const std::string& where, const std::string& message,
                       std::string suggestion) {
  if (problems_.all().size() > kMaxProblems) return;
  if (problems_.all().size() == kMaxProblems) {
    problems_.add({file_, 0, 0}, "there are more problems than these");
    return;
  }
  problems_.add({file_, line_of(where), 0}, where.empty() ? message : where + ": " + message,
                std::move(suggestion));
}

int JsonText::line_of(std::string_view where) const {
  for (std::string name(where);;) {
    if (const auto known = lines_.find(name); known != lines_.end()) return known->second;
    const std::size_t comma = name.rfind(", ");
    if (name.empty()) return 0;
    name.resize(comma == std::string::npos ? 0 : comma);
  }
}

const json* JsonText::member(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found != object.end()) return &*found;
  problem(where, fmt::format("'{}' is missing", key));
  return nullptr;
}

std::optional<std::int64_t> JsonText::in_range(const json& value, const std::string& name,
                                               const std::string& where, std::int64_t low,
                                               std::int64_t high) {
  if (!value.is_number_integer()) {
    const bool large = value.is_number_float() && std::abs(value.get<double>()) > 9e15;
    problem(where,
            large ? fmt::format("'{}' is out of range: {} to {} is allowed", name, low, high)
                  : fmt::format("'{}' must be an integer number, but is {}", name, shown(value)));
    return {};
  }
  const bool fits = value.is_number_unsigned()
                        ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(high)
                        : value.get<std::int64_t>() <= high;
  const bool negative = !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
  if (!fits || (value.get<std::int64_t>() < low)) {
    problem(where, fmt::format("'{}' is {}, which is {}: {} to {} is allowed", name, value.dump(),
                               negative ? "negative" : "out of range", low, high));
    return {};
  }
  return value.get<std::int64_t>();
}

std::optional<std::int64_t> JsonText::integer(const json& object, const char* key,
                                              const std::string& where, std::int64_t low,
                                              std::int64_t high) {
  const json* value = member(object, key, where);
  if (value == nullptr) return {};
  return in_range(*value, key, where, low, high);
}

std::int64_t JsonText::integer_or(const json& object, const char* key, const std::string& where,
                                  std::int64_t low, std::int64_t high, std::int64_t absent) {
  if (!object.contains(key)) return absent;
  return integer(object, key, where, low, high).value_or(absent);
}

std::optional<std::string> JsonText::word(const json& object, const char* key,
                                          const std::string& where) {
  const json* value = member(object, key, where);
  if (value == nullptr) return {};
  if (!value->is_string()) {
    problem(where, fmt::format("'{}' must be a text, but is {}", key, shown(*value)));
    return {};
  }
  return value->get<std::string>();
}

std::optional<bool> JsonText::truth(const json& object, const char* key, const std::string& where) {
  const json* value = member(object, key, where);
  if (value == nullptr) return {};
  if (!value->is_boolean()) {
    problem(where, fmt::format("'{}' must be true or false, but is {}", key, shown(*value)));
    return {};
  }
  return value->get<bool>();
}

bool JsonText::truth_or(const json& object, const char* key, const std::string& where,
                        bool absent) {
  return object.contains(key) ? truth(object, key, where).value_or(absent) : absent;
}

const json* JsonText::list(const json& object, const char* key, const std::string& where) {
  const json* value = member(object, key, where);
  if (value != nullptr && !value->is_array()) {
    problem(where, fmt::format("'{}' must be a list, but is {}", key, shown(*value)));
    return nullptr;
  }
  return value;
}

const json* JsonText::list_or(const json& object, const char* key, const std::string& where) {
  return object.contains(key) ? list(object, key, where) : nullptr;
}

std::vector<int> JsonText::integers(const json& object, const char* key, const std::string& where,
                                    int low, int high) {
  std::vector<int> numbers;
  const json* values = list(object, key, where);
  if (values == nullptr) return numbers;
  for (const json& value : *values) {
    const auto number = in_range(value, key, where, low, high);
    numbers.push_back(static_cast<int>(number.value_or(low)));
  }
  return numbers;
}

bool JsonText::is_object(const json& value, const std::string& where) {
  if (value.is_object()) return true;
  problem(where, fmt::format("an object is expected here, not {}", shown(value)));
  return false;
}

}  // namespace espalier
