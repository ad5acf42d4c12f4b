// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace espalier {

/// A duration, or a date since the start of a simulation, as flow engines count time. How long a
/// tick is, only the TimeUnit of the simulation knows. Made of a bare number by engines, which
/// divide bytes by bytes per tick, and by their tests.
struct Ticks {
  double value = 0;

  friend constexpr Ticks operator+(Ticks a, Ticks b) { return {a.value + b.value}; }
  friend constexpr Ticks operator-(Ticks a, Ticks b) { return {a.value - b.value}; }
  friend constexpr Ticks operator*(Ticks a, double factor) { return {a.value * factor}; }
  // One by one: compilers make one comparison of each, and two of a defaulted <=>.
  friend constexpr bool operator==(Ticks a, Ticks b) { return a.value == b.value; }
  friend constexpr bool operator<(Ticks a, Ticks b) { return a.value < b.value; }
  friend constexpr bool operator>(Ticks a, Ticks b) { return a.value > b.value; }
  friend constexpr bool operator<=(Ticks a, Ticks b) { return a.value <= b.value; }
};

/// How long a tick of a simulation is. Amounts are rounded to 40 bits (4.5e-13 of themselves): some
/// programs are chaotic, and a difference of one rounding, 1e-16, grows fourfold from op to op
/// until transfers meet other ones (docs/validation.md). When a tick goes with the speed of the
/// machine, machines that differ by their speed alone have the same amounts, to the last bit, and
/// so the same results.
class TimeUnit {
 public:
  /// `gbps`: a bandwidth of the machine; a tick is the time a byte takes there. 0: there is none,
  /// and a tick is a second.
  explicit TimeUnit(double gbps) : tick_s_(gbps > 0 ? 1 / (gbps * 1e9) : 1) {}

  Ticks from_s(double seconds) const { return {rounded(seconds / tick_s_)}; }
  /// From one date to another, rounded as amounts are; none where they differ by roundings only.
  static Ticks between(Ticks begin, Ticks end) {
    constexpr double kSame = 0x1p-40;
    const Ticks span = end - begin;
    return span <= end * kSame ? Ticks{} : Ticks{rounded(span.value)};
  }
  /// For limits, which may be infinite.
  Ticks unrounded_from_s(double seconds) const { return {seconds / tick_s_}; }
  double to_s(Ticks ticks) const { return ticks.value * tick_s_; }
  double bytes_per_tick(double bytes_per_s) const { return rounded(bytes_per_s * tick_s_); }

 private:
  /// To the nearest number of 40 bits, of two to the even one: adds half of what is cut off, or a
  /// little less, to the bits of a number that is not negative.
  static double rounded(double value) {
    constexpr int kCut = 53 - 40;
    constexpr std::uint64_t kHalf = std::uint64_t{1} << (kCut - 1);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t is_odd = bits >> kCut & 1;
    return std::bit_cast<double>((bits + (kHalf - 1) + is_odd) >> kCut << kCut);
  }

  double tick_s_;
};

}  // namespace espalier
