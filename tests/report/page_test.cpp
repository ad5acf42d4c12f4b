// SPDX-License-Identifier: Apache-2.0
#include "report/page/page.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/app.h"

namespace espalier {
namespace {

std::string page_of(std::vector<std::string> words) {
  words.insert(words.end(), {"--html", "-"});
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_app(words, out, err), 0) << err.str();
  return out.str();
}

TEST(Page, NeedsNothingElseAndForbidsIt) {
  const std::string html = page_of({"sim", "--topology", "ring:n=3", "--algorithm", "ring"});
  EXPECT_NE(html.find("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"),
            std::string::npos);
  for (const char* word : {"<link rel=\"stylesheet", " src=", "@import", "url("}) {
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  }
}

TEST(Page, IsTheSameEveryTime) {
  const std::vector<std::string> words = {"sim",  "--topology", "dgx1-v100", "--algorithm",
                                          "ring", "--size",     "1MiB"};
  EXPECT_EQ(page_of(words), page_of(words));
}

TEST(Page, SaysTheVerdictBeforeTheData) {
  const std::string html = page_of({"sim", "--topology", "ring:n=3", "--algorithm", "ring"});
  EXPECT_LT(html.find("<p id=\"verdict\">ring moves 1GiB in"), html.find("id=\"data\""));
}

TEST(Page, NamesAreNoMarkup) {
  Page page;
  page.title = "</title><script>alert(1)</script>";
  page.verb = "\"><img src=x>";
  const std::string html = page_html(page);
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;alert(1)"), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
}

TEST(Page, LargeQuestionsStayBelowTheLimit) {
  // 1024 GPUs on 128 hosts: 10 000 links and more ops than anybody looks at.
  const std::string html = page_of({"sim", "--topology", "dgx-h100:nodes=128", "--algorithm",
                                    "ring", "recursive_doubling", "--size", "64MiB", "--no-nccl"});
  EXPECT_LE(html.size(), kMostPageBytes);
  EXPECT_GT(html.size(), 50'000U);
}

TEST(Page, HasLessDetailThanWasAskedFor) {
  const std::string html = page_of({"sim", "--topology", "full:n=96", "--algorithm", "direct",
                                    "--size", "64MiB", "--chunk", "0", "--no-nccl"});
  EXPECT_LE(html.size(), kMostPageBytes);
}

}  // namespace
}  // namespace espalier
