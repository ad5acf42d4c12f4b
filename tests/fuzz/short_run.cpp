// SPDX-License-Identifier: Apache-2.0
// A short run of a fuzz target without libFuzzer: its seeds, then mutations of them made with a
// printed seed. ESPALIER_FUZZ_SEED and ESPALIER_FUZZ_RUNS change which and how many. Folders behind
// --corpus are those of ESPALIER_CORPUS, where that is set: their files are seeds, too.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

unsigned long from_environment(const char* name, unsigned long default_value) {
  const char* text = std::getenv(name);
  return text ? std::strtoul(text, nullptr, 10) : default_value;
}

/// Flips, inserts, removes or repeats a stretch, or splices in part of another seed.
std::string mutate(std::string input, const std::vector<std::string>& seeds,
                   std::mt19937_64& random) {
  static const std::string alphabet = "0123456789.:-+[]{}<,#\"' \n\t\\\x00\xff&*!abcdeghilnorstu";
  const auto pick = [&](std::size_t n) { return n ? random() % n : 0; };
  for (std::size_t times = 1 + pick(4); times > 0; --times) {
    const std::size_t at = pick(input.size() + 1);
    const std::size_t length = pick(16);
    switch (pick(5)) {
      case 0:
        if (at < input.size()) input[at] = alphabet[pick(alphabet.size())];
        break;
      case 1:
        input.insert(at, 1, alphabet[pick(alphabet.size())]);
        break;
      case 2:
        input.erase(at, length);
        break;
      case 3:
        input.insert(at, input.substr(at, length));
        break;
      default: {
        const std::string& other = seeds[pick(seeds.size())];
        input.replace(at, length, other.substr(pick(other.size() + 1), pick(64)));
      }
    }
  }
  return input;
}

/// Of the corpus: reading longer files as often as there are mutations takes minutes.
constexpr std::size_t kMaxMutatedBytes = 16384;

std::vector<std::string> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  // Which mutations are made depends on the order.
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  std::vector<std::string> seeds;
  std::size_t long_ones = 0;
  bool is_of_corpus = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--corpus") {
      is_of_corpus = true;
    } else if (!is_of_corpus) {
      for (std::string& text : files_in(argv[i])) seeds.push_back(std::move(text));
    } else if (corpus != nullptr) {
      for (std::string& text : files_in(std::filesystem::path(corpus) / argv[i])) {
        if (text.size() <= kMaxMutatedBytes) {
          seeds.push_back(std::move(text));
        } else {
          run(text);
          ++long_ones;
        }
      }
    }
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "no seeds\n");
    return 1;
  }
  const unsigned long seed = from_environment("ESPALIER_FUZZ_SEED", 1);
  const unsigned long runs = from_environment("ESPALIER_FUZZ_RUNS", 20000);
  std::printf("seed %lu, %lu mutations of %zu seeds; %zu longer files as they are\n", seed, runs,
              seeds.size(), long_ones);
  for (const std::string& input : seeds) run(input);
  std::mt19937_64 random(seed);
  for (unsigned long i = 0; i < runs; ++i) run(mutate(seeds[i % seeds.size()], seeds, random));
}
