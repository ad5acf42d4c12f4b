// SPDX-License-Identifier: Apache-2.0
#include "core/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "core/words.h"
#include "core/yaml_tree.h"

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

/// Turns the parser's events into nodes. An alias is a node of its own, so that problems are told
/// where it stands, and shares what its anchor contains; values are counted as if that were copied,
/// so that no reader can be made to walk for hours.
class YamlValue::TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Document& document) : document_(document) {}

  const Node* root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_)
      throw Refused{mark, "a file must contain one document, but a second one begins here"};
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node& node = create(mark, "?", Kind::scalar);
    node.is_null = true;
    // Where nothing is written, the parser is at what follows, perhaps some lines below the key.
    if (!open_.empty() && open_.back().node->kind == Kind::map) {
      const auto& siblings = open_.back().node->children;
      if (siblings.size() % 2 == 1 && siblings.back()->line != node.line) {
        node.line = siblings.back()->line;
        node.column = siblings.back()->column;
      }
    }
    finish(node, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused{mark, "an anchor cannot contain itself"};
    count(mark, found->second->values);
    Node& node = document_.nodes.emplace_back(*found->second);
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    attach(node);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node& node = create(mark, tag, Kind::scalar);
    node.is_plain = tag != "!";
    node.text = &document_.texts.emplace_back(value);
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
      const auto [first, is_new] = seen.emplace(*key.text, &key);
      if (!is_new) {
        document_.add(key.line, key.column, "key " + quote(*key.text) + " appears twice",
                      fmt::format("the first one is on line {}", first->second->line));
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

}  // namespace espalier
