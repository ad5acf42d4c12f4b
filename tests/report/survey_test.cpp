// SPDX-License-Identifier: Apache-2.0
#include "report/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/file.h"
#include "report/json.h"

namespace espalier {
namespace {

using testing::ElementsAre;

GroupFigures figures_of_groups(double gbps) {
  return {{1e-6, gbps}, {1e-6, gbps}, gbps, 2 * gbps, 2 * gbps};
}

/// Two hosts of two sockets, which ranks take in turn.
Survey survey_of_processes() {
  Survey survey;
  survey.inventory = inventory_of_processes({0, 0, 0, 0, 4, 4, 4, 4}, {0, 1, 0, 1, 0, 1, 0, 1});
  survey.kernel.pairs.assign(2, std::vector<PathFigures>(2, {1e-6, 12}));
  survey.kernel.both_ways_gbps.assign(2, std::vector<double>(2, 20));
  survey.alone.resize(1);
  survey.sockets = figures_of_groups(5);
  survey.network = figures_of_groups(3);
  return survey;
}

TEST(SurveyRows, NameTheRanksOfEachClassOfPairs) {
  const Json json = Json::parse(survey_json(survey_of_processes(), "a machine"));
  std::vector<std::string> rows;
  for (const Json& row : json.at("results")) {
    rows.push_back(row.at("method").get<std::string>() + " " + row.at("from").get<std::string>() +
                   " " + row.at("to").get<std::string>());
  }
  EXPECT_THAT(rows, ElementsAre("kernel gpu0 gpu0", "kernel gpu0 gpu2", "kernel gpu2 gpu0",
                                "socket gpu0 gpu1", "socket gpu1 gpu0", "socket socket0 socket1",
                                "network gpu0 gpu4", "network gpu4 gpu0", "network host0 host1"));
}

TEST(SurveyRows, SayWhatCallsOfGpusTake) {
  EXPECT_FALSE(Json::parse(survey_json(survey_of_processes(), "a machine")).contains("calls_s"));
  Survey survey;
  survey.inventory.devices.resize(1);
  survey.kernel.call_s = 2.5e-6;
  survey.kernel.pairs.assign(1, std::vector<PathFigures>(1));
  survey.kernel.both_ways_gbps.assign(1, std::vector<double>(1, 0));
  survey.alone.resize(1);
  const Json json = Json::parse(survey_json(survey, "a machine"));
  EXPECT_EQ(json.at("calls_s"), (Json{{"kernel", 2.5e-6}}));
  const Json schema =
      Json::parse(read_file(ESPALIER_SOURCE_DIR "/report/schemas/probe-1.schema.json"));
  EXPECT_TRUE(schema.at("properties").at("calls_s").at("properties").contains("kernel"));
}

TEST(SurveyRows, KeepToTheMethodsOfTheirSchema) {
  const Json schema =
      Json::parse(read_file(ESPALIER_SOURCE_DIR "/report/schemas/probe-1.schema.json"));
  const Json& methods =
      schema.at("properties").at("results").at("items").at("properties").at("method").at("enum");
  const Json json = Json::parse(survey_json(survey_of_processes(), "a machine"));
  for (const Json& row : json.at("results")) {
    EXPECT_NE(std::find(methods.begin(), methods.end(), row.at("method")), methods.end()) << row;
  }
}

}  // namespace
}  // namespace espalier
