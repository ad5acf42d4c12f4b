// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/agreement.h"

#include <fmt/format.h>

#include <new>

#include "exec/mpi/exchange.h"
#include "exec/mpi/mpi_backend.h"
#include "exec/mpi/packed.h"

namespace espalier {

Meeting::Meeting(const Board& board) : state_(board.mine()) {
  state_.phase.store(Phase::meeting);
  state_.progress.fetch_add(1);
}

Meeting::~Meeting() {
  state_.progress.fetch_add(1);
  state_.phase.store(Phase::working);
}

Refusal refusal_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    const Diagnostic& first = error.diagnostics().front();
    const bool is_memory = dynamic_cast<const OutOfMemory*>(&error) != nullptr;
    return {true, is_memory, error.kind(), first.message, first.suggestion};
  } catch (const std::bad_alloc&) {
    return {true, true, ErrorKind::unsupported, "there is not enough memory to prepare the run",
            ""};
  }
  return {};
}

void throw_together(const Processes& processes, const Refusal& refusal) {
  if (processes.transport.process() > 0) throw ToldElsewhere(refusal.kind, refusal.message);
  if (refusal.is_memory) throw OutOfMemory(refusal.message, refusal.help);
  throw Error(refusal.kind, refusal.message, refusal.help);
}

void agree(const Processes& processes, const Refusal& mine, const Fingerprint& print) {
  Packed packed;
  packed.put(mine.is_refused);
  packed.put(mine.is_memory);
  packed.put(mine.kind);
  packed.put(mine.message);
  packed.put(mine.help);
  packed.put(print);
  const Meeting meeting(processes.board);
  const auto all = gather_from_all(processes.transport, packed.bytes());
  std::vector<Fingerprint> prints(all.size());
  Refusal first;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Unpacking unpacking(all[rank]);
    Refusal refusal;
    unpacking.get(refusal.is_refused);
    unpacking.get(refusal.is_memory);
    unpacking.get(refusal.kind);
    unpacking.get(refusal.message);
    unpacking.get(refusal.help);
    unpacking.get(prints[rank]);
    if (!refusal.is_refused || first.is_refused) continue;
    first = refusal;
    first.message = fmt::format("rank {}: {}", rank, refusal.message);
  }
  const std::vector<std::string> different = disagreements(prints);
  if (!different.empty()) {
    std::string message = "the processes were not asked the same: ";
    for (const std::string& sentence : different) {
      message += (&sentence == &different.front() ? "" : "; ") + sentence;
    }
    throw_together(processes, {true, false, ErrorKind::usage, message,
                               "start the same espalier with the same arguments everywhere"});
  }
  if (first.is_refused) throw_together(processes, first);
}

}  // namespace espalier
