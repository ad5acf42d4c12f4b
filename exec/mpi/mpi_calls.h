// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace espalier {

/// Throws Error{runtime} with what MPI says of the status, unless it is a success.
void require_mpi(int status, const char* call);

}  // namespace espalier
