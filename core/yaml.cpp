// SPDX-License-Identifier: Apache-2.0
#include "core/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <sstream>
#include <unordered_map>

#include "core/units.h"
#include "core/words.h"

namespace espalier {

namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
/// The parser looks ahead to the end of a line, however deeply that is nested: 1 s per MiB.
constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDepth = 100;
constexpr std::size_t kMaxValues = 1'000'000;

/// Thrown inside the parser to stop it; never leaves this file.
struct Refused {
  YAML::Mark mark;
  std::string message;
};

/// The first line that is too long, counted from 1, or 0.
int overlong_line(std::string_view text) {
  for (int line = 1;; ++line) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    if (length > kMaxLineBytes) return line;
    if (length == text.size()) return 0;
    text.remove_prefix(length + 1);
  }
}

}  // namespace

struct YamlValue::Node {
  const Document* document = nullptr;
  Kind kind = Kind::scalar;
  bool is_plain = true;  ///< not between quotes
  bool is_null = false;  ///< nothing was written, or "null"
  int line = 0;
  int column = 0;
  std::size_t values = 1;             ///< in this subtree, aliases counted every time
  std::string text;                   ///< of a scalar
  std::vector<const Node*> children;  ///< of a list; of a map key, value, key, value, ...

  /// For messages: "not a list".
  const char* kind_name() const {
    if (is_null) return "nothing";
    return kind == Kind::scalar ? "text" : kind == Kind::list ? "a list" : "a map";
  }
};

struct YamlValue::Document {
  std::string file;
  DiagnosticList* problems = nullptr;
  std::deque<Node> nodes;  ///< stable addresses

  void add(int line, int column, std::string message, std::string suggestion = {}) const {
    problems->add({file, line, column}, std::move(message), std::move(suggestion));
  }
};

/// Turns the parser's events into nodes. Aliases share their anchor's node, so nothing is copied;
/// values are counted as if they were, so that no reader can be made to walk for hours.
class YamlValue::TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Document& document) : document_(document) {}

  const Node* root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) throw Refused{mark, "a file holds one document, and a second one begins here"};
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node& node = create(mark, "?", Kind::scalar);
    node.is_null = true;
    finish(node, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused{mark, "an anchor can't contain itself"};
    count(mark, found->second->values);
    attach(*found->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node& node = create(mark, tag, Kind::scalar);
    node.is_plain = tag != "!";
    node.text = value;
    finish(node, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Kind::list);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Kind::map);
  }
  void OnMapEnd() override {
    check_keys(*open_.back().node);
    close();
  }

 private:
  struct Open {
    Node* node;
    YAML::anchor_t anchor;
  };

  void count(const YAML::Mark& mark, std::size_t values) {
    values_ += values;
    if (values_ > kMaxValues) {
      throw Refused{mark, fmt::format("more than {} values in one document", kMaxValues)};
    }
  }

  Node& create(const YAML::Mark& mark, const std::string& tag, Kind kind) {
    count(mark, 1);
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{mark, "tags such as " + quote(tag) + " have no meaning here"};
    }
    Node& node = document_.nodes.emplace_back();
    node.document = &document_;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void attach(const Node& node) {
    if (open_.empty()) {
      root_ = &node;
    } else {
      open_.back().node->children.push_back(&node);
      open_.back().node->values += node.values;
    }
  }

  void finish(Node& node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = &node;
    attach(node);
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Kind kind) {
    if (open_.size() == kMaxDepth) {
      throw Refused{mark, fmt::format("nested deeper than {} levels", kMaxDepth)};
    }
    open_.push_back({&create(mark, tag, kind), anchor});
  }

  void close() {
    const Open done = open_.back();
    open_.pop_back();
    finish(*done.node, done.anchor);
  }

  /// Reports and drops entries whose key was there before or is no scalar.
  void check_keys(Node& map) {
    std::unordered_map<std::string_view, const Node*> seen;
    std::vector<const Node*> kept;
    kept.reserve(map.children.size());
    for (std::size_t i = 0; i + 1 < map.children.size(); i += 2) {
      const Node& key = *map.children[i];
      if (key.kind != Kind::scalar || key.is_null) {
        document_.add(key.line, key.column, "a key must be a word");
        continue;
      }
      const auto [first, is_new] = seen.emplace(key.text, &key);
      if (!is_new) {
        document_.add(key.line, key.column, "key " + quote(key.text) + " appears twice",
                      fmt::format("the first one is in line {}", first->second->line));
        continue;
      }
      kept.push_back(&key);
      kept.push_back(map.children[i + 1]);
    }
    map.children = std::move(kept);
  }

  Document& document_;
  bool started_ = false;
  const Node* root_ = nullptr;
  std::size_t values_ = 0;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, const Node*> anchors_;
};

YamlValue YamlValue::parse(std::string_view text, const std::string& file,
                           DiagnosticList& problems) {
  const auto document = std::make_shared<Document>();
  document->file = file;
  document->problems = &problems;
  if (text.size() > kMaxBytes) {
    document->add(0, 0, "the document is larger than 16 MiB");
    return {};
  }
  if (const int line = overlong_line(text); line > 0) {
    document->add(line, 1, "the line is longer than 1 MiB");
    return {};
  }
  TreeBuilder builder(*document);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    // The second call finds the end of the file, or makes the builder refuse a second document.
    if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& error) {
    document->add(error.mark.line + 1, error.mark.column + 1,
                  "not valid YAML: " + printable(error.msg));
    return {};
  } catch (const Refused& refused) {
    document->add(refused.mark.line + 1, refused.mark.column + 1, refused.message);
    return {};
  }
  if (builder.root() == nullptr || builder.root()->is_null) {
    document->add(1, 1, "the document is empty");
    return {};
  }
  return YamlValue(std::shared_ptr<const Node>(document, builder.root()));
}

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
  if (node_->kind == Kind::scalar && !node_->is_null) return &node_->text;
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
  return value ? std::optional(*value) : std::nullopt;
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
    if (children[i]->text == key) return value_.child(children[i + offset]);
  }
  return {};
}

YamlValue YamlMap::get(const std::string& key) {
  known_.push_back(key);
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
    entries.emplace_back(children[i]->text, value_.child(children[i + 1]));
  }
  return entries;
}

std::string YamlMap::describe(std::string_view key) const {
  return fmt::format("'{}' of {}", key, what_);
}

std::string YamlMap::text(const std::string& key, std::string otherwise) {
  return get(key).text(describe(key)).value_or(std::move(otherwise));
}

double YamlMap::number(const std::string& key, double otherwise) {
  return get(key).number(describe(key)).value_or(otherwise);
}

std::int64_t YamlMap::integer(const std::string& key, std::int64_t otherwise) {
  return get(key).integer(describe(key)).value_or(otherwise);
}

bool YamlMap::boolean(const std::string& key, bool otherwise) {
  return get(key).boolean(describe(key)).value_or(otherwise);
}

void YamlMap::finish() {
  if (!value_.present() || all_known_) return;
  const auto& children = value_.node_->children;
  for (std::size_t i = 0; i < children.size(); i += 2) {
    const std::string& key = children[i]->text;
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

}  // namespace espalier
