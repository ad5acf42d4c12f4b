// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace espalier {

/// Where a launcher ends all processes of a host with SIGKILL as soon as one has been killed, as
/// Hydra does (MPICH's, and those made from it), none of them can say which one it was, and neither
/// does the launcher. A witness can: a process beside the run, in a session of its own, that all
/// processes of the run on this host are connected to. The system tells it who is gone in the order
/// in which they went. When all are gone it names the first, if it has left without a word and
/// nobody has told anything: where one left on its own, as after Ctrl-C, others are ended because
/// of it. Then it ends.
class Witness {
 public:
  /// Whether the launcher, the parent of this process, is one that makes a witness necessary.
  static bool is_wanted();

  /// Connects to the witness of this run, which the first process that comes starts. Without one,
  /// where the system refuses, nothing is lost but its words. To be made before MPI and threads
  /// start: it forks. `expected`: how many processes come here, 0 where that is not known; if not
  /// all have come, the witness names those that have not as well.
  Witness(int rank, int expected);
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  /// This process has told what is wrong: the witness need not. Safe on any thread.
  void note_told();
  /// This process leaves on its own. Safe on any thread.
  void note_end();

 private:
  int socket_ = -1;
};

}  // namespace espalier
