// SPDX-License-Identifier: Apache-2.0
#include "cli/scenario_console.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/text.h"
#include "core/words.h"
#include "report/expectations.h"

namespace espalier {

namespace {

/// A line each, below the block's tables. What is not as expected is marked.
void print_judged(const Console& console, const std::vector<Judged>& judged) {
  for (const Judged& one : judged) {
    const ExpectedResult& expectation = one.expectation;
    const JudgedText words = text_of(one);
    const std::string claim = expectation.claim.empty() ? "" : expectation.claim + ", ";
    const std::string expected = one.judgement.ours ? fmt::format(" ({})", words.wanted) : "";
    const std::string verdict =
        one.as_expected()
            ? words.verdict
            : fmt::format("FAILED: {}, but expected: {} ({}:{})", words.verdict,
                          words.expected_verdict, expectation.where.file, expectation.where.line);
    const std::string line = fmt::format("{}{}: {}{}: {}", claim, trim(expectation.title),
                                         words.ours, expected, verdict);
    const std::string text = wrap(line, console.width, "# ");
    console.out << (one.as_expected() ? text : styled(console, Style::bold, text));
    if (!expectation.note.empty()) {
      console.out << wrap(trim(expectation.note), console.width, "#   ");
    }
  }
}

void print_summary(const Console& console, const Scenario& scenario,
                   const ScenarioResults& results) {
  const Answers& answers = results.answers;
  std::size_t simulated = results.trained.size();
  std::size_t executed = 0;
  std::int64_t wrong = 0;
  for (const Outcome& outcome : answers.outcomes) {
    (outcome.report.executed ? executed : simulated) += 1;
    wrong += outcome.report.wrong_elements();
  }
  console.out << fmt::format("# {}: {} verified and simulated", scenario.name,
                             counted(simulated, "program"));
  if (executed > 0) {
    console.out << fmt::format(", {} executed with {} wrong elements", executed, wrong);
  }
  if (!results.judged.empty()) {
    console.out << fmt::format("; {} of {} as expected",
                               std::ranges::count_if(results.judged, &Judged::as_expected),
                               counted(results.judged.size(), "expectation"));
  }
  console.out << '\n';
  if (const auto refused = answers.refused(); !refused.empty()) {
    const std::string text =
        wrap(fmt::format("FAILED: {} refused by the verifier: {}",
                         counted(refused.size(), "program"), join(refused, ", ")),
             console.width, "# ");
    console.out << styled(console, Style::bold, text);
  }
}

}  // namespace

void ScenarioConsole::title(std::string_view mark, std::string_view text, const std::string& note) {
  progress_->erase();
  if (!view_.print) return;
  console_.out << styled(console_, Style::bold, fmt::format("# {} {}", mark, text)) << '\n';
  if (!note.empty()) console_.out << wrap(trim(note), console_.width, "#   ");
  console_.out << std::flush;  // it shows what a long run is at
}

void ScenarioConsole::end_table(const Answers& answers) {
  progress_->erase();
  if (table_) {
    table_->finish(answers);
    print_skipped(console_, answers.skipped);
  }
  refusals_.print();
  const Outcome* best = answers.best();
  if (table_ && best != nullptr && view_.links > 0) print_links(console_, *best, view_.links);
  table_.reset();
}

void ScenarioConsole::end_block(const ScenarioBlock& block, const std::vector<Judged>& judged) {
  if (!view_.print) return;
  const auto* study = std::get_if<CollectiveStudy>(&block.study);
  const bool executes = study != nullptr && study->execute;
  if (!executes || !judged.empty()) console_.out << "#\n";
  print_judged(console_, judged);
  if (!judged.empty()) console_.out << "#\n" << std::flush;
}

ScenarioObserver ScenarioConsole::observer() {
  ScenarioObserver observer;
  observe_blocks(observer);
  observe_tables(observer);
  observe_executions(observer);
  observe_training(observer);
  return observer;
}

void ScenarioConsole::observe_blocks(ScenarioObserver& observer) {
  observer.begins = [this](std::size_t questions, std::size_t known) {
    progress_.emplace(console_, questions, known);
  };
  observer.damaged = [this](const Diagnostic& line) {
    say(console_,
        fmt::format("warning: {}:{}: {}", line.where.file, line.where.line, line.message));
  };
  observer.waiting = [this](std::string_view label) { progress_->resume(label); };
  observer.received = [this](std::string_view label) { progress_->step(label); };

  observer.scenario_begins = [this](const Scenario& scenario) {
    title("===", fmt::format("{}: {}", scenario.name, scenario.title), scenario.note);
    if (view_.print) console_.out << "#\n";
  };
  observer.scenario_ends = [this](const Scenario& scenario, const ScenarioResults& results) {
    if (view_.print) print_summary(console_, scenario, results);
  };
  observer.block_begins = [this](const ScenarioBlock& block) {
    title("---", block.title, block.note);
  };
  observer.block_ends = [this](const ScenarioBlock& block, const std::vector<Judged>& judged) {
    end_block(block, judged);
  };
}

void ScenarioConsole::observe_tables(ScenarioObserver& observer) {
  observer.table_begins = [this](const TableHead& head) {
    progress_->erase();
    if (!view_.print) return;
    console_.out << "#\n";
    table_.emplace(console_, head);
  };
  observer.answered = [this](const Outcome& outcome) {
    progress_->erase();
    refusals_.add(outcome.problems);
    if (table_) table_->add(outcome);
  };
  observer.table_ends = [this](const Answers& answers) { end_table(answers); };
}

void ScenarioConsole::observe_executions(ScenarioObserver& observer) {
  observer.execution_begins = [this](const Query& query) {
    progress_->resume(fmt::format("{} with real data", query.algorithm));
    if (!view_.print) return;
    console_.out << "#\n";
    execution_.emplace(console_);
  };
  observer.executed = [this](const Outcome& out_of_place, const Outcome& in_place) {
    progress_->erase();
    refusals_.add(out_of_place.problems);
    refusals_.add(in_place.problems);
    if (execution_) execution_->add(out_of_place, in_place);
  };
  observer.execution_ends = [this](const Answers& answers) {
    progress_->erase();
    if (execution_) {
      execution_->finish(answers);
      print_skipped(console_, answers.skipped);
    }
    refusals_.print();
    execution_.reset();
  };
}

void ScenarioConsole::observe_training(ScenarioObserver& observer) {
  observer.training_begins = [this](const TrainingSweep& sweep) {
    progress_->erase();
    if (!view_.print) return;
    console_.out << "#\n";
    training_.emplace(console_, sweep);
  };
  observer.trained = [this](const TrainingOutcome& outcome) {
    progress_->erase();
    refusals_.add(outcome.problems);
    if (training_) training_->add(outcome);
  };
  observer.training_ends = [this](const TrainingAnswers& answers) {
    progress_->erase();
    if (training_) {
      training_->finish(answers);
      print_skipped(console_, answers.skipped);
    }
    refusals_.print();
    training_.reset();
  };
}

}  // namespace espalier
