// SPDX-License-Identifier: Apache-2.0
#include "ir/verify_structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/interruption.h"
#include "core/words.h"
#include "ir/op_order.h"
#include "ir/print.h"

namespace espalier {
namespace {

/// How far a tmp buffer may reach: units are counted in 32 bits.
constexpr std::int64_t kMaxTmpUnits = std::numeric_limits<std::uint32_t>::max();

std::string plural(std::int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// "in and tmp": the buffers a place has.
std::string buffers_of(const Program& program, PlaceId place) {
  std::vector<std::string> names;
  if (place < program.ranks()) {
    for (const Buffer buffer : {Buffer::in, Buffer::out}) {
      if (buffer_units(program.contract, place, buffer) > 0) names.emplace_back(to_string(buffer));
    }
  }
  names.emplace_back("tmp");
  return join(names, " and ");
}

/// Checks one op after the other.
class OpChecker {
 public:
  OpChecker(const Program& program, std::int64_t block, Findings& findings)
      : program_(program), findings_(findings), block_(block) {}

  void check(OpId id) {
    id_ = id;
    const Op& op = program_.ops[id];
    if (!check_pools(op)) return;
    check_dependencies(op);
    if (!is_place(op.at)) {
      no_place(op.at);
      return;
    }
    if (op.kind != OpKind::combine) {
      check_duration(op);
      return;
    }
    bool sound = true;
    for_each_destination(program_, op, [&](const Operand& destination) {
      sound = check_operand(op, destination) && sound;
    });
    for (const Operand& source : program_.sources_of(op)) {
      sound = check_operand(op, source) && sound;
    }
    if (sound) check_relations(op);
  }

 private:
  /// The op's stretches of the program's pools; a program made by hand may have them wrong.
  bool check_pools(const Op& op) {
    const auto inside = [](std::uint64_t begin, std::uint64_t count, std::size_t size) {
      return begin + count <= size;
    };
    const bool sound = inside(op.src_begin, std::uint64_t{op.src_count} + op.copy_count,
                              program_.sources.size()) &&
                       inside(op.dep_begin, op.dep_count, program_.dependencies.size()) &&
                       op.via < static_cast<std::int64_t>(program_.vias.size()) &&
                       op.kind <= OpKind::wait &&
                       (op.kind == OpKind::combine || op.dst.begin < program_.durations_s.size());
    if (!sound) {
      findings_.add(Rule::structure, id_, [] {
        return "names sources, dependencies, a duration or a via node that the "
               "program's tables do not have";
      });
      return false;
    }
    if (op.kind == OpKind::combine && op.src_count == 0) {
      findings_.add(Rule::structure, id_, [] { return "has no source"; });
      return false;
    }
    return true;
  }

  void check_dependencies(const Op& op) {
    for (const OpId earlier : program_.dependencies_of(op)) {
      if (earlier >= program_.ops.size()) {
        findings_.add(Rule::order, id_, [&] {
          return fmt::format("waits for op {}, but the program has {}", earlier,
                             plural(static_cast<std::int64_t>(program_.ops.size()), "op"));
        });
      }
    }
  }

  bool is_place(PlaceId place) const { return place >= 0 && place < program_.places(); }

  void no_place(PlaceId place) {
    findings_.add(Rule::structure, id_, [&] {
      const std::string hosts =
          program_.hosts == 1 ? "1 host memory" : fmt::format("{} host memories", program_.hosts);
      const std::string ranks = plural(program_.ranks(), "rank");
      return fmt::format("there is no {}: the program has {}",
                         place < 0 ? fmt::format("place {}", place) : place_name(program_, place),
                         program_.relays == 0 ? fmt::format("{} and {}", ranks, hosts)
                                              : fmt::format("{}, {} and {}", ranks, hosts,
                                                            plural(program_.relays, "relay")));
    });
  }

  void check_duration(const Op& op) {
    const double duration_s = program_.duration_s(op);
    if (std::isfinite(duration_s) && duration_s >= 0) return;
    findings_.add(Rule::structure, id_, [&] {
      return fmt::format("{} for {} seconds, which is not a duration",
                         op.kind == OpKind::compute ? "computes" : "waits", duration_s);
    });
  }

  /// R1 and R2 for one operand.
  bool check_operand(const Op& op, const Operand& operand) {
    if (!is_place(operand.place)) {
      no_place(operand.place);
      return false;
    }
    const bool known = operand.buffer <= Buffer::tmp;
    const bool is_tmp = operand.buffer == Buffer::tmp;
    const std::int64_t units = is_tmp ? kMaxTmpUnits
                               : known && operand.place < program_.ranks()
                                   ? buffer_units(program_.contract, operand.place, operand.buffer)
                                   : 0;
    const auto text = [&] { return to_string(program_, slice(operand, op.length)); };
    if (units == 0) {
      findings_.add(Rule::structure, id_, [&] {
        const std::string name = place_name(program_, operand.place);
        return fmt::format("{} has no {} buffer, only {}", name,
                           known ? to_string(operand.buffer) : "such",
                           buffers_of(program_, operand.place));
      });
      return false;
    }
    if (op.length == 0) {
      findings_.add(Rule::bounds, id_, [&] { return fmt::format("{} is empty", text()); });
      return false;
    }
    if (std::int64_t{operand.begin} + op.length > units) {
      findings_.add(Rule::bounds, id_, [&] {
        return is_tmp ? fmt::format("{} goes beyond {} units, the maximum size of a tmp buffer",
                                    text(), units)
                      : fmt::format("{} goes beyond the buffer, which has {}", text(),
                                    plural(units, "unit"));
      });
      return false;
    }
    return true;
  }

  /// R4 and R8. \pre the operands are sound.
  void check_relations(const Op& op) {
    bool at_an_operand = false;
    for (const Operand& source : program_.sources_of(op)) {
      at_an_operand = at_an_operand || op.at == source.place;
    }
    for_each_destination(program_, op, [&](const Operand& destination) {
      at_an_operand = at_an_operand || op.at == destination.place;
      for (const Operand& source : program_.sources_of(op)) check_pair(op, destination, source);
      check_input_kept(op, destination);
    });
    check_switch(op);
    if (!at_an_operand) {
      findings_.add(Rule::operands, id_, [&] {
        return fmt::format("runs at {}, which holds none of its operands",
                           place_name(program_, op.at));
      });
    }
  }

  void check_input_kept(const Op& op, const Operand& destination) {
    if (destination.buffer != Buffer::in) return;
    findings_.add(
        Rule::inputs_kept, id_,
        [&] {
          return fmt::format("writes {}, but inputs must not be changed",
                             to_string(program_, slice(destination, op.length)));
        },
        "write to out or tmp, or declare the program in_place");
  }

  /// R4: what switches can do. They reach the memories of GPUs, each once.
  void check_switch(const Op& op) {
    if (!op.in_switch) {
      if (op.copy_count == 0) return;
      findings_.add(
          Rule::operands, id_,
          [&] {
            return fmt::format("writes {} slices, which only a switch does", op.copy_count + 1);
          },
          "write 'in switch' after the sources, or one op for each slice");
      return;
    }
    const auto check = [&](const char* does, std::vector<PlaceId> places) {
      std::sort(places.begin(), places.end());
      const auto twice = std::adjacent_find(places.begin(), places.end());
      if (twice != places.end()) {
        findings_.add(Rule::operands, id_, [&] {
          return fmt::format("{} {} twice in a switch, which does so once for every GPU", does,
                             place_name(program_, *twice));
        });
      }
      const auto host = std::ranges::find(places, PlaceKind::host, [&](PlaceId place) {
        return place_number(program_, place).kind;
      });
      if (host != places.end()) {
        findings_.add(Rule::operands, id_, [&] {
          return fmt::format("{} {} in a switch, which reaches the memories of GPUs only", does,
                             place_name(program_, *host));
        });
      }
    };
    std::vector<PlaceId> read, written;
    for (const Operand& source : program_.sources_of(op)) read.push_back(source.place);
    for_each_destination(program_, op, [&](const Operand& one) { written.push_back(one.place); });
    check("reads", read);
    check("writes", written);
  }

  /// R4 for one destination and one source.
  void check_pair(const Op& op, const Operand& destination, const Operand& source) {
    const auto both = [&](const char* middle) {
      return fmt::format("{} {} {}", to_string(program_, slice(destination, op.length)), middle,
                         to_string(program_, slice(source, op.length)));
    };
    if (destination.begin % block_ != source.begin % block_) {
      findings_.add(Rule::operands, id_, [&] {
        return fmt::format(
            "{} do not start at the same position within a block of {}, so their numbers of "
            "elements "
            "may differ",
            both("and"), plural(block_, "unit"));
      });
    }
    const std::int64_t distance = std::int64_t{destination.begin} - source.begin;
    if (destination.place == source.place && destination.buffer == source.buffer && distance != 0 &&
        std::abs(distance) < op.length) {
      findings_.add(Rule::operands, id_, [&] { return both("partly overlaps its own source"); });
    }
  }

  const Program& program_;
  Findings& findings_;
  std::int64_t block_;
  OpId id_ = 0;
};

}  // namespace

bool check_contract(const Program& program, Findings& findings) {
  const Contract& contract = program.contract;
  const auto bad = [&](const std::string& sentence, std::string suggestion = {}) {
    findings.add_general(
        Rule::structure, [&] { return sentence; }, std::move(suggestion));
  };
  if (!is_known(contract.collective)) {
    bad(fmt::format("collective number {} does not exist: there are {}",
                    static_cast<int>(contract.collective), all_collectives().size()));
    return false;
  }
  const CollectiveInfo& collective = info(contract.collective);
  if (contract.ranks < 1) {
    bad(fmt::format("a program needs at least one rank, not {}", contract.ranks));
  }
  if (program.hosts < 0) bad(fmt::format("{} host memories are not possible", program.hosts));
  if (program.relays < 0) bad(fmt::format("{} relays are not possible", program.relays));
  if (std::int64_t{contract.ranks} + program.hosts + program.relays > kMaxPlaces) {
    const std::string relays =
        program.relays == 0 ? "" : fmt::format(" and {} relays", program.relays);
    bad(fmt::format("{} ranks and {} host memories{} are more than {} places", contract.ranks,
                    program.hosts, relays, kMaxPlaces));
  }
  if (contract.units < 1 || contract.units > kMaxUnits) {
    bad(fmt::format("a message of {} units is not possible: there must be 1 to {}", contract.units,
                    kMaxUnits));
  }
  if (collective.rooted && (contract.root < 0 || contract.root >= contract.ranks)) {
    bad(fmt::format("the root is rank {}, but there are {}", contract.root,
                    plural(contract.ranks, "rank")),
        "ranks are numbered from 0");
  }
  if (findings.any(Rule::structure)) return false;
  if (collective.blocked && contract.units % contract.ranks != 0) {
    const std::int64_t up = (contract.units / contract.ranks + 1) * contract.ranks;
    bad(fmt::format("{} cannot be divided into one block per rank for {} ranks, which {} needs",
                    plural(contract.units, "unit"), contract.ranks, collective.name),
        fmt::format("use a multiple of {}, such as {}", contract.ranks, up));
    return false;
  }
  if (program.ops.size() >= LaneChains::kNone) {
    bad(fmt::format("{} ops are more than a program may have", program.ops.size()));
    return false;
  }
  return true;
}

void check_ops(const Program& program, std::int64_t block, Findings& findings) {
  OpChecker checker(program, block, findings);
  for (OpId op = 0; op < program.ops.size(); ++op) {
    check_interruption_at(op);
    checker.check(op);
  }
}

}  // namespace espalier
