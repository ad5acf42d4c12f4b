// SPDX-License-Identifier: Apache-2.0
// Carries the headers that all tests share; see CMakeLists.txt.
#include <gmock/gmock.h>
