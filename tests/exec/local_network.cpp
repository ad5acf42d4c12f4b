// SPDX-License-Identifier: Apache-2.0
#include "tests/exec/local_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "exec/host/host_memory.h"
#include "exec/lanes/message_plan.h"
#include "exec/mpi/message_runner.h"
#include "ir/interpret.h"
#include "tests/exec/random_elements.h"

namespace espalier {

class LocalNetwork::Endpoint : public Transport {
 public:
  Endpoint(LocalNetwork& network, int process, int processes)
      : network_(network), process_(process), processes_(processes) {}
  int process() const override { return process_; }
  int processes() const override { return processes_; }
  MessageId send(int to, int tag, std::span<const std::byte> bytes) override {
    return network_.send(process_, to, tag, bytes);
  }
  MessageId receive(int from, int tag, std::span<std::byte> bytes) override {
    return network_.receive(from, process_, tag, bytes);
  }
  void test(std::vector<MessageId>& over) override { network_.test(process_, over); }
  [[noreturn]] void abort(int) override { std::abort(); }

 private:
  LocalNetwork& network_;
  const int process_;
  const int processes_;
};

LocalNetwork::LocalNetwork(int processes, Buffering buffering, std::uint64_t seed)
    : buffering_(buffering),
      random_(seed),
      next_id_(static_cast<std::size_t>(processes), 0),
      over_(static_cast<std::size_t>(processes)) {
  for (int process = 0; process < processes; ++process) {
    transports_.push_back(std::make_unique<Endpoint>(*this, process, processes));
  }
}

LocalNetwork::~LocalNetwork() = default;

Transport& LocalNetwork::transport(int process) {
  return *transports_[static_cast<std::size_t>(process)];
}

std::size_t LocalNetwork::unmatched() {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [key, messages] : sent_) count += messages.size();
  for (const auto& [key, messages] : expected_) count += messages.size();
  return count;
}

void LocalNetwork::end(int process, MessageId id) {
  over_[static_cast<std::size_t>(process)].push_back(id);
}

MessageId LocalNetwork::send(int from, int to, int tag, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const MessageId id = next_id_[static_cast<std::size_t>(from)]++;
  Sent message{bytes, {}, id};
  if (buffering_ == Buffering::all) {
    message.copy.assign(bytes.begin(), bytes.end());
    end(from, id);
  }
  sent_[{from, to, tag}].push_back(std::move(message));
  match({from, to, tag});
  return id;
}

MessageId LocalNetwork::receive(int from, int to, int tag, std::span<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const MessageId id = next_id_[static_cast<std::size_t>(to)]++;
  expected_[{from, to, tag}].push_back({bytes, id});
  match({from, to, tag});
  return id;
}

void LocalNetwork::match(const Key& key) {
  const auto sent = sent_.find(key);
  const auto expected = expected_.find(key);
  if (sent == sent_.end() || expected == expected_.end()) return;
  const Sent& message = sent->second.front();
  const Expected& place = expected->second.front();
  const bool is_buffered = buffering_ == Buffering::all;
  EXPECT_EQ(message.bytes.size(), place.bytes.size());
  const std::byte* const from = is_buffered ? message.copy.data() : message.bytes.data();
  if (!place.bytes.empty()) std::memcpy(place.bytes.data(), from, place.bytes.size());
  const auto [from_process, to_process, tag] = key;
  if (!is_buffered) end(from_process, message.id);
  end(to_process, place.id);
  sent->second.pop_front();
  expected->second.pop_front();
  if (sent->second.empty()) sent_.erase(sent);
  if (expected->second.empty()) expected_.erase(expected);
}

void LocalNetwork::test(int process, std::vector<MessageId>& over) {
  const std::lock_guard lock(mutex_);
  std::vector<MessageId>& mine = over_[static_cast<std::size_t>(process)];
  std::ranges::shuffle(mine, random_);
  std::size_t told = mine.empty() ? 0 : 1 + random_() % mine.size();
  for (; told > 0; --told) {
    over.push_back(mine.back());
    mine.pop_back();
  }
}

