// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "core/yaml.h"

namespace espalier {

/// A node of a document, owned by it.
struct YamlValue::Node {
  const Document* document = nullptr;
  Kind kind = Kind::scalar;
  bool is_plain = true;  ///< not between quotes
  bool is_null = false;  ///< nothing was written, or "null"
  int line = 0;
  int column = 0;
  std::size_t values = 1;             ///< in this subtree, aliases counted every time
  const std::string* text = nullptr;  ///< of a scalar that is not null; aliases share it
  std::vector<const Node*> children;  ///< of a list; of a map key, value, key, value, ...

  /// For messages: "not a list".
  const char* kind_name() const {
    if (is_null) return "nothing";
    return kind == Kind::scalar ? "text" : kind == Kind::list ? "a list" : "a map";
  }
};

/// What all values of one document keep alive together.
struct YamlValue::Document {
  std::string file;
  DiagnosticList* problems = nullptr;
  std::deque<Node> nodes;         ///< stable addresses
  std::deque<std::string> texts;  ///< the same

  void add(int line, int column, std::string message, std::string suggestion = {}) const {
    problems->add({file, line, column}, std::move(message), std::move(suggestion));
  }
};

}  // namespace espalier
