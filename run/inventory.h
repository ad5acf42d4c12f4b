// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace espalier {

/// A GPU as the system describes it, or the threads of this computer.
struct ProbedDevice {
  std::string name;                   ///< "NVIDIA H200"
  std::string place;                  ///< "GPU 2, PCI 0000:3b:00.0", or empty
  int numa = -1;                      ///< socket, -1 when not known
  std::int64_t free_bytes = 0;        ///< of its memory; 0: not known
  int copy_engines = 0;               ///< 0: not known
  std::string pcie_kind;              ///< "pcie5x16", or empty: not known
  double pcie_gbps = 0;               ///< theory, one direction; 0: not known
  std::vector<std::string> switches;  ///< PCIe switches from it up to the CPU, by bus id
};

/// Parallel NVLinks between two GPUs, or between one and the NVSwitches.
struct ProbedNvlink {
  static constexpr int kSwitch = -1;
  int device = 0;
  int peer = kSwitch;
  int count = 1;
  int generation = 0;  ///< 1 to 5; 0: not known
};

/// What a machine has, before anything is measured.
struct Inventory {
  std::string name;                   ///< of the topology
  std::vector<ProbedDevice> devices;  ///< at least one; of processes with a GPU each, by rank
  std::vector<std::vector<bool>>
      can_access;  ///< by device and device: whether the first can map the second's memory
  std::vector<ProbedNvlink> nvlinks;  ///< each pair of ends once
  int sharing = 1;       ///< above 1: number of ranks that share the only device and its memory
  bool is_host = false;  ///< the device is this computer itself
  bool has_messages = false;  ///< ranks see their own memory only; what others have is sent to them
  std::int64_t cache_bytes = 0;  ///< that the last caches of a host hold together; 0: not known
  int hosts = 1;                 ///< with as many ranks each, one host's after the other's
  /// By rank, numbered in each host from 0 in the order in which they first appear; empty: every
  /// host is one socket, or it is not known where its ranks are.
  std::vector<int> sockets = {};

  int ranks_of_a_host() const { return ranks() / hosts; }
  /// Of a host that have buffers in one memory.
  int ranks_of_a_memory() const { return is_shared() ? ranks_of_a_host() : 1; }
  /// Ranks of the first host by their socket.
  std::vector<std::vector<int>> ranks_by_socket() const;
  /// Ranks whose pairs are measured: all of the first host, unless they are alike. Then the first
  /// two ranks of the first socket with at least two; rank 0 if there is none.
  std::vector<int> paired_ranks() const;

  int ranks() const { return sharing > 1 ? sharing : static_cast<int>(devices.size()); }
  /// Ranks share one memory; links between them are that memory.
  bool is_shared() const { return sharing > 1 || is_host; }
};

/// A computer whose ranks share its one memory: threads, or processes.
Inventory inventory_of_one_memory(std::string name, std::string device, int ranks);

/// Processes, a rank each, that send each other messages, with buffers in their hosts' memory. By
/// rank: `hosts`, of which one is told from another by its number; `sockets`, -1: not bound to one,
/// which makes its whole host one. Throws Error{unsupported} unless all hosts have as many ranks,
/// one host's after the other's.
Inventory inventory_of_processes(const std::vector<int>& hosts, const std::vector<int>& sockets);

/// What a process with its buffers in GPU memory tells the others.
struct ProbedProcess {
  int host = 0;               ///< as in `inventory_of_processes`
  ProbedDevice device;        ///< its GPU
  std::string bus_id;         ///< of that GPU, unique on its host
  std::vector<bool> can_map;  ///< by rank: whether messages to it go past the memory of hosts
};

/// The same of such processes, without NVLinks: all of a host share one GPU, or each has its own.
/// Throws Error{unsupported} for what `inventory_of_processes` does, and where some ranks of a host
/// share a GPU and others do not.
Inventory inventory_of_gpu_processes(const std::vector<ProbedProcess>& processes);

}  // namespace espalier
