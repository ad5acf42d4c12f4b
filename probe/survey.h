// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/backend.h"
#include "run/inventory.h"
#include "topologies/topology.h"

namespace espalier {

/// What moves bytes: the kernels (or threads) that also reduce, or copy engines.
enum class CopyMethod : std::uint8_t { kernel, copy_engine };

/// The threads and memory of this computer as a machine of that many ranks.
Inventory host_inventory(int ranks);

struct PathFigures {
  double latency_s = 0;  ///< time of an op that moves hardly any bytes
  double gbps = 0;       ///< of many bytes
};

/// Copies made one way.
struct CopyFigures {
  PathFigures local;  ///< inside the memory of rank 0
  /// What a run of a program takes beside its ops, in seconds: launching its graph. With one op at
  /// every rank, all at once. Not of hosts, whose threads wait for a program as for an op.
  double call_s = 0;
  std::vector<std::vector<PathFigures>>
      pairs;  ///< by source and destination; the diagonal is empty
  std::vector<std::vector<double>> both_ways_gbps;  ///< together, by the lower and the higher rank
  std::vector<PathFigures> to_host;                 ///< by rank; latency is that of both ways
  std::vector<PathFigures> from_host;
  std::vector<double> host_both_ways_gbps;
  /// Of a step in which every rank copies to the next one, where ranks share a device.
  double crowded_latency_s = 0;
};

/// What copying and combining k operands inside one memory takes, in seconds for a byte of result.
struct ArithmeticFigures {
  static constexpr std::array kOperands{2, 4, 8};
  double copy_s = 0;
  std::array<double, kOperands.size()> combine_s{};  ///< by kOperands
};

/// What processes that share a memory get from each other, in GB/s.
struct ExchangeFigures {
  ExchangeRates all;  ///< each from another one, all at once
  ExchangeRates one;  ///< one of them alone
};

/// What is reached by ranks that touch so many bytes each, over and over.
struct WorkingSetFigures {
  std::int64_t bytes = 0;
  ArithmeticFigures together;  ///< as Survey::together
  ArithmeticFigures alone;     ///< by the first rank
  ExchangeFigures exchange;
};

/// What two groups of ranks send each other: those of two hosts, or of two sockets of one.
struct GroupFigures {
  PathFigures to;            ///< from the first rank of the one to the first rank of the other
  PathFigures from;          ///< and back
  double both_gbps = 0;      ///< of the two together
  double all_gbps = 0;       ///< of all ranks of a group, each to one of the other group
  double all_both_gbps = 0;  ///< and back, at the same time
  int pairs = 0;             ///< that all of them make: the smaller group has so many ranks
};

/// A machine as it was found and measured. `pairs` are those of Inventory::paired_ranks; where
/// ranks share one device, `alone` is that of the first. Processes of a host that are on several
/// sockets exchange within their sockets, where these have more than one, as `all` of an exchange
/// says of all ranks of the host.
struct Survey {
  Inventory inventory;
  CopyFigures kernel;
  std::optional<CopyFigures> copy_engine;  ///< where there are any
  std::vector<ArithmeticFigures> alone;    ///< by rank
  ArithmeticFigures together;  ///< ranks that share a device, all at once; bytes of all ranks
  ExchangeFigures exchange;    ///< where what others have is sent, of more bytes than caches hold
  std::vector<StartUp::Longer> longer_messages;  ///< what these cost to start within a socket
  std::vector<WorkingSetFigures> working_sets;   ///< that caches may hold, small ones first
  double reduce_latency_s = 0;                   ///< of a combine that hardly combines anything
  std::vector<GroupFigures> to_sockets;  ///< from the first one of the first host to each other
  std::optional<GroupFigures> sockets;   ///< their medians, where there are several
  std::vector<GroupFigures> to_hosts;    ///< to each but the first, of which all else is
  std::optional<GroupFigures> network;   ///< their medians, where there are several hosts
  /// By how much the times of a program differ between rounds, as a share of the middle one: the
  /// median over programs. 0 when there was one round only.
  double spread = 0;
};

/// Times programs: all that a survey knows about the machine it surveys.
struct Meter {
  /// Seconds of one run of the program with a message of that many bytes.
  std::function<double(const Program&, std::int64_t, CopyMethod)> time_s;
  std::int64_t footprint_bytes = 0;  ///< buffers of a rank at work: more than caches hold
  std::int64_t piece_bytes = 0;      ///< of an op when rates are measured
  int rounds = 1;                    ///< in each of which every program is timed
  bool copy_engines = false;
  std::function<void(const std::string&)> progress;  ///< told what is measured next
};

/// How a back end is used to measure.
struct MeterSettings {
  std::int64_t footprint_bytes = 0;  ///< as in Meter
  std::int64_t piece_bytes = 0;
  double window_s = 0.07;  ///< for which a program runs over and over in a round, waits included
  double timeout_s = 60;   ///< of a run
};

/// Times programs on a back end of as many ranks as the survey has, in three rounds: the median of
/// the runs that fill the window, at least half of it, seven to a thousand. Nothing is checked. The
/// back end must outlive it.
Meter backend_meter(Backend& backend, const MeterSettings& settings);

/// Calls of `Meter::progress` that `take_survey` will make.
std::size_t survey_steps(const Inventory& inventory, const Meter& meter);

/// Measures everything, one thing after the other, in as many rounds as the meter says. Of each
/// program the median over the rounds counts: a disturbance that is over when the next round comes
/// moves nothing, however long a program's own runs are disturbed. Latencies are differences
/// between a long and a short chain of ops, so that what a run costs beside its ops does not count;
/// bandwidths are those of large ops, without the time that these take to start. Memory of a host
/// is measured with less and less of it at work, too, half as much each time.
Survey take_survey(const Inventory& inventory, const Meter& meter);

}  // namespace espalier
