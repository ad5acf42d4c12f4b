// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/check.h"

namespace espalier {

/// Plain values one after the other, as bytes for another process of the same build.
class Packed {
 public:
  template <class Value>
  requires std::is_trivially_copyable_v<Value>
  void put(const Value& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <class Value>
  void put(const std::vector<Value>& values) {
    put(values.size());
    for (const Value& value : values) put(value);
  }
  void put(const std::string& text) {
    put(text.size());
    for (const char letter : text) put(letter);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Takes the values out again, in the same order. Others than were put are a bug.
class Unpacking {
 public:
  explicit Unpacking(std::span<const std::byte> bytes) : left_(bytes) {}

  template <class Value>
  requires std::is_trivially_copyable_v<Value>
  void get(Value& value) {
    CHECK(left_.size() >= sizeof value);
    std::memcpy(&value, left_.data(), sizeof value);
    left_ = left_.subspan(sizeof value);
  }
  template <class Value>
  void get(std::vector<Value>& values) {
    values.resize(count());
    for (Value& value : values) get(value);
  }
  void get(std::string& text) {
    text.resize(count());
    for (char& letter : text) get(letter);
  }

 private:
  std::size_t count() {
    std::size_t size = 0;
    get(size);
    CHECK(size <= left_.size());  // every value has a byte at least
    return size;
  }
  std::span<const std::byte> left_;
};

}  // namespace espalier
