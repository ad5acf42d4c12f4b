// SPDX-License-Identifier: Apache-2.0
#include "formats/xml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/units.h"
#include "core/utf8.h"
#include "core/words.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxProblems = 50;

std::size_t line_of(const std::vector<std::size_t>& starts, std::size_t offset) {
  return static_cast<std::size_t>(std::ranges::upper_bound(starts, offset) - starts.begin());
}

/// Visits the elements and texts of a tree, parents first, without a call for every level.
/// `visit`: of a node and how many elements are open around it.
template <class Visit>
void visit_all(pugi::xml_node top, const Visit& visit) {
  int depth = 0;
  pugi::xml_node node = top;
  while (node) {
    visit(node, depth);
    if (node.first_child()) {
      node = node.first_child();
      ++depth;
      continue;
    }
    while (node && node != top && !node.next_sibling()) {
      node = node.parent();
      --depth;
    }
    if (!node || node == top) break;
    node = node.next_sibling();
  }
}

int depth_of(pugi::xml_node top) {
  int deepest = 0;
  visit_all(top, [&](pugi::xml_node, int depth) { deepest = std::max(deepest, depth); });
  return deepest;
}

/// The name of an attribute that an element has twice, which XML forbids; empty where none is.
std::string_view attribute_given_twice(pugi::xml_node node) {
  std::vector<std::string_view> names;
  for (const pugi::xml_attribute one : node.attributes()) names.emplace_back(one.name());
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  return twice == names.end() ? std::string_view() : *twice;
}

}  // namespace

std::string_view first_element(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with('<')) return {};
    const std::string_view end = text.starts_with("<!--") ? "-->" : ">";
    const bool precedes = text.starts_with("<!") || text.starts_with("<?");
    if (!precedes) return text.substr(1, text.find_first_of(" \t\r\n/>") - 1);
    const std::size_t at = text.find(end, 2);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + end.size());
  }
}

std::string element_name(pugi::xml_node node) { return fmt::format("<{}>", node.name()); }

std::string attribute(pugi::xml_node node, const char* name) {
  return std::string(trim(node.attribute(name).value()));
}

XmlText::XmlText(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)), line_starts_{0} {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
  const auto refuse = [&](std::size_t offset, const std::string& message,
                          const std::string& suggestion = {}) {
    const int line = static_cast<int>(line_of(line_starts_, offset));
    throw Error(ErrorKind::input, {Diagnostic{"", message, suggestion, {file_, line, 0}}});
  };
  if (text_.size() > kMaxBytes) {
    refuse(0, fmt::format("the file has {} bytes, more than the {} that are read", text_.size(),
                          kMaxBytes));
  }
  for (const char* declaration : {"<!DOCTYPE", "<!ENTITY"}) {
    const std::size_t at = text_.find(declaration);
    if (at != std::string::npos) {
      refuse(at, "document types (DOCTYPE) and entities are not read", "leave out the declaration");
    }
  }
  if (const std::size_t bad = first_not_utf8(text_); bad != std::string_view::npos) {
    refuse(bad, "the text is not well-formed: its encoding is not UTF-8");
  }
  const pugi::xml_parse_result parsed = document_.load_buffer(
      text_.data(), text_.size(), pugi::parse_default | pugi::parse_fragment, pugi::encoding_utf8);
  if (!parsed) {
    const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(parsed.offset, 0));
    refuse(
        std::min(offset, text_.size()),
        fmt::format("the XML is not well-formed: {}", parsed.description()),
        offset + 1 >= text_.size() ? "the file seems to be truncated: an element is unclosed" : "");
  }
  for (const pugi::xml_node node : document_.children()) {
    const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(node.offset_debug(), 0));
    const bool is_text = node.type() == pugi::node_pcdata || node.type() == pugi::node_cdata;
    if (is_text && !trim(node.value()).empty()) {
      refuse(offset, root_ ? "there is text after the document element"
                           : "there is text before the first element");
    }
    if (node.type() != pugi::node_element) continue;
    if (root_) refuse(offset, "there is a second element after the document element");
    root_ = node;
  }
  if (!root_) refuse(0, "the file is empty: it has no element");
  if (depth_of(root_) > kMaxDepth) {
    refuse(0, fmt::format("elements are nested more than {} deep", kMaxDepth));
  }
  visit_all(root_, [&](pugi::xml_node node, int) {
    const std::string_view twice = attribute_given_twice(node);
    if (twice.empty()) return;
    refuse(static_cast<std::size_t>(std::max<std::ptrdiff_t>(node.offset_debug(), 0)),
           fmt::format("the XML is not well-formed: {} has '{}' twice", element_name(node), twice));
  });
}

Location XmlText::where(pugi::xml_node node) const {
  const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(node.offset_debug(), 0));
  return {file_, static_cast<int>(line_of(line_starts_, offset)), 0};
}

void XmlText::problem(pugi::xml_node node, std::string message, std::string suggestion) {
  if (problems_.all().size() > kMaxProblems) return;
  if (problems_.all().size() == kMaxProblems) {
    problems_.add(where(root_), "there are more problems than these");
  } else {
    problems_.add(where(node), std::move(message), std::move(suggestion));
  }
}

std::optional<std::string> XmlText::need(pugi::xml_node node, const char* name) {
  std::string value = attribute(node, name);
  if (!value.empty()) return value;
  problem(node, fmt::format("{} has no '{}'", element_name(node), name));
  return std::nullopt;
}

std::optional<double> XmlText::need_number(pugi::xml_node node, const char* name,
                                           const XmlRange& range) {
  const auto text = need(node, name);
  if (!text) return std::nullopt;
  const auto value = parse_number(*text);
  if (!value) {
    problem(node, fmt::format("'{}' of {} must be a number, not {}", name, element_name(node),
                              quote(*text)));
    return std::nullopt;
  }
  if (*value >= range.low && *value <= range.high) return value;
  problem(node, fmt::format("'{}' of {} is {}, but must be from {} to {}", name, element_name(node),
                            *text, range.low, range.high));
  return std::nullopt;
}

double XmlText::number(pugi::xml_node node, const char* name, const XmlRange& range,
                       double absent) {
  if (attribute(node, name).empty()) return absent;
  return need_number(node, name, range).value_or(absent);
}

std::optional<int> XmlText::need_whole(pugi::xml_node node, const char* name,
                                       const XmlRange& range) {
  const auto value = need_number(node, name, range);
  if (!value) return std::nullopt;
  if (*value == std::floor(*value)) return static_cast<int>(*value);
  problem(node, fmt::format("'{}' of {} must be a whole number, not {}", name, element_name(node),
                            quote(attribute(node, name))));
  return std::nullopt;
}

int XmlText::whole(pugi::xml_node node, const char* name, const XmlRange& range, int absent) {
  if (attribute(node, name).empty()) return absent;
  return need_whole(node, name, range).value_or(absent);
}

}  // namespace espalier
