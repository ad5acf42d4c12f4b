// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.h"

namespace espalier {

/// A member of an object or an element of an array on the path to a JSON value.
struct JsonStep {
  std::string key;  ///< of the member, or of the array that `index` counts in
  int index = -1;
};

/// Lines on which objects begin, by what describes them.
using JsonLines = std::unordered_map<std::string, int>;

/// A JSON text that others wrote: one object, read within limits of size and depth, without keys
/// given twice and numbers that can't be held. Problems are collected; they name a value by the
/// object it stands in, as `describe` says. Private to the room.
class JsonText {
 public:
  /// Says where an object is: "gpu 0, threadblock 1, op 2" for the steps "gpus" 0, ...
  using Describe = std::string (*)(const std::vector<JsonStep>& path);

  /// Throws Error{input} when the text is no such object, or has keys twice.
  JsonText(std::string_view text, std::string file, Describe describe);

  const nlohmann::json& root() const { return root_; }
  DiagnosticList& problems() { return problems_; }
  const std::string& file() const { return file_; }
  /// The line on which an object begins that `where` describes, or the nearest one around it.
  int line_of(std::string_view where) const;

  /// "<where>: <message>"; nothing before the message where `where` is empty.
  void problem(const std::string& where, const std::string& message, std::string suggestion = {});

  /// The member of an object, or nothing, and a problem, when it is not there or of another type.
  /// An absent member is no problem with `value_or`.
  std::optional<std::int64_t> integer(const nlohmann::json& object, const char* key,
                                      const std::string& where, std::int64_t low,
                                      std::int64_t high);
  std::int64_t integer_or(const nlohmann::json& object, const char* key, const std::string& where,
                          std::int64_t low, std::int64_t high, std::int64_t absent);
  std::optional<std::string> word(const nlohmann::json& object, const char* key,
                                  const std::string& where);
  std::optional<bool> truth(const nlohmann::json& object, const char* key,
                            const std::string& where);
  bool truth_or(const nlohmann::json& object, const char* key, const std::string& where,
                bool absent);
  /// Null, and a problem, when it is not there or no array; `list_or` is null without a problem
  /// when it is not there.
  const nlohmann::json* list(const nlohmann::json& object, const char* key,
                             const std::string& where);
  const nlohmann::json* list_or(const nlohmann::json& object, const char* key,
                                const std::string& where);
  /// The integers of an array within a range.
  std::vector<int> integers(const nlohmann::json& object, const char* key, const std::string& where,
                            int low, int high);
  /// Whether a value is an object; a problem when it is none.
  bool is_object(const nlohmann::json& value, const std::string& where);

 private:
  const nlohmann::json* member(const nlohmann::json& object, const char* key,
                               const std::string& where);
  std::optional<std::int64_t> in_range(const nlohmann::json& value, const std::string& name,
                                       const std::string& where, std::int64_t low,
                                       std::int64_t high);
  std::string file_;
  JsonLines lines_;
  nlohmann::json root_;
  DiagnosticList problems_;
};

/// A JSON text that others wrote, read within limits of size and depth. Throws Error{input} when it
/// is none, has keys twice, or numbers that can't be held. `lines`: gets those of all objects.
/// Private to the room.
nlohmann::json parse_json(std::string_view text, const std::string& file,
                          JsonText::Describe describe, JsonLines* lines = nullptr);

/// "a list", "the text 'two'", "true", "4.5": a value, for messages.
std::string shown(const nlohmann::json& value);

}  // namespace espalier
