// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace espalier {

/// A value of a YAML document that knows where it stands. Cheap to copy. The readers below never
/// throw: they add what is wrong to the DiagnosticList given to `parse` and answer nothing.
class YamlValue {
 public:
  enum class Kind { missing, scalar, list, map };

  /// Parses one document. Syntax errors, duplicate keys, anchors nested too deep (100) and documents
  /// over 16 MiB are diagnosed; the value returned then is missing. `problems` must outlive it.
  static YamlValue parse(std::string_view text, const std::string& file, DiagnosticList& problems);

  YamlValue() = default;
  Kind kind() const;
  bool present() const { return kind() != Kind::missing; }
  Location where() const;

  /// Scalars. `what` names the value in messages ("bandwidth of a link").
  std::optional<std::string> text(std::string_view what) const;
  std::optional<double> number(std::string_view what) const;  ///< finite
  std::optional<std::int64_t> integer(std::string_view what) const;
  std::optional<bool> boolean(std::string_view what) const;

  /// The elements of a list; a problem (and nothing) when this is not a list.
  std::vector<YamlValue> items(std::string_view what) const;
  /// Same, but a scalar or a map counts as a list of one, and a missing value as none.
  std::vector<YamlValue> one_or_more() const;

  void problem(std::string message, std::string suggestion = {}) const;

 private:
  friend class YamlMap;
  struct Node;
  std::shared_ptr<const Node> node_;
};

/// A strict view of a mapping: every key that may appear is asked for, and `finish` reports the rest
/// with did-you-mean. Ask for optional keys with `get`, for needed ones with `need`.
class YamlMap {
 public:
  /// A problem is added when `value` is not a map (all keys are then missing, silently).
  YamlMap(const YamlValue& value, std::string what);

  YamlValue get(const std::string& key);
  YamlValue need(const std::string& key);  ///< a problem when absent

  /// Entries in file order, for maps whose keys are names chosen by the user. Marks all as known.
  std::vector<std::pair<std::string, YamlValue>> entries();

  /// Shorthands: the value, or `otherwise` when the key is absent or wrong.
  std::string text(const std::string& key, std::string otherwise = {});
  double number(const std::string& key, double otherwise);
  std::int64_t integer(const std::string& key, std::int64_t otherwise);
  bool boolean(const std::string& key, bool otherwise);

  /// Reports every key that was not asked for.
  void finish();
  Location where() const { return value_.where(); }
  void problem(std::string message, std::string suggestion = {}) const;

 private:
  YamlValue value_;
  std::string what_;
  std::vector<std::string> known_;
};

}  // namespace espalier
