// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"

namespace espalier {

/// What the tool said.
struct Spoken {
  int code = 0;
  std::string out;
  std::string err;
};

inline Spoken run(const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_app(words, out, err);
  return {code, out.str(), err.str()};
}

/// A test with a folder for files.
class WithFiles : public ::testing::Test {
 protected:
  WithFiles() { std::filesystem::create_directories(folder_); }
  ~WithFiles() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("espalier_cli_" + std::to_string(getpid()));
};

}  // namespace espalier
