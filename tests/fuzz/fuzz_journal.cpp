// SPDX-License-Identifier: Apache-2.0
// The journal of --resume: as a file, and each line as if its checksum were right.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "core/check.h"
#include "scenarios/baseline.h"
#include "scenarios/journal.h"

namespace espalier {
namespace {

/// What is read is either no record, an error that was recorded, or an answer that is written as it
/// was read.
template <class Answer>
void read_as(const Json& json) {
  Answer answer;
  try {
    read_record(json, answer);
  } catch (const NoRecord&) {
    return;
  } catch (const Json::exception&) {
    return;
  } catch (const Error& error) {
    CHECK(!error.diagnostics().empty());
    return;
  }
  const Json written = record_of(answer);
  Answer again;
  read_record(written, again);
  CHECK(one_line(record_of(again)) == one_line(written));
}

void read_record_of_every_kind(const Json& json) {
  read_as<Outcome>(json);
  read_as<TrainingOutcome>(json);
  read_as<Prediction>(json);
  read_as<std::optional<Baseline>>(json);
  read_as<Query>(json);
}

void read_file_of(const std::string& text) {
  static const int file = memfd_create("journal", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  CHECK(ftruncate(file, 0) == 0);
  CHECK(pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  try {
    Journal::read_only(path,
                       [](const Json&, const Json& record) { read_record_of_every_kind(record); });
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::input);
  }
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_file_of(text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, Json::parser_callback_t(), false);
    if (!json.is_object() || !json.contains("record")) continue;
    read_record_of_every_kind(json.at("record"));
    if (json.contains("key") && json.at("key").contains("question")) {
      read_as<Query>(json.at("key").at("question"));
    }
  }
  return 0;
}
