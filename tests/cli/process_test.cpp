// SPDX-License-Identifier: Apache-2.0
// The tool as a process.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace espalier {
namespace {

struct Result {
  int code;
  std::string out;  ///< standard output and standard error
};

/// Runs a bash script in which $espalier is the tool.
Result bash(const std::string& script) {
  const std::string path = ::testing::TempDir() + "espalier_process_test.sh";
  std::ofstream(path) << "espalier=" << ESPALIER_BINARY << "\n" << script << "\n";
  FILE* pipe = popen(("bash " + path + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "no bash"};
  std::string out;
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  const int status = pclose(pipe);
  std::filesystem::remove(path);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

TEST(Process, CtrlCLeavesNothingBehind) {
  // A shell ignores Ctrl-C for its background jobs, and what is ignored stays ignored: hence the
  // subshell that replaces itself.
  const Result result = bash(R"(
folder=$(mktemp -d)
set -m
$espalier exec --ranks 2 --algorithm ring --size 16MiB --iters 1000000 --json $folder/r.json \
  >$folder/out & 
sleep 1
kill -INT $!
wait $!
echo "code $?"
ls $folder
rm -r $folder)");
  EXPECT_EQ(result.out, "code 130\nout\n");
}

TEST(Process, AClosedPipeIsQuiet) {
  const Result result = bash("$espalier show ring --ranks 300 --collective allreduce | head -n 1");
  EXPECT_EQ(result.out, "program ring\n");
  EXPECT_EQ(result.code, 0);
}

TEST(Process, NoColoursInAPipe) {
  const Result result = bash("$espalier sim --topology full:n=3 --size 1MB");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out.find('\033'), std::string::npos);
}

TEST(Process, BashCompletes) {
  const Result result = bash(R"(
source <($espalier completion bash)
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _espalier; echo "${COMPREPLY[*]}"; }
try espalier ver
try espalier sim --topo
try espalier sim --topology dgx1-
try espalier sim --profile k
try espalier sim --algorithm ring parameter_
try espalier list topo
try espalier help com)");
  EXPECT_EQ(result.out,
            "verify\n--topology\ndgx1-p100 dgx1-v100\nkernel\nparameter_server\ntopologies\n"
            "completion\n");
}

}  // namespace
}  // namespace espalier
