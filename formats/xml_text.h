// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace espalier {

/// A number's bounds and what a message calls them.
struct XmlRange {
  double low = 0;
  double high = 0;
};

/// An XML text that others wrote: read without entities and document types, within limits of size
/// and depth, with the line of every element. Problems are collected. Private to the room.
class XmlText {
 public:
  /// Throws Error{input} when the text is no XML with one element at its top.
  XmlText(std::string_view text, std::string file);

  pugi::xml_node root() const { return root_; }
  Location where(pugi::xml_node node) const;

  /// Notes a problem at the element's line.
  void problem(pugi::xml_node node, std::string message, std::string suggestion = {});
  DiagnosticList& problems() { return problems_; }

  /// Trimmed; nothing, and a problem, when the attribute is not there or empty.
  std::optional<std::string> need(pugi::xml_node node, const char* name);
  /// A decimal number within the range; nothing, and a problem, when it is none. `need_number`
  /// also when it is not there, `number` then has `absent`.
  std::optional<double> need_number(pugi::xml_node node, const char* name, const XmlRange& range);
  double number(pugi::xml_node node, const char* name, const XmlRange& range, double absent);
  /// The same for whole numbers. \pre an int holds the range
  std::optional<int> need_whole(pugi::xml_node node, const char* name, const XmlRange& range);
  int whole(pugi::xml_node node, const char* name, const XmlRange& range, int absent);

 private:
  std::string text_;
  std::string file_;
  std::vector<std::size_t> line_starts_;
  pugi::xml_document document_;
  pugi::xml_node root_;
  DiagnosticList problems_;
};

/// The name of the first element of a text that may be XML, behind what may precede it; empty when
/// there is none.
std::string_view first_element(std::string_view text);
/// "<gpu>", for messages.
std::string element_name(pugi::xml_node node);
/// The attribute without blanks around it; empty when there is none.
std::string attribute(pugi::xml_node node, const char* name);

}  // namespace espalier
