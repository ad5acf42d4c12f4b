// SPDX-License-Identifier: Apache-2.0
// The tool as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/shell.h"
#include "tests/limited_memory.h"
#include "tests/temp_file.h"

namespace espalier {
namespace {

/// Sends the tool a signal while the temporary of its output file exists. The trace goes to a
/// folder's file whose temporary is there while 2 million events are written, most of a second.
Result interrupt_writing(const std::string& signal) {
  // Job control, because a shell without it ignores Ctrl-C for its background jobs, and what is
  // ignored stays ignored.
  return bash(R"(
folder=$(mktemp -d)
set -m
$espalier sim --topology ring:n=512 --algorithm ring --size 1MiB --chunk 0 \
  --trace $folder/t.json --trace-ops 0 >/dev/null 2>&1 &
# Looked at while it is stopped, so that it can't have ended writing when the signal comes.
while kill -STOP $! || { echo "ended by itself"; false; }; do
  sleep 0.02
  compgen -G "$folder/t.json.tmp*" >/dev/null && test -s $folder/t.json.tmp* && break
  kill -CONT $!
  sleep 0.01
done
kill -)" + signal +
              R"( $!
kill -CONT $!
# The first thing to be heard of may be that it was stopped, by signal 19.
until wait $!; code=$?; [ $code -ne 147 ]; do :; done
echo "code $code"
ls $folder
rm -r $folder)");
}

TEST(Process, CtrlCRemovesTheFileBeingWritten) {
  EXPECT_EQ(interrupt_writing("INT").out, "code 130\n");
}

TEST(Process, TerminationRemovesTheFileBeingWritten) {
  EXPECT_EQ(interrupt_writing("TERM").out, "code 143\n");
}

// A program of 2 million ops, which under FIFOs are all built, where there is room for some 100 MB.
// What a worker could not answer for want of memory is no answer to be kept.
TEST(Process, NoMemoryIsNotPossibleHere) {
  if (!kCanLimitMemory) GTEST_SKIP() << "with a sanitizer, addresses can't be limited";
  const std::string scenario = temp_file("large.yaml");
  std::ofstream(scenario)
      << "schema: espalier.scenario/1\nname: large\ntitle: Large\nblocks:\n"
         "  - {title: Ring, topology: 'ring:n=1024,gpu0-gpu1.gbps=x2', collective: allreduce,\n"
         "     algorithms: [ring], profile: 'nccl:simple', sizes: 1GiB}\n";
  const std::string journal = temp_file("journal");
  const Result run = bash("ulimit -v 200000\n$espalier run " + scenario + " --jobs 2 --resume " +
                          journal + " >/dev/null\necho code $?\nwc -l <" + journal);
  EXPECT_EQ(run.out, "error: there is not enough memory for ring 1GiB\ncode 3\n1\n");
  const Result sim = bash(
      "ulimit -v 200000\n$espalier sim --topology ring:n=1024,gpu0-gpu1.gbps=x2 --algorithm ring "
      "--profile nccl:simple --size 1GiB "
      ">/dev/null\necho code $?");
  EXPECT_EQ(sim.out, "error: there is not enough memory for ring 1GiB\ncode 3\n");
  const Result exec = bash(
      "ulimit -v 300000\n$espalier exec --algorithm ring --size 1GiB >/dev/null\necho code $?");
  EXPECT_NE(exec.out.find("error: a message of 1GiB needs "), std::string::npos) << exec.out;
  EXPECT_NE(exec.out.find("code 3\n"), std::string::npos) << exec.out;
}

TEST(Process, CtrlCEndsARun) {
  const Result result = bash(R"(
set -m
$espalier exec --ranks 2 --algorithm ring --size 16MiB --iters 1000000 >/dev/null &
sleep 1
kill -INT $!
wait $!
echo "code $?")");
  EXPECT_EQ(result.out, "code 130\n");
}

constexpr const char* kStudy = R"(
folder=$(mktemp -d)
cat >$folder/s.yaml <<END
schema: espalier.scenario/1
name: s
title: S
blocks:
  - title: B
    topology: dgx1-v100
    collective: allreduce
    sizes: 1KiB..256MiB
    algorithms: [optimal, ring, nccl_rings]
END
)";

