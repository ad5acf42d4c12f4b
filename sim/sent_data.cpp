// SPDX-License-Identifier: Apache-2.0
#include "sim/sent_data.h"

#include <algorithm>
#include <utility>

#include "sim/last_writers.h"

namespace espalier {

SentData::SentData(const Program& program, const Rounds& rounds) : rounds_(rounds) {
  std::vector<Read> reads;
  for_each_touched(program, rounds, [&](const Touched& touched) {
    const Read read{touched.op, touched.writer};
    const bool is_known = !reads.empty() && reads.back() == read;
    if (touched.is_read_here && is_sent(program.ops[touched.writer]) && !is_known) {
      reads.push_back(read);
    }
  });
  take(program.ops.size(), std::move(reads));
}

SentData::SentData(std::size_t ops, std::vector<Read> reads) { take(ops, std::move(reads)); }

void SentData::take(std::size_t ops, std::vector<Read> reads) {
  std::ranges::sort(reads, {}, [](const Read& one) { return std::pair(one.reader, one.sent); });
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  reads_ = std::move(reads);
  if (reads_.empty()) return;
  first_.resize(ops + 1, 0);
  has_reader_.resize(ops, false);
  for (const Read& one : reads_) {
    ++first_[one.reader + 1];
    has_reader_[one.sent] = true;
  }
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
}

}  // namespace espalier
