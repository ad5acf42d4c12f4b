// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace espalier {

/// What a simulation counts time in, with amounts rounded to 40 bits (4.5e-13 of themselves). Some
/// programs are chaotic: a difference of one rounding, 1e-16, grows fourfold from op to op until
/// transfers meet other ones (docs/validation.md). In a unit that goes with the speed of the
/// machine, machines that differ by their speed alone have the same amounts, to the last bit, and
/// so the same results.
class TimeUnit {
 public:
  /// `gbps`: a bandwidth of the machine, whose byte time is the unit. 0: there is none; seconds.
  explicit TimeUnit(double gbps) : seconds_(gbps > 0 ? 1 / (gbps * 1e9) : 1) {}

  double from_s(double seconds) const { return rounded(seconds / seconds_); }
  double to_s(double units) const { return units * seconds_; }
  double rate(double bytes_per_s) const { return rounded(bytes_per_s * seconds_); }

 private:
  static double rounded(double value) {
    constexpr int kBits = 40;
    int exponent = 0;
    const double mantissa = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(mantissa, kBits)), exponent - kBits);
  }

  double seconds_;
};

}  // namespace espalier
