// SPDX-License-Identifier: Apache-2.0
// Processes played by threads, over connections of this computer.
#include "exec/mpi/socket_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "exec/mpi/exchange.h"
#include "exec/mpi/rendezvous.h"
#include "exec/mpi/told_elsewhere.h"
#include "tests/error_of.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr auto kTime = std::chrono::seconds(20);
constexpr std::size_t kLong = 5 * SocketTransport::kShortBytes + 3;

/// A port that was free a moment ago, with as many after it as a rendezvous may try.
int free_port() { return port_of(*listen_at(0)); }

void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) threads.emplace_back(work, rank);
  for (std::thread& thread : threads) thread.join();
}

/// Calls `work` in as many threads, each a process that has met the others.
void in_processes(int count, const std::function<void(Transport&)>& work) {
  const int port = free_port();
  in_threads(count, [&](int rank) {
    SocketTransport transport(rank, meet_at({rank, count, "127.0.0.1", port}, kTime));
    work(transport);
    meet(transport);
  });
}

void finish(Transport& transport, std::size_t messages) {
  std::vector<MessageId> over;
  drive(
      [&] {
        transport.test(over);
        return false;
      },
      [&] { return over.size() == messages; }, [&] { transport.give_way(); });
}

std::vector<std::byte> numbered(std::size_t bytes, int first) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = std::byte((first + static_cast<int>(i)) % 251);
  return all;
}

TEST(SocketTransport, ProcessesOfAnyNumberMeet) {
  for (const int count : {1, 2, 3, 6}) {
    in_processes(count, [&](Transport& transport) {
      EXPECT_EQ(transport.processes(), count);
      const auto mine = numbered(100, transport.process());
      const auto all = gather_from_all(transport, mine);
      ASSERT_THAT(all, SizeIs(count));
      for (int rank = 0; rank < count; ++rank) {
        EXPECT_EQ(all[static_cast<std::size_t>(rank)], numbered(100, rank));
      }
    });
  }
}

TEST(SocketTransport, MessagesOfAllLengthsArriveWhole) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, SocketTransport::kShortBytes,
                                  SocketTransport::kShortBytes + 1, std::size_t{3} << 20}) {
    in_processes(2, [&](Transport& transport) {
      const int other = 1 - transport.process();
      const auto out = numbered(bytes, transport.process());
      std::vector<std::byte> in(bytes);
      transport.send(other, 7, out);
      transport.receive(other, 7, in);
      finish(transport, 2);
      EXPECT_EQ(in, numbered(bytes, other)) << bytes << " bytes";
    });
  }
}

TEST(SocketTransport, WhatNobodyWantsYetStandsInNobodysWay) {
  in_processes(2, [&](Transport& transport) {
    std::vector<std::vector<std::byte>> messages;
    for (int tag = 0; tag < 6; ++tag) {
      messages.push_back(numbered(tag % 2 == 0 ? 10 : kLong, tag));
    }
    if (transport.process() == 0) {
      for (int tag = 0; tag < 6; ++tag) {
        transport.send(1, tag, messages[static_cast<std::size_t>(tag)]);
      }
      finish(transport, 6);
      return;
    }
    // The last one first, and each before the next is asked for.
    for (int tag = 5; tag >= 0; --tag) {
      const auto& expected = messages[static_cast<std::size_t>(tag)];
      std::vector<std::byte> in(expected.size());
      transport.receive(0, tag, in);
      finish(transport, 1);
      EXPECT_EQ(in, expected);
    }
  });
}

TEST(SocketTransport, MessagesOfOneTagKeepTheirOrder) {
  for (const std::size_t bytes : {std::size_t{10}, kLong}) {
    in_processes(2, [&](Transport& transport) {
      constexpr int kCount = 5;
      std::vector<std::vector<std::byte>> buffers;
      for (int i = 0; i < kCount; ++i) buffers.push_back(numbered(bytes, 3 * i));
      if (transport.process() == 0) {
        for (const auto& buffer : buffers) transport.send(1, 1, buffer);
      } else {
        for (auto& buffer : buffers) {
          buffer.assign(bytes, {});
          transport.receive(0, 1, buffer);
        }
      }
      finish(transport, kCount);
      for (int i = 0; i < kCount; ++i) {
        EXPECT_EQ(buffers[static_cast<std::size_t>(i)], numbered(bytes, 3 * i));
      }
    });
  }
}

TEST(SocketTransport, ShortMessagesDoNotOvertakeLongOnesOfTheirTag) {
  const std::vector<std::size_t> lengths = {10, kLong, 20, 0, kLong, kLong, 30};
  in_processes(2, [&](Transport& transport) {
    std::vector<std::vector<std::byte>> buffers;
    for (const std::size_t length : lengths) buffers.push_back(numbered(length, 3));
    std::byte sent_all{};
    if (transport.process() == 0) {
      for (const auto& buffer : buffers) transport.send(1, 1, buffer);
      transport.send(1, 2, {&sent_all, 1});
      finish(transport, lengths.size() + 1);
      return;
    }
    // What could overtake is here before the first one is asked for.
    transport.receive(0, 2, {&sent_all, 1});
    finish(transport, 1);
    for (auto& buffer : buffers) {
      const std::size_t length = buffer.size();
      buffer.assign(length, {});
      transport.receive(0, 1, buffer);
      finish(transport, 1);
      EXPECT_EQ(buffer, numbered(length, 3));
    }
  });
}

