// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/program_file.h"
#include "core/error.h"
#include "scenarios/asked_again.h"
#include "scenarios/study.h"

namespace espalier {

class Session;

/// What else to ask of a machine for the same plan.
struct PlanQuestion {
  std::shared_ptr<Session> session;
  Query query;
};

/// A program that Python knows, with where its author wrote its ops: Program::lines are numbers of
/// `places`, from 1. Programs from files have no places but their own lines.
struct KnownProgram {
  std::shared_ptr<const ProgramFile> file;
  /// The same with other lanes (LanesBy::peers_and_blocks), which may be faster; or null.
  std::shared_ptr<const ProgramFile> by_block = nullptr;
  std::vector<Location> places = {};
  Location definition = {};  ///< of the function that wrote it, for what concerns no single op
  /// Of a plan that names ways over the machine: asks for the plan within its GPU fabric, for
  /// formats whose runtimes choose ways by themselves. Nothing: there is no other.
  std::optional<PlanQuestion> within_fabric = {};
  std::string text = {};  ///< of the file that it was read from; empty: it is from none

  const Program& program() const { return file->program; }
  /// What a table calls it: a word that stands for a program, whichever was asked first.
  std::string label() const;
  /// With lines of the program turned into places. What a rule says of the program as a whole is
  /// said of its definition; what else has no line is no mistake of its author's.
  Diagnostic located(Diagnostic diagnostic) const;
  std::vector<Diagnostic> located(std::vector<Diagnostic> diagnostics) const;
};

/// How a copy, perhaps in another process, gets at the same machine.
struct MachineOrigin {
  std::string name;       ///< what questions call it, as it was asked for
  std::string spec = {};  ///< as `open_machine` takes it from any folder; empty: `name`
  std::string yaml = {};  ///< its text, where it is in no file: what was probed
};
/// Of what a user named. The path of a file counts from the folder that Python is in now.
MachineOrigin origin_of(const std::string& name);

/// What is known of a machine: a study and what it runs programs with, which remember answers.
class Session {
 public:
  /// The simulator answers, or `backend`, which Session keeps; then there may be no machine.
  explicit Session(MachineOrigin origin, std::unique_ptr<Backend> backend = nullptr);

  const std::string& machine() const { return origin_.name; }
  const MachineOrigin& origin() const { return origin_; }
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
  /// As `Study::ask`, about a program where there is one, with its places in what goes wrong, and
  /// called as its label says.
  Outcome ask(const Query& query, const std::shared_ptr<const KnownProgram>& program = nullptr);
  /// Once more what was answered, with its timeline (espalier::ask_with_timeline).
  Outcome ask_with_timeline(const Outcome& outcome,
                            const std::shared_ptr<const KnownProgram>& program, TimelineOps ops);

 private:
  /// On which machine: GPUs, relays, profile, links.
  using Where = std::tuple<std::vector<int>, std::vector<int>, std::string, LinkScope>;
  struct Named {
    std::string word;
    std::string by_block;          ///< of its other form, or empty
    std::map<Where, bool> faster;  ///< whether that is faster
  };
  /// Kept, so that no other program has its address.
  struct Asked {
    std::shared_ptr<const KnownProgram> program;
    std::shared_ptr<Named> named;
  };
  struct State {
    State(std::unique_ptr<Backend> own_simulator, Backend* executing)
        : simulator(std::move(own_simulator)),
          study(executing != nullptr ? *executing : *simulator, simulator.get()) {}
    std::unique_ptr<Backend> simulator;
    Study study;
    std::map<const KnownProgram*, Asked> programs;
    std::map<std::string, std::shared_ptr<Named>> by_content;
  };

  Named& named(const std::shared_ptr<const KnownProgram>& program);
  double predicted_s(const Query& question, const std::string& word);
  bool is_faster_by_block(Named& named, const Query& question);

  const MachineOrigin origin_;
  const std::unique_ptr<Backend> backend_;  ///< null: the simulator
  std::shared_ptr<State> state_;
};

}  // namespace espalier
