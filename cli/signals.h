// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace espalier {

/// For main: Ctrl-C, a request to stop and a closed pipe end the process at once and in silence,
/// with exit code 128 + signal (130 for Ctrl-C), after the temporary of a file being written is
/// removed.
void end_cleanly_on_signals();

}  // namespace espalier
