// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <variant>

#include "algorithms/program_file.h"
#include "core/words.h"
#include "ir/program.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/sketch.h"
#include "python/values.h"

namespace espalier {

using SharedSketch = std::shared_ptr<Sketch>;

/// What an author has in hand: a place of a sketch.
struct SketchPlace {
  SharedSketch sketch;
  PlaceNumber number;
};

/// A rank by its number, or a place.
struct PlaceArgument {
  std::variant<std::int64_t, SketchPlace> value = std::int64_t{0};

  PlaceNumber in(const SharedSketch& sketch) const {
    const auto* rank = std::get_if<std::int64_t>(&value);
    return rank != nullptr ? sketch->place(PlaceKind::rank, *rank)
                           : std::get<SketchPlace>(value).number;
  }
};
/// Several, in whatever Python goes through.
struct PlacesArgument {
  std::vector<PlaceArgument> all;
};

}  // namespace espalier

namespace pybind11::detail {

template <>
struct type_caster<espalier::PlaceArgument> {
  PYBIND11_TYPE_CASTER(espalier::PlaceArgument, const_name("SupportsIndex | Place"));
  bool load(handle source, bool) {
    if (isinstance<espalier::SketchPlace>(source)) {
      value.value = source.cast<espalier::SketchPlace>();
      return true;
    }
    make_caster<std::int64_t> number;
    if (isinstance<bool_>(source) || !number.load(source, /*convert=*/false)) {
      PyErr_Clear();
      espalier::refuse_here(
          espalier::printable(repr(source).cast<std::string>()) + " is not a place",
          "the number of a rank, or p.rank(r), p.host(k), p.relay(k)");
    }
    value.value = cast_op<std::int64_t>(number);
    return true;
  }
};

template <>
struct type_caster<espalier::PlacesArgument> {
  PYBIND11_TYPE_CASTER(espalier::PlacesArgument, const_name("Iterable[SupportsIndex | Place]"));
  bool load(handle source, bool) {
    if (!hasattr(source, "__iter__") || isinstance<str>(source)) {
      espalier::refuse_here(
          espalier::printable(repr(source).cast<std::string>()) + " is not a list of places",
          "numbers of ranks and places, such as [1, 2, p.host()]");
    }
    for (const handle one : reinterpret_borrow<iterable>(source)) {
      value.all.push_back(one.cast<espalier::PlaceArgument>());
    }
    return true;
  }
};

}  // namespace pybind11::detail

namespace espalier {

namespace {

std::vector<PlaceNumber> places_in(const SharedSketch& sketch, const PlacesArgument& places) {
  std::vector<PlaceNumber> numbers;
  for (const PlaceArgument& place : places.all) numbers.push_back(place.in(sketch));
  return numbers;
}

/// What `work` does; what goes wrong names the line that called.
template <class Work>
auto at_calling_line(Work&& work) -> decltype(work(Location{})) {
  const Location where = calling_line();
  try {
    return work(where);
  } catch (const Error& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& diagnostic : diagnostics) diagnostic.where = where;
    throw Error(error.kind(), std::move(diagnostics));
  }
}

/// Throws Error{usage} for a contract that can't be kept.
SharedSketch make_sketch(const std::string& name, const std::string& collective, std::int64_t ranks,
                         std::int64_t root, std::int64_t blocks, bool in_place) {
  const CollectiveInfo& about = info(collective_named(collective));
  const auto require = [](bool holds, const std::string& what, const std::string& right) {
    if (!holds) refuse_here(what, right);
  };
  const bool is_name = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c >= 0x80 ||
           std::string_view("_-.=+").find(c) != std::string_view::npos;
  });
  require(is_name, fmt::format("{} is not a name of a program", quote(name)),
          "letters, digits and _ - . = +");
  require(ranks >= 1 && ranks <= kMaxPlaces, fmt::format("{} ranks", ranks),
          fmt::format("1 to {}", kMaxPlaces));
  require(root >= 0 && root < ranks, fmt::format("root {} is not one of the ranks", root),
          fmt::format("0 to {}", ranks - 1));
  require(blocks >= 1 && blocks <= kMaxUnits, fmt::format("{} blocks", blocks),
          fmt::format("1 to {}", kMaxUnits));
  require(!about.blocked || blocks % ranks == 0,
          fmt::format("{} of {} blocks on {} ranks", about.name, blocks, ranks),
          "as many blocks for every rank: a multiple of the ranks");
  return std::make_shared<Sketch>(
      name, Contract{about.id, static_cast<int>(ranks), about.rooted ? static_cast<int>(root) : 0,
                     blocks, in_place});
}

SketchPlace place_of(const SharedSketch& sketch, PlaceKind kind, std::int64_t number) {
  return at_calling_line([&](const Location&) {
    return SketchPlace{sketch, sketch->place(kind, number)};
  });
}

std::shared_ptr<KnownProgram> finish(Sketch& sketch, const std::string& file, int line) {
  const Location where{file, line, 0};
  sketch.close();  // while no other thread runs that might add to it
  return compute(
      [&] {
        SketchedProgram made = sketch.finish(where);
        const std::string& name = sketch.name();
        auto known = std::make_shared<KnownProgram>();
        known->file = program_file_of(std::move(made.program), name);
        if (made.by_block) known->by_block = program_file_of(std::move(*made.by_block), name);
        known->places = std::move(made.places);
        known->definition = where;
        return known;
      },
      [] {});
}

