// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "formats/msccl_run.h"
#include "ir/program.h"

namespace espalier {

/// A right MSCCL algorithm as a program of ours: the step that sends a message and the one that
/// receives it are one op, pushed by the sender's thread block where the receiver only stores it,
/// fetched by the receiver's where it adds something. A sum that is sent on without being stored is
/// stored in scratch. Thread blocks are lanes. Dependencies are those of data flow and those that
/// the file states. Private to the room.
///
/// Nothing when it moves units to another position within their block, which messages that don't
/// divide evenly do not allow (R4). \pre verify_msccl found it right; it runs with `fifo_slots`.
std::optional<Program> msccl_program(const MscclSteps& steps, const Contract& contract,
                                     int fifo_slots);

}  // namespace espalier
