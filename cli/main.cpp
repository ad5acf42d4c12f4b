// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "cli/app.h"

int main(int argc, char** argv) {
  return espalier::run_app({argv + 1, argv + argc}, std::cout, std::cerr);
}
