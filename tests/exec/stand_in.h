// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>

namespace espalier {

/// A library that stands in for one that the code under test loads by its name: as long as it is
/// held, a library of that name is loaded already.
class StandIn {
 public:
  explicit StandIn(const char* file) : handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }

  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_.get(), name));
  }

 private:
  struct Close {
    void operator()(void* handle) const { dlclose(handle); }
  };
  std::unique_ptr<void, Close> handle_;
};

}  // namespace espalier
