// SPDX-License-Identifier: Apache-2.0
// The tool as a process, used as nobody should: each of these once crashed it, had it blame itself,
// lost a file or left one behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/cli/shell.h"
#include "tests/limited_memory.h"

namespace espalier {
namespace {

/// Runs a script in a folder of its own that goes with it, which has a program p.esp, a machine
/// m.yaml and a scenario s.yaml.
Result in_folder(const std::string& script) {
  return bash(R"(
folder=$(mktemp -d)
cd $folder
$espalier show ring --ranks 4 --save p.esp 2>/dev/null
$espalier convert ring:n=4 m.yaml 2>/dev/null
cat >s.yaml <<END
schema: espalier.scenario/1
name: s
title: S
blocks: [{title: B, topology: ./m.yaml, collective: allreduce, sizes: 1KiB, algorithms: [ring]}]
END
)" + script + "\nrm -r $folder\n");
}

TEST(Mishaps, PathsThatLeadNowhereAreBadInput) {
  const Result result = in_folder(R"sh(
ln -s loop loop
long=$(printf '%05000d' 0)
for path in loop ./loop $long ./$long; do
  for verb in show verify run 'sim --algorithm' 'sim --topology' 'exec --algorithm' \
      'plan --topology' 'train --model resnet50 --topology' 'compare --measured' \
      fit tune 'tune --algorithm' probe; do
    $espalier $verb $path >out 2>err
    code=$?
    [ $code = 2 ] || echo "$verb ${path:0:8}: code $code, $(head -c 200 err)"
  done
  $espalier convert $path out.xml >out 2>err || [ $? = 2 ] || echo "convert ${path:0:8}"
  $espalier verify p.esp --json $path >out 2>err || [ $? = 2 ] || echo "--json ${path:0:8}"
done)sh");
  EXPECT_EQ(result.out, "");
}

TEST(Mishaps, FoldersThatCannotBeReadAreBadInput) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may read every folder";
  const Result result = in_folder("mkdir d\nchmod 0 d\n$espalier run d\necho code $?\nchmod 700 d");
  EXPECT_EQ(result.out, "error: can't read the folder 'd': Permission denied\ncode 2\n");
}

TEST(Mishaps, OutputsDoNotReplaceInputs) {
  const Result result = in_folder(R"sh(
ln s.yaml hard.yaml
ln -s s.yaml soft.yaml
mkdir d
cp p.esp m.yaml s.yaml d
md5sum *.* */*.* >sums
for words in 'run s.yaml --json s.yaml' 'run s.yaml --csv ./hard.yaml' \
    'run s.yaml --json soft.yaml' 'run d/s.yaml --json d/m.yaml' \
    'run d --claims d/s.yaml' 'verify p.esp --json p.esp' \
    'sim --topology ./m.yaml:gpu0-gpu1.gbps=x2 --algorithm ring --size 1KiB --json m.yaml' \
    'sim --topology ./m.yaml --algorithm ring,./p.esp --size 1 --json ../$(basename $PWD)/p.esp' \
    'sim --topology ./m.yaml --algorithm auto:ring|./p.esp --size 1KiB --json p.esp' \
    'convert p.esp ./p.esp' 'show p.esp --save p.esp' 'plan --topology ./m.yaml --save m.yaml'; do
  eval "$espalier ${words//|/\\|}" >out 2>err
  code=$?
  [ $code = 2 ] || echo "$words: code $code"
  grep -q 'would replace' err || echo "$words: $(cat err)"
done
md5sum --check --quiet sums)sh");
  EXPECT_EQ(result.out, "");
}

TEST(Mishaps, LinksStayLinks) {
  const Result result = in_folder(R"sh(
touch there
mkdir d
ln -s there link
ln -s d/new dangling
for name in link dangling; do
  $espalier verify p.esp --json $name >/dev/null || echo "code $?"
  [ -L $name ] || echo "$name is a link no more"
done
[ -s there ] && [ -s d/new ] || ls -lR)sh");
  EXPECT_EQ(result.out, "");
}

TEST(Mishaps, NamesThatAreNotUtf8AreRefused) {
  const Result result = in_folder(R"sh(
$espalier verify p.esp --json $'\xff.json'
echo code $?
ls)sh");
  EXPECT_EQ(result.out,
            "error: '\\xff.json' is not UTF-8\n  help: names of files have to be, too\ncode 2\n"
            "m.yaml\np.esp\ns.yaml\n");
}

TEST(Mishaps, Utf16IsCalledByItsName) {
  const Result result = in_folder(R"sh(
for file in s.yaml m.yaml p.esp; do iconv -t UTF-16 $file >w$file; done
for words in 'run ws.yaml' 'show ws.yaml' 'show wm.yaml' 'show wp.esp' 'verify wp.esp' \
    'verify wm.yaml' \
    'sim --topology ./wm.yaml --algorithm ring' 'sim --topology ./m.yaml --algorithm ./wp.esp' \
    'exec --algorithm ./wp.esp' 'train --topology dgx1-v100 --model ./wm.yaml' \
    'convert wp.esp x.xml' \
    'sim --topology dgx1-v100 --algorithm ring --profile ./wm.yaml' 'plan --topology ./wm.yaml' \
    'tune --topology ./wm.yaml' 'sim --topology dgx1-v100 --algorithm tuned:./wm.yaml'; do
  $espalier $words >out 2>err
  code=$?
  [ $code = 2 ] && grep -q 'its text is UTF-16' err || echo "$words: code $code, $(cat err)"
done)sh");
  EXPECT_EQ(result.out, "");
}

TEST(Mishaps, AFileThatMayNotGrowLeavesNoTemporary) {
  const Result result = in_folder(R"sh(
(ulimit -f 4
$espalier plan --topology dgx1-v100 --json plan.json >/dev/null
echo code $?)
ls)sh");
  EXPECT_EQ(result.out,
            "error: can't write 'plan.json': File too large\ncode 3\nm.yaml\np.esp\ns.yaml\n");
}

TEST(Mishaps, NothingIsCalledAsDeeplyAsProgramsAreLong) {
  if (!kCanLimitMemory) GTEST_SKIP() << "with a sanitizer, calls need far more";
  const Result result = in_folder(R"sh(
awk 'BEGIN {
  print "program d\ncollective broadcast\nranks 2\nunits 1"
  print "0: r0.out[0] <- r0.in[0]\n1: r1.tmp[0] <- r0.out[0] after 0"
  for (i = 2; i < 100000; ++i)
    printf "%d: r%d.tmp[0] <- r%d.tmp[0] lane %d after %d\n", i, i % 2, (i + 1) % 2, i % 1000, i - 1
  print "100000: r1.out[0] <- r1.tmp[0] at r1 after 99999"
}' >right.esp
sed 's/^5: r1.tmp/5: r0.out/' right.esp >wrong.esp
sed 's/^5: .*/& 99999/' right.esp >cycle.esp
ulimit -s 64
for file in right wrong cycle; do
  for words in verify 'verify --exact' show 'exec --size 1KiB --iters 1 --warmup 0 --algorithm' \
      'sim --topology dgx1-v100 --gpus 0,1 --size 1KiB --chunk 0 --no-nccl --algorithm'; do
    $espalier $words ./$file.esp >out 2>err
    code=$?
    [ $code -le 1 ] || echo "$words $file: code $code, $(head -c 300 err)"
    [ $file != right ] || [ $code = 0 ] || echo "$words $file: code $code, $(head -c 300 err)"
  done
done
$espalier convert right.esp out.json >out 2>err
[ $? -le 3 ] || echo "convert: $(head -c 300 err)")sh");
  EXPECT_EQ(result.out, "");
}

/// Whatever is in the way of writing is said, and nothing is left.
TEST(Mishaps, OutputsThatCannotBeWrittenAreNoticed) {
  const Result result = in_folder(R"sh(
for words in 'sim --topology ./m.yaml --algorithm ring --size 1KiB' 'run s.yaml' 'verify p.esp' \
    'show p.esp' \
    'list' 'plan --topology ./m.yaml' 'help' 'exec --algorithm ./p.esp --size 1KiB --iters 1' \
    'tune --topology ./m.yaml --algorithm ring --size 1KiB' 'completion bash'; do
  $espalier $words >/dev/full 2>err
  code=$?
  [ $code = 3 ] && grep -q 'cannot write the results' err || echo "$words: code $code, $(cat err)"
  $espalier $words >&- 2>err
  code=$?
  [ $code = 3 ] || echo "$words, closed: code $code, $(cat err)"
done
ls)sh");
  EXPECT_EQ(result.out, "err\nm.yaml\np.esp\ns.yaml\n");
}

}  // namespace
}  // namespace espalier
