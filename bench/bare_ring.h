// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace espalier::bench {

struct BareRing {
  double cpu_s = 0;   ///< of the median repetition, SimGrid's set-up not counted
  double time_s = 0;  ///< simulated, of one allreduce
  long long transfers = 0;
};

/// The minimum work of SimGrid for a ring allreduce: its own engine, the same zone trick and the
/// same transfers released by the same events as Espalier's ring, but no program, no checks, no
/// lanes, no report. Every step's part travels in `pieces`, one after the other. To be called once
/// per process: SimGrid has one engine.
BareRing run_bare_ring(int ranks, int pieces, double bytes, double bytes_per_s, double latency_s,
                       int repetitions);

}  // namespace espalier::bench
