// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/program_file.h"
#include "core/error.h"
#include "scenarios/study.h"

namespace espalier {

/// A program that Python knows, with where its author wrote its ops: Program::lines are numbers of
/// `places`, from 1. Programs from files have no places but their own lines.
struct KnownProgram {
  std::shared_ptr<const ProgramFile> file;
  /// The same with other lanes (LanesBy::peers_and_blocks), which may be faster; or null.
  std::shared_ptr<const ProgramFile> by_block = nullptr;
  std::vector<Location> places = {};
  Location definition = {};  ///< of the function that wrote it, for what concerns no single op
  /// Of a plan that names ways over the machine: the plan within its GPU fabric, for formats whose
  /// runtimes choose ways by themselves. May throw. Null: there is no other.
  std::function<std::shared_ptr<const KnownProgram>()> within_fabric = nullptr;

  const Program& program() const { return file->program; }
  /// With lines of the program turned into places.
  Diagnostic located(Diagnostic diagnostic) const;
  std::vector<Diagnostic> located(std::vector<Diagnostic> diagnostics) const;
};

/// What is known of a machine: a study and what it runs programs with, which remember answers.
class Session {
 public:
  /// The simulator answers, or `backend`, which Session keeps; then there may be no machine.
  /// `machine`: as `open_machine` takes it.
  explicit Session(std::string machine, std::unique_ptr<Backend> backend = nullptr);

  const std::string& machine() const { return machine_; }
  Study& study() { return state_->study; }
  Backend& simulator() { return *state_->simulator; }
  /// What keeps the study alive, for whoever refers to something of it.
  std::shared_ptr<const void> state() const { return state_; }
  /// Forgets all answers: what was interrupted may have left half of one.
  void forget();

  /// Before questions about programs: forgets all answers where there are many programs among them.
  void make_room();

  /// A question about this machine; the rest is still to be filled in.
  Query question() const;
  /// What the study calls the program from now on, for questions like this one about its machine.
  /// Of its lanes these are the ones that are faster there, for a message of kDecidingBytes.
  std::string word_of(const std::shared_ptr<const KnownProgram>& program, const Query& question);
  static constexpr std::int64_t kDecidingBytes = std::int64_t{64} << 20;
  /// The one of its forms that the word stands for.
  const ProgramFile& form_of(const std::shared_ptr<const KnownProgram>& program,
                             const Query& question);
  /// As `Study::ask`, about a program where there is one, with its places in what goes wrong.
  Outcome ask(const Query& query, const std::shared_ptr<const KnownProgram>& program = nullptr);

 private:
  /// On which machine: GPUs, relays, profile, links.
  using Where = std::tuple<std::vector<int>, std::vector<int>, std::string, LinkScope>;
  struct Named {
    std::shared_ptr<const KnownProgram> program;
    std::string word;
    std::string by_block;          ///< of its other form, or empty
    std::map<Where, bool> faster;  ///< whether that is faster
  };
  struct State {
    State(std::unique_ptr<Backend> own_simulator, Backend* executing)
        : simulator(std::move(own_simulator)),
          study(executing != nullptr ? *executing : *simulator, simulator.get()) {}
    std::unique_ptr<Backend> simulator;
    Study study;
    std::map<const KnownProgram*, Named> programs;
  };

  Named& named(const std::shared_ptr<const KnownProgram>& program);
  double predicted_s(const Query& question, const std::string& word);
  bool is_faster_by_block(Named& named, const Query& question);

  const std::string machine_;
  const std::unique_ptr<Backend> backend_;  ///< null: the simulator
  std::shared_ptr<State> state_;
};

}  // namespace espalier
