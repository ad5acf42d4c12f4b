// SPDX-License-Identifier: Apache-2.0
// Public execution plans of MSCCL++, where ESPALIER_CORPUS names a folder of them with what is
// expected of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file.h"
#include "formats/format.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

std::string report(const ForeignProgram& foreign) {
  std::string text = foreign.facts;
  for (const Diagnostic& problem : foreign.verification.problems) text += "\n" + render(problem);
  for (const ForeignNote& note : foreign.notes) text += "\n" + render(note);
  return text;
}

/// The verdict in the words of the expectations, and what was said.
struct Verdict {
  std::string verdict;
  std::string said;
};

Verdict judge(const std::string& file) {
  const std::string text = read_file(file);
  const Format* format = recognise(text);
  if (format == nullptr || format->name != "mscclpp-json") return {"not recognised", ""};
  try {
    const ForeignProgram foreign = format->read_program({text, "plan.json"});
    const auto& problems = foreign.verification.problems;
    const bool deadlock =
        std::ranges::any_of(problems, [](const auto& p) { return p.rule == "deadlock"; });
    EXPECT_EQ(foreign.has_program, !foreign.program.ops.empty());
    return {deadlock              ? "deadlock"
            : !problems.empty()   ? "wrong"
            : foreign.has_program ? "ok"
                                  : "ok-no-postcondition",
            report(foreign)};
  } catch (const Error& error) {
    const std::string what = error.what();
    for (const char* generation : {"template", "2024", "draft"}) {
      if (what.find(generation) != std::string::npos) {
        return {std::string("not-executed (generation ") + generation + ")", what};
      }
    }
    return {"malformed", what};
  }
}

TEST(MscclppCorpus, PublicPlansGetTheExpectedVerdict) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(corpus) / "mscclpp_json")) {
    const fs::path& file = entry.path();
    const fs::path beside =
        fs::path(corpus) / "expected" / "mscclpp_json" / (file.filename().string() + ".json");
    const auto expected = nlohmann::json::parse(read_file(beside.string()));
    const Verdict verdict = judge(file.string());
    SCOPED_TRACE(file.filename().string() + "\n" + verdict.said);
    // What their checker has no postcondition for, ours may prove.
    if (expected["verdict"] == "ok-no-postcondition") {
      EXPECT_THAT(verdict.verdict, testing::AnyOf("ok", "ok-no-postcondition"));
    } else {
      EXPECT_EQ(verdict.verdict, expected["verdict"].get<std::string>());
    }
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(MscclppCorpus, MalformedPlansAreSaidToBeSo) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  const fs::path folder = fs::path(corpus) / "malformed";
  const auto expected = nlohmann::json::parse(read_file((folder / "expected.json").string()));
  for (const auto& item : expected["cases"]) {
    const auto name = item["file"].get<std::string>();
    if (!name.starts_with("mscclpp_")) continue;
    const Verdict verdict = judge((folder / name).string());
    SCOPED_TRACE(name + "\n" + verdict.said);
    EXPECT_EQ(verdict.verdict, item["kind"] == "deadlock" ? "deadlock" : "malformed");
    EXPECT_TRUE(std::ranges::any_of(item["any_of"], [&](const auto& word) {
      return verdict.said.find(word.template get<std::string>()) != std::string::npos;
    }));
    if (item["where"] != "gpus") {
      EXPECT_THAT(verdict.said, testing::HasSubstr(item["where"].get<std::string>()));
    }
  }
}

}  // namespace
}  // namespace espalier
