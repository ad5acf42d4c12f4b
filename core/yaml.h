// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace espalier {

/// A value of a YAML document that knows its location. Cheap to copy. The readers below never
/// throw: they add what is wrong to the DiagnosticList given to `parse` and return nothing.
class YamlValue {
 public:
  enum class Kind { missing, scalar, list, map };

  /// Parses one document. Syntax errors, tags, nesting deeper than 100, documents over 16 MiB and
  /// of more than a million values (aliases counted each time) are diagnosed, and the value
  /// returned is then missing. Duplicate keys are diagnosed too; the first one counts. Columns
  /// count bytes. `problems` must outlive all values of the document.
  static YamlValue parse(std::string_view text, const std::string& file, DiagnosticList& problems);

  YamlValue() = default;
  Kind kind() const;
  bool present() const { return kind() != Kind::missing; }
  Location where() const;

  /// Scalars; nothing for a missing value. `what` names it in messages ("bandwidth of a link").
  std::optional<std::string> text(std::string_view what) const;
  std::optional<double> number(std::string_view what) const;  ///< finite, not between quotes
  std::optional<std::int64_t> integer(std::string_view what) const;
  std::optional<bool> boolean(std::string_view what) const;

  /// The elements of a list; a problem (and nothing) when this is not a list.
  std::vector<YamlValue> items(std::string_view what) const;
  /// Same, but a scalar or a map counts as a list of one, and a missing value as none.
  std::vector<YamlValue> one_or_more() const;

  /// Adds a problem at this value; nothing happens when it is missing.
  void problem(std::string message, std::string suggestion = {}) const;

 private:
  friend class YamlMap;
  struct Document;
  struct Node;
  class TreeBuilder;
  explicit YamlValue(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  YamlValue child(const Node* node) const;
  /// The text of a scalar; otherwise a problem that says what was `wanted`.
  const std::string* scalar(std::string_view what, std::string_view wanted) const;
  bool plain(std::string_view what, std::string_view wanted) const;
  std::shared_ptr<const Node> node_;
};

/// A strict view of a map: the caller asks for every key that may appear, and `finish` reports the
/// rest with did-you-mean. Ask for optional keys with `get` and for required ones with `need`.
class YamlMap {
 public:
  /// A problem is added when `value` is not a map (all keys are then missing, silently).
  YamlMap(const YamlValue& value, std::string what);

  YamlValue get(const std::string& key);
  YamlValue need(const std::string& key);  ///< a problem when absent

  /// Entries in file order, for maps whose keys are names chosen by the user. Marks all as known.
  std::vector<std::pair<std::string, YamlValue>> entries();

  /// Shorthands: the value, or `default_value` when the key is absent or wrong (which is
  /// diagnosed).
  std::string text(const std::string& key, std::string default_value = {});
  double number(const std::string& key, double default_value);
  std::int64_t integer(const std::string& key, std::int64_t default_value);
  bool boolean(const std::string& key, bool default_value);

  /// "'gbps' of a link": how the messages above name the value of a key.
  std::string describe(std::string_view key) const;

  /// Reports every key that was not asked for.
  void finish();
  Location where() const { return value_.where(); }
  void problem(std::string message, std::string suggestion = {}) const;
  /// Adds a problem at the key itself (at the map when it has no such key).
  void key_problem(std::string_view key, std::string message, std::string suggestion = {}) const;

 private:
  /// The key itself (offset 0) or its value (1); missing when there is none.
  YamlValue find(std::string_view key, std::size_t offset) const;
  YamlValue value_;
  std::string what_;
  std::vector<std::string> known_;
  bool all_known_ = false;
};

/// A scalar that YAML reads back as `text`, whatever it contains:
/// in double quotes, with escapes for what cannot be printed.
std::string yaml_quoted(std::string_view text);

}  // namespace espalier
