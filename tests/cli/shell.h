// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/temp_file.h"

namespace espalier {

/// What a script printed.
struct Result {
  int code;
  std::string out;  ///< standard output and standard error
};

/// Runs a bash script in which $espalier is the tool.
inline Result bash(const std::string& script) {
  const std::string path = temp_file("script.sh");
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

}  // namespace espalier
