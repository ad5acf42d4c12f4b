// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace espalier {

/// A place in an input file. `line` and `column` count from 1; 0 means "not known".
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
  bool operator==(const Location&) const = default;
};

/// One problem in a plain sentence, with its location and a suggestion.
struct Diagnostic {
  std::string rule;        ///< number of the rule in docs/ir.md ("R7"), "limit", or empty
  std::string message;     ///< what is wrong
  std::string suggestion;  ///< what would be right ("did you mean 'gbps'?"), or empty
  Location where;
};

/// Whose fault it is. It decides the exit code: usage and input 2, unsupported and runtime 3.
/// `unsupported` is what is not possible here: there is no GPU, no route, not enough memory.
/// `runtime` is what went wrong on the way: a program that is stuck, a call that failed.
enum class ErrorKind { usage, input, unsupported, runtime };

int exit_code(ErrorKind kind);

/// "file:line:column: error: message [rule]" and, on a second line, "  help: suggestion".
std::string render(const Diagnostic& diagnostic);

/// The one exception of the project: the user's input is wrong, or the machine said no. It carries
/// every problem found, not only the first. Caught in cli/, in
/// tests, and by readers that add the location of the faulty text.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, const std::string& suggestion = {});
  /// \pre `diagnostics` is not empty.
  Error(ErrorKind kind, std::vector<Diagnostic> diagnostics);

  ErrorKind kind() const { return kind_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  ErrorKind kind_;
  std::vector<Diagnostic> diagnostics_;
};

/// There is not enough memory, of this computer or of a GPU, counted before a run or found out
/// during it: on every back end Error{unsupported}. A type of its own for those who can give
/// something up and try again.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message, const std::string& suggestion = {})
      : Error(ErrorKind::unsupported, message, suggestion) {}
};

/// Returns what `work` returns. Where it runs out of this process's memory, throws OutOfMemory:
/// "there is not enough memory to <doing>".
template <class Work>
auto with_memory_to(const std::string& doing, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("there is not enough memory to " + doing);
  }
}

/// Collects problems so that all of them are reported at once.
class DiagnosticList {
 public:
  void add(Location where, std::string message, std::string suggestion = {});
  void add(Diagnostic diagnostic) { all_.push_back(std::move(diagnostic)); }
  bool empty() const { return all_.empty(); }
  const std::vector<Diagnostic>& all() const { return all_; }
  /// Throws an Error with everything collected so far, in file order; does nothing when empty.
  void throw_if_any(ErrorKind kind = ErrorKind::input) const;

 private:
  std::vector<Diagnostic> all_;
};

}  // namespace espalier
