// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include "core/check.h"

namespace espalier {

namespace {

std::string render_all(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += render(diagnostic);
  }
  return text;
}

}  // namespace

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error: '%s' does not hold. This is a bug in Espalier.\n",
               file, line, condition);
  std::fflush(stderr);
  std::abort();
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::input:
      return 2;
    case ErrorKind::unsupported:
    case ErrorKind::runtime:
      return 3;
  }
  CHECK(false);
}

std::string render(const Diagnostic& diagnostic) {
  std::string text;
  const Location& where = diagnostic.where;
  if (!where.file.empty()) {
    text += where.file;
    if (where.line > 0) text += fmt::format(":{}", where.line);
    if (where.line > 0 && where.column > 0) text += fmt::format(":{}", where.column);
    text += ": ";
  }
  text += "error: " + diagnostic.message;
  if (!diagnostic.rule.empty()) text += " [" + diagnostic.rule + "]";
  if (!diagnostic.suggestion.empty()) text += "\n  help: " + diagnostic.suggestion;
  return text;
}

Error::Error(ErrorKind kind, const std::string& message, const std::string& suggestion)
    : Error(kind, std::vector<Diagnostic>{Diagnostic{{}, message, suggestion, {}}}) {}

Error::Error(ErrorKind kind, std::vector<Diagnostic> diagnostics)
    : std::runtime_error(render_all(diagnostics)),
      kind_(kind),
      diagnostics_(std::move(diagnostics)) {
  CHECK(!diagnostics_.empty());
}

void DiagnosticList::add(Location where, std::string message, std::string suggestion) {
  all_.push_back({{}, std::move(message), std::move(suggestion), std::move(where)});
}

void DiagnosticList::throw_if_any(ErrorKind kind) const {
  if (all_.empty()) return;
  // Files in the order they were first spoken of, each from top to bottom.
  std::map<std::string, std::size_t> file_rank;
  for (const Diagnostic& diagnostic : all_) {
    file_rank.emplace(diagnostic.where.file, file_rank.size());
  }
  std::vector<Diagnostic> sorted = all_;
  const auto position = [&](const Diagnostic& diagnostic) {
    const Location& where = diagnostic.where;
    return std::tuple(file_rank.at(where.file), where.line, where.column);
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Diagnostic& a, const Diagnostic& b) {
    return position(a) < position(b);
  });
  throw Error(kind, std::move(sorted));
}

}  // namespace espalier
