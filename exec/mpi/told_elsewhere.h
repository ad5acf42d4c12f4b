// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.h"

namespace espalier {

/// An error that all processes of a run have, in those that leave it to rank 0 to tell.
class ToldElsewhere : public Error {
 public:
  using Error::Error;
};

}  // namespace espalier
