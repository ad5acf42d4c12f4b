// SPDX-License-Identifier: Apache-2.0
#include "core/yaml.h"

#include <gtest/gtest.h>

#include <random>

namespace espalier {
namespace {

/// A document and what was said about it.
struct Document {
  explicit Document(std::string_view text) : root(YamlValue::parse(text, "t.yaml", problems)) {}

  std::vector<std::string> said() const {
    std::vector<std::string> lines;
    for (const Diagnostic& problem : problems.all()) lines.push_back(render(problem));
    return lines;
  }

  DiagnosticList problems;
  YamlValue root;
};

using Lines = std::vector<std::string>;

TEST(YamlParse, KnowsWhereValuesStand) {
  const Document document("a: 1\nb:\n  - x\n  -   {c: y}\n");
  YamlMap map(document.root, "the test");
  EXPECT_EQ(map.get("a").where(), (Location{"t.yaml", 1, 4}));
  const auto items = map.get("b").items("b");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].where(), (Location{"t.yaml", 3, 5}));
  YamlMap inner(items[1], "inner");
  EXPECT_EQ(inner.get("c").where(), (Location{"t.yaml", 4, 11}));
  EXPECT_EQ(document.said(), Lines{});
}

TEST(YamlParse, DiagnosesSyntax) {
  EXPECT_EQ(Document("a: [1, 2\nb: 3\n").said(),
            Lines{"t.yaml:2:2: error: not valid YAML: end of sequence flow not found"});
  EXPECT_EQ(Document("a: *b\n").said(),
            Lines{"t.yaml:1:4: error: not valid YAML: the referenced anchor is not defined"});
  EXPECT_EQ(Document("").said(), Lines{"t.yaml:1:1: error: the document is empty"});
  EXPECT_EQ(Document("# only a comment\n").said(),
            Lines{"t.yaml:1:1: error: the document is empty"});
  EXPECT_EQ(
      Document("a: 1\n---\nb: 2\n").said(),
      Lines{"t.yaml:2:1: error: a file must contain one document, but a second one begins here"});
  EXPECT_EQ(Document("a: !!int 1\n").said(),
            Lines{"t.yaml:1:4: error: tags such as 'tag:yaml.org,2002:int' have no meaning here"});
}

TEST(YamlParse, DiagnosesKeys) {
  const Document document("a: 1\nb: 2\na: 3\n[x]: 4\n");
  EXPECT_EQ(document.said(),
            (Lines{"t.yaml:3:1: error: key 'a' appears twice\n  help: the first one is on line 1",
                   "t.yaml:4:1: error: a key must be a word"}));
  YamlMap map(document.root, "the test");
  EXPECT_EQ(map.integer("a", 0), 1);
}

TEST(YamlParse, SharesAliases) {
  const Document document("a: &x {k: 1}\nb: *x\n");
  YamlMap map(document.root, "the test");
  YamlMap b(map.get("b"), "b");
  EXPECT_EQ(b.integer("k", 0), 1);
  EXPECT_EQ(document.said(), Lines{});
}

TEST(YamlParse, AnAliasStandsWhereItIsUsed) {
  const Document document("name: &x word\ncount: *x\nlist: &l [1, two]\nmore: [3, *l]\n");
  YamlMap map(document.root, "the test");
  EXPECT_EQ(map.get("name").where(), (Location{"t.yaml", 1, 7}));
  EXPECT_EQ(map.get("count").where(), (Location{"t.yaml", 2, 8}));
  map.integer("count", 0);
  EXPECT_EQ(document.said(),
            Lines{"t.yaml:2:8: error: 'count' of the test must be a whole number, not 'word'"});
  // What is inside stands where it was written.
  const auto more = map.get("more").items("more");
  ASSERT_EQ(more.size(), 2u);
  EXPECT_EQ(more[1].where(), (Location{"t.yaml", 4, 11}));
  EXPECT_EQ(more[1].items("l")[1].where(), (Location{"t.yaml", 3, 14}));
  // A key may be an alias as well.
  EXPECT_EQ(Document("a: &k b\nb: 1\n*k : 2\n").said(),
            Lines{"t.yaml:3:1: error: key 'b' appears twice\n  help: the first one is on line 2"});
}

