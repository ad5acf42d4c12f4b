// SPDX-License-Identifier: Apache-2.0
// The machines printed in docs/topologies.md.
#include <gtest/gtest.h>

#include "core/file.h"
#include "topologies/load.h"

namespace espalier {
namespace {

TEST(Docs, ExamplesOfMachinesLoad) {
  const std::string file = ESPALIER_DOCS_DIR "/topologies.md";
  const std::string text = read_file(file);
  constexpr std::string_view kBegin = "```yaml\nschema: espalier.topology/1\n";
  std::vector<std::string> names;
  for (std::size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at)) {
    at = text.find('\n', at) + 1;
    const std::size_t end = text.find("```", at);
    names.push_back(parse_topology(text.substr(at, end - at), file).name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"example", "thousand", "dgx-a100-ndr"}));
}

}  // namespace
}  // namespace espalier
