// SPDX-License-Identifier: Apache-2.0
#include "tests/exec/local_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "exec/host/host_memory.h"
#include "exec/mpi/host_steps.h"
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
  bool takes_gpu_memory() const override { return network_.takes_gpu_memory; }
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

class HostPart : public TestPart {
 public:
  explicit HostPart(const PartRequest& request)
      : memory_(request.lowered),
        steps_(request.plan, memory_, request.type, request.op, request.transport) {}
  StepCarrier& steps() override { return steps_; }
  void write(PlaceId place, Buffer buffer, std::span<const std::byte> bytes) override {
    const std::span<std::byte> here = memory_.buffer(place, buffer);
    ASSERT_EQ(here.size(), bytes.size());
    std::ranges::copy(bytes, here.begin());
  }
  std::vector<std::byte> read(PlaceId place, Buffer buffer) const override {
    const std::span<std::byte> here = memory_.buffer(place, buffer);
    return {here.begin(), here.end()};
  }

 private:
  HostMemory memory_;
  HostSteps steps_;
};

LanePrograms only(LanePrograms lowered, const std::vector<int>& homes, int process) {
  for (std::size_t place = 0; place < homes.size(); ++place) {
    if (homes[place] != process) lowered.buffer_bytes[place] = {};
  }
  return lowered;
}

/// In turns drawn by chance, until all are over or none moves.
void run_all(std::deque<MessageRunner>& runners, std::mt19937_64& random) {
  std::vector<MessageRunner*> order;
  for (MessageRunner& runner : runners) {
    runner.start();
    order.push_back(&runner);
  }
  const auto is_over = [](const MessageRunner* runner) { return runner->is_over(); };
  for (int idle = 0; !std::ranges::all_of(order, is_over);) {
    ++idle;
    std::ranges::shuffle(order, random);
    for (MessageRunner* runner : order) {
      // Some go far ahead of the others.
      for (std::uint64_t turns = 1 + random() % 4 * (random() % 8); turns > 0; --turns) {
        if (runner->advance()) idle = 0;
      }
    }
    // What is under way inside of a step shows only at its end.
    ASSERT_LT(idle, 1000) << "the processes block each other";
  }
}

}  // namespace

std::vector<std::unique_ptr<TestPart>> make_host_parts(const std::deque<PartRequest>& requests) {
  std::vector<std::unique_ptr<TestPart>> parts;
  for (const PartRequest& request : requests) parts.push_back(std::make_unique<HostPart>(request));
  return parts;
}

void expect_messages_right(const Program& program, DataType type, ReduceOp op,
                           std::int64_t elements, Buffering buffering, std::uint64_t seed,
                           const Scratch& scratch, const MakeParts& make) {
  std::mt19937_64 random(seed);
  const auto size = static_cast<std::int64_t>(size_of(type));
  const LanePrograms lowered = lower(program, elements, size_of(type));
  const std::vector<OpId> order = common_order(program, lowered);
  const std::vector<int> homes = processes_of_places(program);
  LocalNetwork network(program.ranks(), buffering, seed);
  std::deque<PartRequest> requests;
  for (int process = 0; process < program.ranks(); ++process) {
    requests.push_back(
        {program, only(lowered, homes, process),
         plan_messages(program, lowered, order, homes, process, size_of(type), scratch), type, op,
         network.transport(process)});
  }
  const std::vector<std::unique_ptr<TestPart>> parts = make(requests);
  std::deque<MessageRunner> runners;
  for (std::size_t process = 0; process < parts.size(); ++process) {
    runners.emplace_back(requests[process].plan, parts[process]->steps());
  }
  const auto home_of = [&](PlaceId place) -> TestPart& {
    return *parts[static_cast<std::size_t>(homes[static_cast<std::size_t>(place)])];
  };
  Memory expected = initial_memory(program, type, op, elements);
  for (int run = 0; run < 2; ++run) {  // the second starts where the first ended
    for (PlaceId place = 0; place < program.places(); ++place) {
      for (const Buffer buffer : kBuffers) {
        auto& bytes =
            expected.places[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
        bytes = random_elements(type, static_cast<std::int64_t>(bytes.size()) / size, random);
        home_of(place).write(place, buffer, bytes);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
    interpret(program, type, op, elements, expected);
    run_all(runners, random);
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_EQ(network.unmatched(), 0u);
    for (PlaceId place = 0; place < program.places(); ++place) {
      for (const Buffer buffer : kBuffers) {
        const auto& bytes =
            expected.places[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
        EXPECT_EQ(home_of(place).read(place, buffer), bytes)
            << "place " << place << ", " << to_string(buffer);
      }
    }
  }
}

}  // namespace espalier