TEST(Process, AKilledRunGoesOnWhereItWas) {
  const Result result = bash(std::string(kStudy) + R"sh(
lines() { wc -l <$folder/j; }
$espalier run $folder/s.yaml --jobs 1 >$folder/whole
for more in 2 4 6; do
  $espalier run $folder/s.yaml --jobs 2 --resume $folder/j >/dev/null &
  until [ -s $folder/j ] && [ $(lines) -gt $more ]; do
    kill -0 $! 2>/dev/null || break
  done
  kill -9 $! 2>/dev/null
  wait $! 2>/dev/null
done
before=$(lines)
$espalier run $folder/s.yaml --resume $folder/j >$folder/resumed
echo "code $?"
cmp $folder/whole $folder/resumed && echo same
# A line for every size and algorithm, and one for the head: nothing was asked twice.
echo "$(lines) lines"
[ $before -gt 6 ] && echo "went on"
rm -r $folder)sh");
  EXPECT_EQ(result.out, "code 0\nsame\n58 lines\nwent on\n");
}

/// Waits for the two workers of the process $!, which become $workers, unless it ends before.
constexpr const char* kAwaitWorkers = R"sh(
tool=$!
until workers=$(pgrep -P $tool) && [ $(echo $workers | wc -w) -eq 2 ]; do
  kill -0 $tool 2>/dev/null || break
done
)sh";

/// Ctrl-C, as a terminal sends it: to the run and to its workers, once both are at work and what is
/// `awaited` has happened.
Result interrupt_run(const std::string& options, const std::string& awaited) {
  return bash(std::string(kStudy) + R"sh(
sed -i 's/1KiB..256MiB/1KiB..64GiB/; s/\[optimal/[blink, optimal/' $folder/s.yaml
set -m
$espalier run "$folder/s.yaml" --jobs 2 )sh" +
              options + " 2>$folder/err >/dev/null &" + kAwaitWorkers + "until " + awaited +
              R"sh(; do
  kill -0 $tool 2>/dev/null || break
done
kill -INT -- -$tool
wait $tool
echo "code $?"
sed "s|$folder|F|g; s|$espalier|ESPALIER|g" $folder/err
rm -r $folder)sh");
}

TEST(Process, CtrlCSaysHowToGoOn) {
  EXPECT_EQ(
      interrupt_run("--resume \"$folder/j\"", "[ -s $folder/j ] && [ $(wc -l <$folder/j) -gt 1 ]")
          .out,
      "code 130\n"
      "interrupted; the same command goes on where it was:\n"
      "  ESPALIER run F/s.yaml --jobs 2 --resume F/j\n");
}

TEST(Process, CtrlCSaysThatNothingWasKept) {
  EXPECT_EQ(interrupt_run("", "true").out,
            "code 130\n"
            "interrupted; nothing was kept. To be able to go on, next time:\n"
            "  ESPALIER run F/s.yaml --jobs 2 --resume answers.jsonl\n");
}

/// A tuning with two workers that takes some seconds, of which `$tool` is the process and $workers
/// are the workers; `end` says what happens to them. In the end, how many of them are left.
Result with_workers(const std::string& end) {
  return bash(R"sh(
set -m
err=$(mktemp)
$espalier tune --topology dgx2 --jobs 2 2>$err >/dev/null &)sh" +
              std::string(kAwaitWorkers) + end +
              R"sh(
wait $tool
echo "code $?"
for turn in $(seq 100); do
  left=$(for one in $workers; do [ "$(ps -o comm= -p $one)" = espalier ] && echo $one; done | wc -l)
  [ $left -eq 0 ] && break
  sleep 0.1
done
echo "$left left"
sed 's/answered .*/answered LABEL/' $err
rm $err)sh");
}

TEST(Process, NoWorkerOutlivesTheTool) {
  EXPECT_EQ(with_workers("kill -INT -- -$tool").out, "code 130\n0 left\n");
  EXPECT_EQ(with_workers("kill -TERM $tool").out, "code 143\n0 left\n");
  EXPECT_THAT(with_workers("kill -KILL $tool").out, testing::HasSubstr("code 137\n0 left\n"));
}

/// As when the computer has no memory left.
TEST(Process, AKilledWorkerEndsTheTool) {
  EXPECT_EQ(with_workers("kill -KILL $(echo $workers | cut -d' ' -f1)").out,
            "code 3\n0 left\n"
            "error: a worker process ended (signal 9) before it answered LABEL\n"
            "  help: --jobs 1 runs without workers\n");
}

