// SPDX-License-Identifier: Apache-2.0
// The printing half of the text form (text.cpp parses it). Lines are appended to one string, since
// programs have millions of them.
#include "ir/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "ir/program.h"
#include "ir/text_lexer.h"

namespace espalier {
namespace {

template <class Number>
void append_number(std::string& out, Number number) {
  char digits[32];  // enough for the shortest form of any double
  const std::to_chars_result result = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, result.ptr);
}

void append_place(std::string& out, const Program& program, PlaceId place) {
  const PlaceNumber named = place_number(program, place);
  out += kPlaceNames[static_cast<std::size_t>(named.kind)].letter;
  append_number(out, named.number);
}

void append_slice(std::string& out, const Program& program, const Slice& slice) {
  append_place(out, program, slice.place);
  out += '.';
  out += to_string(slice.buffer);
  out += '[';
  append_number(out, slice.begin);
  if (slice.length != 1) {
    out += ':';
    append_number(out, slice.begin + slice.length);
  }
  out += ']';
}

bool is_plain(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, is_plain_name_byte);
}

/// Plain words stand as they are, everything else in quotes.
void append_name(std::string& out, std::string_view name) {
  if (is_plain(name)) {
    out += name;
    return;
  }
  out += '"';
  for (const char c : name) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_options(std::string& out, const Program& program, const Op& op) {
  if (op.in_switch) out += " in switch";
  if (op.kind != OpKind::combine || op.at != usual_place(program, op)) {
    out += " at ";
    append_place(out, program, op.at);
  }
  if (op.lane != 0) {
    out += " lane ";
    append_number(out, op.lane);
  }
  if (op.via >= 0) {
    out += " via ";
    append_name(out, program.vias[op.via]);
  }
  if (op.dep_count > 0) out += " after";
  for (const OpId dependency : program.dependencies_of(op)) {
    out += ' ';
    append_number(out, dependency);
  }
}

void append_op(std::string& out, const Program& program, const Op& op) {
  if (op.kind != OpKind::combine) {
    out += op.kind == OpKind::compute ? "compute " : "wait ";
    append_number(out, program.duration_s(op));
  } else {
    append_slice(out, program, slice(op.dst, op.length));
    for (const Operand& copy : program.copies_of(op)) {
      out += ", ";
      append_slice(out, program, slice(copy, op.length));
    }
    std::string_view separator = " <- ";
    for (const Operand& src : program.sources_of(op)) {
      out += separator;
      append_slice(out, program, slice(src, op.length));
      separator = " + ";
    }
  }
  append_options(out, program, op);
}

}  // namespace

std::string place_name(const Program& program, PlaceId place) {
  std::string name;
  append_place(name, program, place);
  return name;
}

std::string to_string(const Program& program, const Slice& slice) {
  std::string out;
  append_slice(out, program, slice);
  return out;
}

std::string to_string(const Program& program, OpId op) {
  std::string out;
  append_op(out, program, program.ops[op]);
  return out;
}

std::string print_program(const Program& program) {
  const Contract& contract = program.contract;
  std::string out = "program ";
  append_name(out, program.name);
  out += "\ncollective ";
  out += to_string(contract.collective);
  if (info(contract.collective).rooted) {
    out += " root ";
    append_number(out, contract.root);
  }
  fmt::format_to(std::back_inserter(out), "\nranks {}\nunits {}\n", contract.ranks, contract.units);
  if (contract.in_place) out += "in_place\n";
  if (program.hosts > 0) fmt::format_to(std::back_inserter(out), "hosts {}\n", program.hosts);
  if (program.relays > 0) fmt::format_to(std::back_inserter(out), "relays {}\n", program.relays);
  for (std::size_t id = 0; id < program.ops.size(); ++id) {
    append_number(out, id);
    out += ": ";
    append_op(out, program, program.ops[id]);
    out += '\n';
  }
  return out;
}

}  // namespace espalier
