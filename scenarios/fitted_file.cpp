// SPDX-License-Identifier: Apache-2.0
#include "scenarios/fitted_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "core/words.h"
#include "core/yaml.h"

namespace espalier {
namespace {

/// A map of YAML, keys in the order in which they come.
struct FigureTree {
  std::string figure;  ///< with its comment; empty: a map
  std::vector<std::pair<std::string, std::unique_ptr<FigureTree>>> children;

  FigureTree& child(const std::string& key) {
    const auto known = std::ranges::find_if(children, [&](auto& one) { return one.first == key; });
    if (known != children.end()) return *known->second;
    return *children.emplace_back(key, std::make_unique<FigureTree>()).second;
  }
};

std::string key_text(const std::string& key) {
  const bool is_plain = !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  return is_plain && (key[0] < '0' || key[0] > '9') ? key : yaml_quoted(key);
}

void print_tree(const FigureTree& tree, std::size_t indent, std::string& text) {
  for (const auto& [key, child] : tree.children) {
    text += fmt::format("{:{}}{}:{}\n", "", indent, key_text(key), child->figure);
    print_tree(*child, indent + 2, text);
  }
}

/// "a.log, b.log and 2 more", without their folders.
std::string short_files(const std::vector<FittedTime>& times) {
  constexpr std::size_t kNamed = 2;
  std::vector<std::string> names;
  for (const FittedTime& time : times) {
    const std::string& file = time.measured.file;
    const std::string name = printable(file.substr(file.rfind('/') + 1));
    if (std::ranges::count(names, name) == 0) names.push_back(name);
  }
  const std::size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(names.size() - more);
  return join(names, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string comment_of(const FittedConstant& constant, const std::string& like,
                       const std::string& files) {
  const std::string interval = constant.fitted.determined == Determined::at_limit
                                   ? "the limit of what is possible"
                                   : "interval " + interval_text(constant);
  return fmt::format("  # fitted on {}, {}; {}: {:.4g}", files, interval, like, constant.before);
}

/// How far simulated times are from the measured ones, as comments.
std::string errors_comment(const ProfileFit& fit) {
  std::string text = "# errors: medians of the times simulated with these figures\n";
  for (const BandDeviations& band : fitted_bands(fit.times, &FittedTime::error_after)) {
    text += fmt::format("#   {}: {:.1f} % ({})\n", band.band->title, 100 * band.median,
                        counted(band.times, "time"));
  }
  return text;
}

}  // namespace

std::string interval_text(const FittedConstant& constant) {
  if (constant.fitted.determined != Determined::yes) return {};
  return fmt::format("{:.4g} to {:.4g}", constant.fitted.low, constant.fitted.high);
}

std::string why_kept(const FittedConstant& constant, const std::vector<FittedConstant>& all) {
  switch (constant.fitted.determined) {
    case Determined::no_effect:
      return "no time depends on it";
    case Determined::uncertain:
      return "these times hardly depend on it";
    case Determined::confounded:
      return "it cannot be told from " + all[*constant.fitted.confounded_with].constant.name();
    default:
      return {};
  }
}

std::string print_fitted_profile(const ProfileFit& fit, const FitRequest& request,
                                 const std::vector<std::string>& sources) {
  const std::string like = profile_word(request.profile).runtime;
  const std::string files = short_files(fit.times);
  std::string text = "# Written by espalier fit.\n" + errors_comment(fit);
  text += "schema: espalier.profiles/1\nsources:\n";
  for (const std::string& source : sources) {
    text += fmt::format("  - {}\n", yaml_quoted(source));
  }
  text += fmt::format(
      "profiles:\n  fitted:\n    like: {}\n    title: {}\n", key_text(like),
      yaml_quoted(fmt::format("{}, fitted on {} measured on {}", like,
                              counted(fit.times.size(), "time"), request.machine.name)));
  FigureTree tree;
  for (const FittedConstant& constant : fit.constants) {
    if (!constant.is_changed()) continue;
    FigureTree* at = &tree;
    for (const std::string& key : constant.constant.path) at = &at->child(key);
    at->figure = fmt::format(" {:.4g}", constant.fitted.value) + comment_of(constant, like, files);
  }
  print_tree(tree, 4, text);
  return text;
}

}  // namespace espalier