/// What is opened first would take the number of a closed stream, and be written in its place.
TEST(Process, AClosedOutputHarmsNoJournal) {
  const Result result = bash(std::string(kStudy) + R"sh(
$espalier run $folder/s.yaml --jobs 2 --resume $folder/j >&- 2>/dev/null
echo "code $?"
$espalier run $folder/s.yaml --resume $folder/j >/dev/null
echo "code $?"
rm -r $folder)sh");
  EXPECT_EQ(result.out, "code 3\ncode 0\n");
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

/// An interactive bash on a terminal of its own, in which `espalier` prints the words it is given,
/// each in <>, and completion is that of the tool.
class Terminal {
 public:
  Terminal() {
    std::filesystem::create_directories(folder_ + "/my files");
    const std::ofstream plan(folder_ + "/my files/a plan.esp");
    std::ofstream(folder_ + "/rc") << "espalier() { printf '<%s>' \"$@\"; echo; }\nsource <("
                                   << ESPALIER_BINARY << " completion bash)\n"
                                   << "PS1='ready>'\nbind 'set enable-bracketed-paste off'\n"
                                   << "bind 'set bell-style none'\ncd '" << folder_ << "'\n";
    winsize wide{.ws_row = 50, .ws_col = 500, .ws_xpixel = 0, .ws_ypixel = 0};
    child_ = forkpty(&terminal_, nullptr, nullptr, &wide);
    if (child_ == 0) {
      setenv("TERM", "dumb", 1);
      setenv("INPUTRC", "/dev/null", 1);
      execlp("bash", "bash", "--noprofile", "--rcfile", (folder_ + "/rc").c_str(), "-i", nullptr);
      _exit(127);
    }
    read_until("ready>");
  }
  ~Terminal() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(terminal_);
    std::filesystem::remove_all(folder_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Types a line, in which each '|' is a press of the tab key; returns what the command printed.
  std::string type(std::string keys) {
    std::ranges::replace(keys, '|', '\t');
    keys += '\r';
    if (write(terminal_, keys.data(), keys.size()) < 0) return "can't type";
    const std::string shown = read_until("\r\nready>");
    const std::size_t begin = shown.find("\r\n<");
    if (begin == std::string::npos) return shown;
    return shown.substr(begin + 2, shown.rfind("\r\nready>") - begin - 2);
  }

 private:
  /// What appears until `end` does; all there is when it does not within 20 seconds.
  std::string read_until(const std::string& end) const {
    std::string shown;
    pollfd ready{.fd = terminal_, .events = POLLIN, .revents = 0};
    char buffer[4096];
    while (!shown.ends_with(end) && poll(&ready, 1, 20'000) > 0) {
      const ssize_t count = read(terminal_, buffer, sizeof buffer);
      if (count <= 0) break;
      shown.append(buffer, static_cast<std::size_t>(count));
    }
    return shown;
  }

  const std::string folder_ =
      ::testing::TempDir() + "espalier_terminal_" + std::to_string(getpid());
  int terminal_ = -1;
  pid_t child_ = -1;
};

TEST(Process, BashCompletesWords) {
  Terminal terminal;
  EXPECT_EQ(terminal.type("espalier veri|"), "<verify>");
  EXPECT_EQ(terminal.type("espalier --ver|"), "<--version>");
  EXPECT_EQ(terminal.type("espalier sim --topo|dgx1-v|--prof|k|"),
            "<sim><--topology><dgx1-v100><--profile><kernel>");
  EXPECT_EQ(terminal.type("espalier sim --algorithm ring parameter_|"),
            "<sim><--algorithm><ring><parameter_server>");
  EXPECT_EQ(terminal.type("espalier sim --profile=cop|"), "<sim><--profile=copy_engine>");
  EXPECT_EQ(terminal.type("espalier list topo|"), "<list><topologies>");
  EXPECT_EQ(terminal.type("espalier help compl|"), "<help><completion>");
  EXPECT_EQ(terminal.type("espalier sim --gpus my|"), "<sim><--gpus><my>");
}

TEST(Process, BashCompletesParameters) {
  Terminal terminal;
  EXPECT_EQ(terminal.type("espalier sim --algorithm ring:di|2"),
            "<sim><--algorithm><ring:directions=2>");
  EXPECT_EQ(terminal.type("espalier sim --topology ring:n=8,gb|4,lat|1"),
            "<sim><--topology><ring:n=8,gbps=4,latency_us=1>");
  EXPECT_EQ(terminal.type("espalier sim --topology=mist:no|4"), "<sim><--topology=mist:nodes=4>");
  EXPECT_EQ(terminal.type("espalier sim --topology mist:nodes=|"),
            "<sim><--topology><mist:nodes=>");
  EXPECT_EQ(terminal.type("espalier show quickstart:|"), "<show><quickstart:>");
}

TEST(Process, BashCompletesFileNames) {
  Terminal terminal;
  EXPECT_EQ(terminal.type("espalier verify my|a|"), "<verify><my files/a plan.esp>");
  EXPECT_EQ(terminal.type("espalier sim --algorithm ring ./my|a|"),
            "<sim><--algorithm><ring><./my files/a plan.esp>");
  EXPECT_EQ(terminal.type("espalier sim --json=my|x"), "<sim><--json=my files/x>");
  EXPECT_EQ(terminal.type("espalier sim --topology \"my f|a|"),
            "<sim><--topology><my files/a plan.esp>");
}

}  // namespace
}  // namespace espalier
