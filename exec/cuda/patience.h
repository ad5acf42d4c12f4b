// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace espalier::cuda {

/// Makes a call that may never return, in a thread of its own, and waits for it. Throws what it
/// throws, and Error{runtime} when it has not returned within `patience_s`: it then goes on for as
/// long as this process lives, and the devices are abandoned. So the call has to own all that it
/// uses.
void call_within(double patience_s, const std::string& name, std::function<void()> call);

}  // namespace espalier::cuda