TEST(YamlParse, AliasesOfLongTextsShareThem) {
  // 1 MiB named 100 000 times would be 100 GiB.
  std::string text = "a: &a |\n";
  for (int i = 0; i < 16; ++i) text += " " + std::string(1 << 16, 'x') + "\n";
  text += "b:\n";
  for (int i = 0; i < 100'000; ++i) text += "- *a\n";
  const Document document(text);
  YamlMap map(document.root, "the test");
  EXPECT_EQ(map.get("b").items("b").size(), 100'000u);
  EXPECT_EQ(document.said(), Lines{});
}

TEST(YamlParse, SurvivesHostileDocuments) {
  EXPECT_EQ(Document(std::string(100'000, '[')).problems.all().size(), 1u);
  EXPECT_EQ(Document(std::string(100'000, '{')).problems.all().size(), 1u);
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_EQ(Document(deep).said(), Lines{"t.yaml:101:101: error: nested deeper than 100 levels"});
  EXPECT_EQ(Document("a: &a [*a]\n").said(),
            Lines{"t.yaml:1:8: error: an anchor cannot contain itself"});
  EXPECT_EQ(Document(std::string(17 << 20, '\n')).said(),
            Lines{"t.yaml: error: the document is larger than 16 MiB"});
  EXPECT_EQ(Document("a: 1\n#" + std::string(1 << 20, 'x')).said(),
            Lines{"t.yaml:2:1: error: the line is longer than 1 MiB"});
  std::string wide = "[";
  for (int i = 0; i < 1'000'001; ++i) wide += ",\n";
  EXPECT_EQ(Document(wide).said().size(), 1u);
}

TEST(YamlParse, CountsAliasesEveryTime) {
  // Each line holds the one before ten times: 10^6 values in the last, 300 bytes in all.
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (const char* line : {"a1: &a1 [*a0,*a0,*a0,*a0,*a0,*a0,*a0,*a0,*a0,*a0]\n",
                           "a2: &a2 [*a1,*a1,*a1,*a1,*a1,*a1,*a1,*a1,*a1,*a1]\n",
                           "a3: &a3 [*a2,*a2,*a2,*a2,*a2,*a2,*a2,*a2,*a2,*a2]\n",
                           "a4: &a4 [*a3,*a3,*a3,*a3,*a3,*a3,*a3,*a3,*a3,*a3]\n",
                           "a5: &a5 [*a4,*a4,*a4,*a4,*a4,*a4,*a4,*a4,*a4,*a4]\n"}) {
    bomb += line;
  }
  const Document document(bomb);
  EXPECT_EQ(document.said(), Lines{"t.yaml:6:38: error: more than 1000000 values in one document"});
  EXPECT_FALSE(document.root.present());
}

TEST(YamlParse, SurvivesDamagedDocuments) {
  const std::string sound =
      "schema: x\nlist: [1, 'two', \"three\\n\", {a: b, c: [d, e]}]\n"
      "block: |\n  text\n  more\nfolded: >-\n  text\nanchor: &a {k: v}\nalias: *a\n? key\n: "
      "value\n";
  ASSERT_EQ(Document(sound).said(), Lines{});
  const unsigned seed = 20240817;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string alphabet = "[]{}:,-?&*!|>'\"%@` \n\t#ab1\\\xff\x01";
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = sound;
    for (std::uint32_t edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % damaged.size();
      const char c = alphabet[random() % alphabet.size()];
      if (random() % 2 == 0) {
        damaged[at] = c;
      } else {
        damaged.insert(at, 1, c);
      }
    }
    const Document document(damaged);
    EXPECT_TRUE(document.root.present() || !document.problems.empty()) << damaged;
    for (const Diagnostic& problem : document.problems.all()) {
      EXPECT_GE(problem.where.line, 1) << damaged;
      EXPECT_GE(problem.where.column, 1) << damaged;
    }
  }
}

TEST(YamlScalar, ReadsWhatIsWritten) {
  const Document document(
      "t: hello\nq: \"25\"\nn: +1.5e3\ni: -7\nb: true\nf: false\nempty: \"\"\ntilde: ~\n");
  YamlMap map(document.root, "the test");
  EXPECT_EQ(map.text("t"), "hello");
  EXPECT_EQ(map.text("q"), "25");
  EXPECT_EQ(map.text("i"), "-7");
  EXPECT_EQ(map.text("empty", "x"), "");
  EXPECT_EQ(map.number("n", 0), 1500.0);
  EXPECT_EQ(map.number("i", 0), -7.0);
  EXPECT_EQ(map.integer("i", 0), -7);
  EXPECT_TRUE(map.boolean("b", false));
  EXPECT_FALSE(map.boolean("f", true));
  EXPECT_EQ(map.number("absent", 4), 4.0);
  EXPECT_TRUE(map.get("tilde").present());
  map.finish();
  EXPECT_EQ(document.said(), Lines{});
}

TEST(YamlScalar, DiagnosesWrongTypes) {
  const Document document(
      "n: fast\nq: \"25\"\ninf: .inf\nbig: 1e999\ni: 1.5\nhuge: 99999999999999999999\nb: yes\n"
      "none:\nlist: [1]\nmap: {a: 1}\n");
  YamlMap map(document.root, "a link");
  EXPECT_EQ(map.number("n", 3), 3.0);
  map.number("q", 0);
  map.number("inf", 0);
  map.number("big", 0);
  map.integer("i", 0);
  map.integer("huge", 0);
  map.boolean("b", false);
  map.text("none");
  map.text("list");
  map.number("map", 0);
  EXPECT_EQ(document.said(),
            (Lines{"t.yaml:1:4: error: 'n' of a link must be a number, not 'fast'",
                   "t.yaml:2:4: error: 'q' of a link must be a number, not text between quotes\n"
                   "  help: leave out the quotes",
                   "t.yaml:3:6: error: 'inf' of a link must be a number, not '.inf'",
                   "t.yaml:4:6: error: 'big' of a link must be a number, not '1e999'",
                   "t.yaml:5:4: error: 'i' of a link must be a whole number, not '1.5'",
                   "t.yaml:6:7: error: 'huge' of a link is out of range: '99999999999999999999'",
                   "t.yaml:7:4: error: 'b' of a link must be true or false, not 'yes'",
                   "t.yaml:8:1: error: 'none' of a link must be text, not nothing",
                   "t.yaml:9:7: error: 'list' of a link must be text, not a list",
                   "t.yaml:10:6: error: 'map' of a link must be a number, not a map"}));
}

TEST(YamlList, OneOrMore) {
  const Document document("one: a\nmany: [a, b]\nnone: []\nmap: {k: v}\n");
  YamlMap map(document.root, "the test");
  EXPECT_EQ(map.get("one").one_or_more().size(), 1u);
  EXPECT_EQ(map.get("many").one_or_more().size(), 2u);
  EXPECT_EQ(map.get("none").one_or_more().size(), 0u);
  EXPECT_EQ(map.get("map").one_or_more().size(), 1u);
  EXPECT_EQ(map.get("absent").one_or_more().size(), 0u);
  EXPECT_EQ(map.get("one").items("'one'").size(), 0u);
  EXPECT_EQ(document.said(), Lines{"t.yaml:1:6: error: 'one' must be a list, not text"});
}

TEST(YamlMap, ReportsUnknownAndNeededKeys) {
  const Document document("gpbs: 25\nkind: x\nwhatever: 1\n");
  YamlMap map(document.root, "a link");
  map.need("gbps");
  map.text("kind");
  map.finish();
  EXPECT_EQ(
      document.said(),
      (Lines{"t.yaml:1:1: error: a link needs 'gbps'",
             "t.yaml:1:1: error: unknown key 'gpbs' in a link\n  help: did you mean 'gbps'?",
             "t.yaml:3:1: error: unknown key 'whatever' in a link\n  help: one of: gbps, kind"}));
}

TEST(YamlMap, ReportsOnceThatItIsNoMap) {
  const Document document("[1, 2]\n");
  YamlMap map(document.root, "a topology");
  EXPECT_FALSE(map.need("nodes").present());
  EXPECT_EQ(map.number("x", 2), 2.0);
  EXPECT_TRUE(map.entries().empty());
  map.problem("never shown");
  map.finish();
  EXPECT_EQ(document.said(),
            Lines{"t.yaml:1:1: error: a topology must be a map of keys and values, not a list"});
}

TEST(YamlMap, GivesEntriesInOrder) {
  const Document document("z: 1\na: 2\n");
  YamlMap map(document.root, "the test");
  const auto entries = map.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].first, "z");
  EXPECT_EQ(entries[1].second.integer("a"), 2);
  map.finish();
  map.key_problem("a", "at the key");
  map.key_problem("none", "at the map");
  EXPECT_EQ(document.said(),
            (Lines{"t.yaml:2:1: error: at the key", "t.yaml:1:1: error: at the map"}));
}

TEST(YamlValue, MissingIsSilent) {
  const YamlValue missing;
  EXPECT_FALSE(missing.present());
  EXPECT_EQ(missing.text("it"), std::nullopt);
  EXPECT_EQ(missing.number("it"), std::nullopt);
  EXPECT_TRUE(missing.items("it").empty());
  EXPECT_EQ(missing.where(), Location{});
  missing.problem("never shown");
}

TEST(YamlValue, OutlivesItsParent) {
  DiagnosticList problems;
  YamlValue value;
  {
    const YamlValue root = YamlValue::parse("a: {b: c}", "t.yaml", problems);
    YamlMap map(root, "the test");
    YamlMap inner(map.get("a"), "inner");
    value = inner.get("b");
  }
  EXPECT_EQ(value.text("it"), "c");
}

TEST(YamlQuoted, IsReadBackWhateverStandsInIt) {
  std::string all = "\n\t";  // other control characters are refused by readers
  for (int c = 0x20; c < 0x7f; ++c) all += static_cast<char>(c);
  for (const std::string& text :
       {std::string(), std::string("a: [b] # c"), std::string("\\\""), all}) {
    DiagnosticList problems;
    const YamlValue value =
        YamlValue::parse("key: " + yaml_quoted(text) + "\n", "f.yaml", problems);
    YamlMap map(value, "a map");
    EXPECT_EQ(map.text("key"), text);
    EXPECT_TRUE(problems.empty());
  }
}

}  // namespace
}  // namespace espalier
