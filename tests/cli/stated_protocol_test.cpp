// SPDX-License-Identifier: Apache-2.0
// A program in a file that states its protocol is simulated under that, whoever asks.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "tests/cli/spoken.h"

namespace espalier {
namespace {

using nlohmann::json;

constexpr const char* kSize = "16MiB";

/// The ring of three of the golden tests, for protocol LL, which takes longer for such a message
/// than others would.
class StatedProtocol : public WithFiles {
 protected:
  StatedProtocol() {
    std::string text = read_file(std::string(ESPALIER_SOURCE_DIR) + "/tests/golden/msccl_ring.xml");
    const std::string simple = "proto=\"Simple\"";
    text.replace(text.find(simple), simple.size(), "proto=\"LL\"");
    write_file(ring_, text);
  }

  static std::vector<std::string> question(const std::string& verb) {
    return {verb, "--topology", "dgx1-v100", "--gpus", "0-2", "--size", kSize, "--json", "-"};
  }
  json ask(const std::string& verb, const std::vector<std::string>& more) const {
    std::vector<std::string> words = question(verb);
    words.insert(words.end(), more.begin(), more.end());
    const Spoken said = run(words);
    EXPECT_EQ(said.code, 0) << said.err;
    const json all = json::parse(said.out, nullptr, false);
    return all.is_object() ? all.at("results").at(0) : all;
  }
  double time_s(const std::vector<std::string>& more) const {
    return ask("sim", more).at("time_s").get<double>();
  }

  const std::string ring_ = file("ring.xml");
  const std::vector<std::string> allgather_ = {"--collective", "allgather", "--in-place"};
};

TEST_F(StatedProtocol, SimAndChoosersKeepIt) {
  const double ll_s = time_s({"--algorithm", ring_, "--profile", "kernel:ll"});
  EXPECT_GT(ll_s, 1.2 * time_s({"--algorithm", ring_, "--profile", "kernel:simple"}));
  const json asked = ask("sim", {"--algorithm", ring_});
  EXPECT_EQ(asked.at("time_s").get<double>(), ll_s);
  EXPECT_EQ(asked.at("protocol"), "ll");
  EXPECT_EQ(asked.at("profile"), "kernel");
  std::vector<std::string> words = allgather_;
  words.insert(words.end(), {"--algorithm", "auto:" + ring_});
  EXPECT_EQ(time_s(words), ll_s);
  // Under another protocol it would be the faster one.
  words.back() = "auto:" + ring_ + "|ring";
  EXPECT_EQ(ask("sim", words).at("chosen"), "ring");
}

TEST_F(StatedProtocol, TuneKeepsIt) {
  const double ll_s = time_s({"--algorithm", ring_, "--profile", "kernel:ll"});
  std::vector<std::string> words = allgather_;
  words.insert(words.end(), {"--algorithm", ring_});
  const json tuned = ask("tune", words);
  EXPECT_EQ(tuned.at("time_s").get<double>(), ll_s) << tuned.dump(1);
  EXPECT_EQ(tuned.at("protocol"), "ll");
}

TEST_F(StatedProtocol, CompareKeepsIt) {
  const json under_ll = ask("sim", {"--algorithm", ring_, "--profile", "kernel:ll"});
  const std::string log = file("nccl.json");
  std::vector<std::string> words = allgather_;
  words.insert(words.end(), {"--algorithm", "ring", "--nccl-tests", log});
  ask("sim", words);
  const json compared = ask("compare", {"--measured", log, "--in-place", "--algorithm", ring_});
  EXPECT_EQ(compared.at("predicted_s"), under_ll.at("benchmark_s"));
}

}  // namespace
}  // namespace espalier
