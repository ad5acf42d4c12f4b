// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "cli/app.h"
#include "cli/signals.h"

int main(int argc, char** argv) {
  espalier::end_cleanly_on_signals();
  return espalier::run_app({argv + 1, argv + argc}, std::cout, std::cerr);
}