TEST(SocketTransport, MessagesToWhoHasLeftAreNeverOver) {
  const int port = free_port();
  std::vector<std::byte> in(8);
  in_threads(2, [&](int rank) {
    SocketTransport transport(rank, meet_at({rank, 2, "127.0.0.1", port}, kTime));
    if (rank == 1) return;
    transport.receive(1, 0, in);
    std::vector<MessageId> over;
    for (int i = 0; i < 100; ++i) {
      transport.test(over);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_THAT(over, SizeIs(0));
  });
}

TEST(Rendezvous, APortThatIsTakenIsNoObstacle) {
  const Socket other = std::move(*listen_at(0));  // who never says anything
  const int port = port_of(other);
  in_threads(3, [&](int rank) {
    EXPECT_THAT(meet_at({rank, 3, "127.0.0.1", port}, kTime), SizeIs(3));
  });
}

TEST(Rendezvous, RanksThatDoNotComeAreNamed) {
  const int port = free_port();
  in_threads(2, [&](int rank) {
    const auto meeting = [&] { meet_at({rank, 4, "127.0.0.1", port}, std::chrono::seconds(3)); };
    if (rank == 0) {
      EXPECT_THAT(error_of(meeting, ErrorKind::runtime), HasSubstr("ranks 2, 3 have not come to"));
    } else {
      EXPECT_THROW(meeting(), ToldElsewhere);
    }
  });
}

TEST(Rendezvous, RanksThatWereGivenTwiceAreAMistake) {
  const int port = free_port();
  in_threads(3, [&](int thread) {
    const int rank = std::min(thread, 1);
    const auto meeting = [&] { meet_at({rank, 3, "127.0.0.1", port}, kTime); };
    if (rank == 0) {
      EXPECT_THAT(error_of(meeting, ErrorKind::usage), HasSubstr("two processes have RANK 1"));
    } else {
      EXPECT_THROW(meeting(), ToldElsewhere);
    }
  });
}

TEST(Rendezvous, ProcessesOfOtherNumbersAreSentAway) {
  const int port = free_port();
  in_threads(2, [&](int rank) {
    const auto meeting = [&] {
      meet_at({rank, 2 + rank, "127.0.0.1", port}, std::chrono::seconds(2));
    };
    EXPECT_THAT(error_of(meeting, ErrorKind::runtime),
                HasSubstr(rank == 0 ? "in time; rank 1 of 3 came from another job"
                                    : "; one of another job was there"));
  });
}

// The first rank 0 has the port, the other one the next.
TEST(Rendezvous, JobsAtOnePortDoNotMix) {
  const int port = free_port();
  for (const bool are_alike : {false, true}) {
    in_threads(6, [&](int thread) {
      const int job = thread % 2;
      const int count = are_alike ? 3 : 3 - job;
      const int rank = thread / 2;
      if (rank >= count) return;
      const RendezvousPlace place{rank, count, "127.0.0.1", port, std::uint64_t(job)};
      SocketTransport transport(rank, meet_at(place, kTime));
      const auto all = gather_from_all(transport, std::as_bytes(std::span(&job, 1)));
      for (const std::vector<std::byte>& theirs : all) EXPECT_EQ(theirs.front(), std::byte(job));
    });
  }
}

TEST(Rendezvous, WhoSaysNothingHoldsUpNobody) {
  const int port = free_port();
  const auto start = std::chrono::steady_clock::now();
  in_threads(9, [&](int thread) {
    if (thread < 2) {
      EXPECT_THAT(meet_at({thread, 2, "127.0.0.1", port}, kTime), SizeIs(2));
      return;
    }
    std::optional<Socket> stray;
    while (!stray && std::chrono::steady_clock::now() - start < kTime) {
      stray = connect_to("127.0.0.1", port, std::chrono::steady_clock::now() + kTime);
    }
    std::vector<std::byte> bytes(1 << 10);
    receive_all(*stray, bytes, std::chrono::steady_clock::now() + kTime);  // until it is sent away
  });
}

TEST(Rendezvous, PortsOfTheSystemAreSaidToBeThat) {
  if (listen_at(80) || errno != EACCES) GTEST_SKIP() << "this user may use port 80, or it is taken";
  EXPECT_THAT(
      error_of(
          [&] {
            meet_at({0, 2, "127.0.0.1", 80}, kTime);
          },
          ErrorKind::usage),
      HasSubstr("this user may not use ports 80 to 87\n  help: a MASTER_PORT from 1024 on"));
}

TEST(Sockets, AssigningClosesWhatWasThere) {
  Socket socket = std::move(*listen_at(0));
  const int port = port_of(socket);
  socket = std::move(*listen_at(0));
  EXPECT_TRUE(listen_at(port));
}

TEST(Rendezvous, WhereRank0WasLookedForIsTold) {
  const int port = free_port();
  EXPECT_THAT(error_of(
                  [&] {
                    meet_at({2, 3, "127.0.0.1", port}, std::chrono::seconds(1));
                  },
                  ErrorKind::runtime),
              HasSubstr("rank 2 has not found rank 0 at 127.0.0.1:"));
}

}  // namespace
}  // namespace espalier
