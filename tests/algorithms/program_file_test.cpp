// SPDX-License-Identifier: Apache-2.0
#include "algorithms/program_file.h"

#include <gtest/gtest.h>

#include <string>

#include "core/file.h"
#include "ir/text.h"
#include "tests/algorithms/machines.h"
#include "tests/algorithms/programs.h"
#include "tests/error_of.h"
#include "tests/temp_file.h"

namespace espalier {
namespace {

constexpr const char* kBroadcast =
    "program mine\ncollective broadcast root 1\nranks 2\nunits 1\n"
    "0: r0.out[0] <- r1.in[0]\n1: r1.out[0] <- r1.in[0]\n";

std::string saved(const std::string& name, const std::string& text) {
  const std::string path = temp_file(name);
  write_file(path, text);
  return path;
}

/// Why the program can't answer a request; what stands between @ is the file.
std::string why_not(const std::string& text, const BuildRequest& request) {
  const std::string path = saved("asked.esp", text);
  std::string reason = unsupported(parse_algorithm(path), request).value_or("");
  for (auto at = reason.find(path); at != std::string::npos; at = reason.find(path)) {
    reason.replace(at, path.size(), "@");
  }
  return reason;
}

TEST(ProgramFile, WordsThatNameFiles) {
  for (const char* word : {"mine.esp", "./mine", "a/b", "/tmp/x.esp", "a:b.esp", "mine.esp:k=4"}) {
    EXPECT_TRUE(is_program_file(word)) << word;
  }
  for (const char* word : {"ring", "mine", "knomial:k=4", "knomial:k=4/2", "ring:x.esp", ""}) {
    EXPECT_FALSE(is_program_file(word)) << word;
  }
}

TEST(ProgramFile, IsAnAlgorithmForItsContract) {
  const std::string path = saved("right.esp", kBroadcast);
  const AlgorithmChoice choice = parse_algorithm(path);
  EXPECT_EQ(choice.algorithm->name, path);
  EXPECT_EQ(spec_of(choice), path);
  EXPECT_EQ(choice.algorithm->collectives, std::vector{Collective::broadcast});
  EXPECT_TRUE(open_parameters(choice).empty());
  const BuildRequest request = programs::request(Collective::broadcast, 2, 1);
  EXPECT_EQ(unsupported(choice, request), std::nullopt);
  EXPECT_TRUE(same_program(build(choice, request), parse_program(kBroadcast, "")));
  EXPECT_TRUE(verify(*choice.file).ok());
}

TEST(ProgramFile, SaysWhichLineIsAnotherContract) {
  const auto asked = [](Collective collective, int ranks, int root, bool in_place = false) {
    return programs::request(collective, ranks, root, in_place);
  };
  EXPECT_EQ(why_not(kBroadcast, asked(Collective::reduce, 2, 1)),
            "the program does broadcast (@:2), not reduce");
  EXPECT_EQ(why_not(kBroadcast, asked(Collective::broadcast, 8, 1)),
            "the program is for 2 ranks (@:3), not for 8");
  EXPECT_EQ(why_not(kBroadcast, asked(Collective::broadcast, 2, 0)),
            "the program's root is rank 1 (@:2), not rank 0");
  EXPECT_EQ(why_not(kBroadcast, asked(Collective::broadcast, 2, 1, true)),
            "the program works out of place, not in place");
  const std::string in_place =
      "in_place\nprogram mine\ncollective broadcast root 1\nranks 2\nunits 1\n"
      "0: r0.out[0] <- r1.out[0]\n";
  EXPECT_EQ(why_not(in_place, asked(Collective::broadcast, 2, 1)),
            "the program works in place (@:1), not out of place");
  EXPECT_EQ(why_not(in_place, asked(Collective::broadcast, 2, 1, true)), "");
}

TEST(ProgramFile, NeedsItsHostMemoriesAndRelays) {
  const programs::Machine machine("full:n=2,host_gbps=25", {}, LinkScope::all);
  const std::string head = "program mine\ncollective sendrecv\nranks 2\nunits 1\n";
  const std::string ops = "0: r1.out[0] <- r0.in[0]\n1: r0.out[0] <- r1.in[0]\n";
  EXPECT_EQ(why_not(head + "hosts 1\n" + ops, machine.request(Collective::sendrecv)), "");
  EXPECT_EQ(why_not(head + "hosts 3\n" + ops, machine.request(Collective::sendrecv)),
            "the program has 3 host memories (@:5), the machine 1");
  EXPECT_EQ(why_not(head + "relays 2\n" + ops, machine.request(Collective::sendrecv)),
            "the program has 2 relays (@:5), the question 0");
  // Without a machine there is nothing to compare with.
  EXPECT_EQ(why_not(head + "hosts 3\n" + ops, programs::request(Collective::sendrecv, 2)), "");
}

TEST(ProgramFile, ProblemsAreInTheFile) {
  const std::string wrong = saved("wrong.esp",
                                  "program mine\ncollective sendrecv\nranks 2\nunits 1\n"
                                  "0: r1.out[0] <- r0.in[0]\n");
  const Verification verification = verify(*parse_algorithm(wrong).file);
  ASSERT_FALSE(verification.ok());
  EXPECT_EQ(verification.problems.front().where.file, wrong);
  const std::string broken =
      saved("broken.esp", "program mine\ncollective all\nranks 2\nunits 1\n");
  EXPECT_EQ(
      error_of([&] { parse_algorithm(broken); }, ErrorKind::input).substr(0, broken.size() + 10),
      broken + ":2:12: err");
}

TEST(ProgramFile, SaysWhatMayHaveBeenMeant) {
  const auto said = [](const std::string& word) {
    return error_of([&] { parse_algorithm(word); }, ErrorKind::usage);
  };
  const std::string path = saved("mine.esp", kBroadcast);
  const std::string folder = path.substr(0, path.rfind('/'));
  EXPECT_EQ(said(folder + "/mien.esp").substr(0, 28), "error: there is no program f");
  EXPECT_NE(said(folder + "/mien.esp").find("did you mean"), std::string::npos);
  EXPECT_NE(said(path + ":k=4").find("a program in a file has no parameters"), std::string::npos);
  EXPECT_NE(said(folder).find("is not a regular file"), std::string::npos);
  EXPECT_NE(said("no/such/folder/x.esp").find("espalier show ring"), std::string::npos);
}

}  // namespace
}  // namespace espalier
