// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/units.h"
#include "core/words.h"
#include "core/yaml_tree.h"

namespace espalier {

YamlValue YamlValue::child(const Node* node) const {
  return YamlValue(std::shared_ptr<const Node>(node_, node));
}

YamlValue::Kind YamlValue::kind() const { return node_ ? node_->kind : Kind::missing; }

Location YamlValue::where() const {
  return node_ ? Location{node_->document->file, node_->line, node_->column} : Location{};
}

void YamlValue::problem(std::string message, std::string suggestion) const {
  if (!node_) return;
  node_->document->add(node_->line, node_->column, std::move(message), std::move(suggestion));
}

const std::string* YamlValue::scalar(std::string_view what, std::string_view wanted) const {
  if (!node_) return nullptr;
  if (node_->kind == Kind::scalar && !node_->is_null) return node_->text;
  problem(fmt::format("{} must be {}, not {}", what, wanted, node_->kind_name()));
  return nullptr;
}

bool YamlValue::plain(std::string_view what, std::string_view wanted) const {
  if (node_->is_plain) return true;
  problem(fmt::format("{} must be {}, not text between quotes", what, wanted),
          "leave out the quotes");
  return false;
}

std::optional<std::string> YamlValue::text(std::string_view what) const {
  const std::string* value = scalar(what, "text");
  if (!value) return std::nullopt;
  // Texts are printed: they must not move a terminal's cursor or worse.
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
  };
  if (const auto control = std::ranges::find_if(*value, is_control); control != value->end()) {
    problem(fmt::format("{} contains the control character {}", what,
                        printable(std::string(1, *control))));
    return std::nullopt;
  }
  return *value;
}

std::optional<double> YamlValue::number(std::string_view what) const {
  const std::string* value = scalar(what, "a number");
  if (!value || !plain(what, "a number")) return std::nullopt;
  const std::optional<double> number = parse_number(*value);
  if (!number) problem(fmt::format("{} must be a number, not {}", what, quote(*value)));
  return number;
}

std::optional<std::int64_t> YamlValue::integer(std::string_view what) const {
  const std::string* value = scalar(what, "a whole number");
  if (!value || !plain(what, "a whole number")) return std::nullopt;
  std::int64_t number = 0;
  const char* end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error == std::errc() && stop == end) return number;
  const bool too_large = error == std::errc::result_out_of_range && stop == end;
  problem(too_large ? fmt::format("{} is out of range: {}", what, quote(*value))
                    : fmt::format("{} must be a whole number, not {}", what, quote(*value)));
  return std::nullopt;
}

std::optional<bool> YamlValue::boolean(std::string_view what) const {
  const std::string* value = scalar(what, "true or false");
  if (!value || !plain(what, "true or false")) return std::nullopt;
  if (*value == "true") return true;
  if (*value == "false") return false;
  problem(fmt::format("{} must be true or false, not {}", what, quote(*value)));
  return std::nullopt;
}

std::vector<YamlValue> YamlValue::items(std::string_view what) const {
  std::vector<YamlValue> values;
  if (!node_) return values;
  if (node_->kind != Kind::list) {
    problem(fmt::format("{} must be a list, not {}", what, node_->kind_name()));
    return values;
  }
  values.reserve(node_->children.size());
  for (const Node* item : node_->children) values.push_back(child(item));
  return values;
}

std::vector<YamlValue> YamlValue::one_or_more() const {
  if (!node_) return {};
  if (node_->kind != Kind::list) return {*this};
  return items({});
}

YamlMap::YamlMap(const YamlValue& value, std::string what) : what_(std::move(what)) {
  if (!value.present()) return;
  if (value.kind() == YamlValue::Kind::map) {
    value_ = value;
    return;
  }
  value.problem(
      fmt::format("{} must be a map of keys and values, not {}", what_, value.node_->kind_name()));
}

YamlValue YamlMap::find(std::string_view key, std::size_t offset) const {
  if (!value_.present()) return {};
  const auto& children = value_.node_->children;
  for (std::size_t i = 0; i < children.size(); i += 2) {
    if (*children[i]->text == key) return value_.child(children[i + offset]);
  }
  return {};
}

YamlValue YamlMap::get(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
  return find(key, 1);
}

YamlValue YamlMap::need(const std::string& key) {
  YamlValue value = get(key);
  if (!value.present()) problem(fmt::format("{} needs '{}'", what_, key));
  return value;
}

std::vector<std::pair<std::string, YamlValue>> YamlMap::entries() {
  all_known_ = true;
  std::vector<std::pair<std::string, YamlValue>> entries;
  if (!value_.present()) return entries;
  const auto& children = value_.node_->children;
  entries.reserve(children.size() / 2);
  for (std::size_t i = 0; i < children.size(); i += 2) {
    entries.emplace_back(*children[i]->text, value_.child(children[i + 1]));
  }
  return entries;
}

std::string YamlMap::describe(std::string_view key) const {
  return fmt::format("'{}' of {}", key, what_);
}

std::string YamlMap::text(const std::string& key, std::string default_value) {
  return get(key).text(describe(key)).value_or(std::move(default_value));
}

double YamlMap::number(const std::string& key, double default_value) {
  return get(key).number(describe(key)).value_or(default_value);
}

std::int64_t YamlMap::integer(const std::string& key, std::int64_t default_value) {
  return get(key).integer(describe(key)).value_or(default_value);
}

bool YamlMap::boolean(const std::string& key, bool default_value) {
  return get(key).boolean(describe(key)).value_or(default_value);
}

void YamlMap::finish() {
  if (!value_.present() || all_known_) return;
  const auto& children = value_.node_->children;
  for (std::size_t i = 0; i < children.size(); i += 2) {
    const std::string& key = *children[i]->text;
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    value_.child(children[i])
        .problem(fmt::format("unknown key {} in {}", quote(key), what_), did_you_mean(key, known_));
  }
}

void YamlMap::problem(std::string message, std::string suggestion) const {
  value_.problem(std::move(message), std::move(suggestion));
}

void YamlMap::key_problem(std::string_view key, std::string message, std::string suggestion) const {
  const YamlValue at = find(key, 0);
  (at.present() ? at : value_).problem(std::move(message), std::move(suggestion));
}

std::string yaml_quoted(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      all += '\\';
      all += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      all += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      all += c;
    }
  }
  return all + '"';
}

}  // namespace espalier