namespace {

constexpr std::array kBuffers{Buffer::in, Buffer::out, Buffer::tmp};

/// A process with the buffers of its places.
struct Part {
  Part(const Program& program, const LanePrograms& lowered, const std::vector<OpId>& order,
       const std::vector<int>& homes, int process, DataType type, ReduceOp op,
       std::int64_t scratch_bytes, Transport& transport)
      : plan(plan_messages(program, lowered, order, homes, process, size_of(type), scratch_bytes)),
        memory(only(lowered, homes, process)),
        runner(plan, memory, type, op, transport) {}

  static LanePrograms only(LanePrograms lowered, const std::vector<int>& homes, int process) {
    for (std::size_t place = 0; place < homes.size(); ++place) {
      if (homes[place] != process) lowered.buffer_bytes[place] = {};
    }
    return lowered;
  }

  MessagePlan plan;
  HostMemory memory;
  MessageRunner runner;
};

/// In turns drawn by chance, until all are over or none moves.
void run_all(std::vector<std::unique_ptr<Part>>& parts, std::mt19937_64& random) {
  for (auto& part : parts) part->runner.start();
  const auto is_over = [](const auto& part) { return part->runner.is_over(); };
  while (!std::ranges::all_of(parts, is_over)) {
    bool moved = false;
    std::ranges::shuffle(parts, random);
    for (auto& part : parts) {
      // Some go far ahead of the others.
      for (std::uint64_t turns = 1 + random() % 4 * (random() % 8); turns > 0; --turns) {
        moved = part->runner.advance() || moved;
      }
    }
    ASSERT_TRUE(moved) << "the processes block each other";
  }
}

}  // namespace

void expect_messages_right(const Program& program, DataType type, ReduceOp op,
                           std::int64_t elements, Buffering buffering, std::uint64_t seed,
                           std::int64_t scratch_bytes) {
  std::mt19937_64 random(seed);
  const auto size = static_cast<std::int64_t>(size_of(type));
  const LanePrograms lowered = lower(program, elements, size_of(type));
  const std::vector<OpId> order = common_order(program, lowered);
  const std::vector<int> homes = processes_of_places(program);
  LocalNetwork network(program.ranks(), buffering, seed);
  std::vector<std::unique_ptr<Part>> parts;
  for (int process = 0; process < program.ranks(); ++process) {
    parts.push_back(std::make_unique<Part>(program, lowered, order, homes, process, type, op,
                                           scratch_bytes, network.transport(process)));
  }
  std::vector<const Part*> part_of;
  for (const auto& part : parts) part_of.push_back(part.get());
  const auto home_of = [&](PlaceId place) -> const HostMemory& {
    return part_of[static_cast<std::size_t>(homes[static_cast<std::size_t>(place)])]->memory;
  };
  Memory expected = initial_memory(program, type, op, elements);
  for (int run = 0; run < 2; ++run) {  // the second starts where the first ended
    for (PlaceId place = 0; place < program.places(); ++place) {
      for (const Buffer buffer : kBuffers) {
        auto& bytes =
            expected.places[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
        bytes = random_elements(type, static_cast<std::int64_t>(bytes.size()) / size, random);
        const std::span<std::byte> here = home_of(place).buffer(place, buffer);
        ASSERT_EQ(here.size(), bytes.size());
        std::ranges::copy(bytes, here.begin());
      }
    }
    interpret(program, type, op, elements, expected);
    run_all(parts, random);
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_EQ(network.unmatched(), 0u);
    for (PlaceId place = 0; place < program.places(); ++place) {
      for (const Buffer buffer : kBuffers) {
        const auto& bytes =
            expected.places[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
        EXPECT_TRUE(std::ranges::equal(home_of(place).buffer(place, buffer), bytes))
            << "place " << place << ", " << to_string(buffer);
      }
    }
  }
}

}  // namespace espalier