void bind_place(py::module_& module) {
  using At = const SketchPlace&;
  py::class_<SketchSlice>(module, "Slice", "Blocks of a buffer of a place.");
  py::class_<SketchPlace>(module, "Place", "A rank, a host memory or a relay of a sketch.")
      .def_property_readonly("number", [](At at) { return at.number.number; })
      .def(
          "copy",
          [](At at, const BlocksArgument& block, const PlaceArgument& to, const std::string& via) {
            at_calling_line([&](const Location& where) {
              at.sketch->copy(at.number, to.in(at.sketch), block.range, via, where);
            });
          },
          py::arg("block"), py::arg("to"), py::arg("via") = "",
          "Sends what is here of the block to another place. `via`: a node of the machine to go "
          "through.")
      .def(
          "reduce",
          [](At at, const BlocksArgument& block, const PlaceArgument& to, const std::string& via) {
            at_calling_line([&](const Location& where) {
              const PlaceNumber from[] = {at.number};
              at.sketch->reduce(from, to.in(at.sketch), block.range, via, where);
            });
          },
          py::arg("block"), py::arg("to"), py::arg("via") = "",
          "Adds what is here of the block to what another place has of it.")
      .def(
          "combine",
          [](At at, const BlocksArgument& block, const PlacesArgument& sources,
             const std::string& via) {
            at_calling_line([&](const Location& where) {
              at.sketch->reduce(places_in(at.sketch, sources), at.number, block.range, via, where);
            });
          },
          py::arg("block"), py::arg("sources"), py::arg("via") = "",
          "Adds what several other places have of the block to what is here of it, by one op.")
      .def(
          "input",
          [](At at, const BlocksArgument& block) {
            return at_calling_line(
                [&](const Location&) { return at.sketch->input(at.number, block.range); });
          },
          py::arg("block"), "The block of this rank's input.")
      .def(
          "output",
          [](At at, const BlocksArgument& block) {
            return at_calling_line(
                [&](const Location&) { return at.sketch->output(at.number, block.range); });
          },
          py::arg("block"), "The block of this rank's result.")
      .def(
          "scratch",
          [](At at, const BlocksArgument& block, std::int64_t slot) {
            return at_calling_line(
                [&](const Location&) { return at.sketch->scratch(at.number, block.range, slot); });
          },
          py::arg("block"), py::arg("slot") = 0,
          "Room for the block beside what the sketch uses by itself; as many slots as are named.");
}

}  // namespace

void bind_sketch(py::module_& module) {
  bind_place(module);
  module.def(
      "_require_collective",
      [](const std::string& name) {
        at_calling_line([&](const Location&) { collective_named(name); });
      },
      py::arg("name"));
  module.def("_refuse_here", &refuse_here, py::arg("what"), py::arg("right"));
  using At = const SharedSketch&;
  py::class_<Sketch, SharedSketch>(
      module, "Sketch",
      "A collective while its author writes it, in an order that would be right if ops ran one by "
      "one. Every rank begins with the blocks of its input; what it is sent of a block takes the "
      "place of what it had.")
      .def(py::init(&make_sketch), py::arg("name"), py::arg("collective"), py::arg("ranks"),
           py::arg("root"), py::arg("blocks"), py::arg("in_place"))
      .def_property_readonly("ranks", [](const Sketch& one) { return one.contract().ranks; })
      .def_property_readonly("root", [](const Sketch& one) { return one.contract().root; })
      .def_property_readonly(
          "blocks", [](const Sketch& one) { return one.contract().units; },
          "Equal parts that the message is divided into.")
      .def(
          "rank", [](At at, std::int64_t rank) { return place_of(at, PlaceKind::rank, rank); },
          py::arg("number"))
      .def(
          "host", [](At at, std::int64_t host) { return place_of(at, PlaceKind::host, host); },
          py::arg("number") = 0, "A host memory, such as that of a parameter server.")
      .def(
          "relay", [](At at, std::int64_t relay) { return place_of(at, PlaceKind::relay, relay); },
          py::arg("number") = 0, "A GPU that is no rank.")
      .def(
          "copy",
          [](At at, const SketchSlice& source, const SketchSlice& to, const std::string& via) {
            at_calling_line([&](const Location& where) { at->combine(to, {source}, via, where); });
          },
          py::arg("source"), py::arg("to"), py::arg("via") = "", "Of slices.")
      .def(
          "combine",
          [](At at, const std::vector<SketchSlice>& sources, const SketchSlice& to,
             const std::string& via) {
            at_calling_line([&](const Location& where) { at->combine(to, sources, via, where); });
          },
          py::arg("sources"), py::arg("to"), py::arg("via") = "",
          "to <- source + source + ..., by one op where `to` is.")
      .def(
          "in_switch",
          [](At at, const std::vector<SketchSlice>& sources, const std::vector<SketchSlice>& to) {
            at_calling_line([&](const Location& where) { at->in_switch(to, sources, where); });
          },
          py::arg("sources"), py::arg("to"),
          "A switch adds up the sources and writes the sum to every destination, as NVLS does.")
      .def("finish", &finish, py::arg("file"), py::arg("line"),
           "The program. Copies of what ranks keep of their own input are said to be written "
           "there.");
}

}  // namespace espalier
