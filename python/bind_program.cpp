// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <numeric>

#include "algorithms/program_file.h"
#include "backends.h"
#include "core/file.h"
#include "core/words.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/states.h"
#include "python/values.h"
#include "scenarios/buildable.h"
#include "scenarios/exported.h"

namespace espalier {

namespace {

using SharedProgram = std::shared_ptr<KnownProgram>;

/// What the verifier says, with places of the author's.
struct Verdict {
  Verification verification;

  void raise_for_errors() const {
    if (!verification.ok()) throw Error(ErrorKind::input, verification.problems);
  }
};

std::vector<int> numbers(int first, int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// A program of n ranks runs on the first n GPUs, unless others are named.
std::vector<int> gpus_for(const KnownProgram& program, const Topology& topology,
                          const std::vector<int>& gpus) {
  const int ranks = program.program().ranks();
  const bool is_open = gpus.empty() && topology.gpus().size() > static_cast<std::size_t>(ranks);
  return is_open ? numbers(0, ranks) : gpus;
}

/// The question that the program answers.
Query question_for(const KnownProgram& program, Session& session, std::int64_t size_bytes) {
  const Contract& contract = program.program().contract;
  Query query = session.question();
  query.collective = contract.collective;
  query.root = contract.root;
  query.in_place = contract.in_place;
  query.size_bytes = size_bytes;
  return query;
}

/// Why the machine cannot carry out the program for the question, with the lines that ask for it.
std::vector<Diagnostic> problems_on(const KnownProgram& program,
                                    const std::shared_ptr<const Topology>& topology,
                                    const Query& query) {
  const Machine machine = routed_machine(topology, query.gpus, query.relays);
  if (const int ranks = program.program().ranks(); ranks != machine.ranks()) {
    const bool is_large_enough = topology->gpus().size() >= static_cast<std::size_t>(ranks);
    return {{"R10",
             mismatch(*program.file, request_for(query, machine)).value(),
             is_large_enough ? "a GPU for each rank" : "a machine with more GPUs",
             {}}};
  }
  return program.located(machine_problems(program.program(), machine));
}

Verdict verify_on(const SharedProgram& program, const std::optional<MachineArgument>& named,
                  const GpusArgument& gpus, const GpusArgument& relays, bool exact) {
  const KnownMachine* const machine = named ? named->machine.get() : nullptr;
  return compute(
      [&] {
        VerifyOptions options;
        if (exact) options.comparison = ResultComparison::exact;
        Verdict verdict{verify(program->program(), options)};
        std::vector<Diagnostic>& problems = verdict.verification.problems;
        problems = program->located(std::move(problems));
        if (machine == nullptr || !problems.empty()) return verdict;
        Query query = question_for(*program, *machine->session, 0);
        query.gpus = gpus_for(*program, *machine->topology, gpus.numbers);
        query.relays = relays.numbers;
        problems = problems_on(*program, machine->topology, query);
        return verdict;
      },
      [] {});
}

/// Throws what keeps the machine from carrying out the program, if anything does.
void require_possible(const KnownProgram& program, const std::shared_ptr<const Topology>& topology,
                      const Query& query) {
  std::vector<Diagnostic> problems = problems_on(program, topology, query);
  if (!problems.empty()) throw Error(ErrorKind::unsupported, std::move(problems));
}

/// Throws where nothing ran.
void require_ran(const Outcome& outcome) {
  if (outcome.skipped) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("{} is not possible here: {}", outcome.query.algorithm, *outcome.skipped),
        outcome.instead);
  }
  if (!outcome.verified) throw Error(ErrorKind::input, outcome.problems);
}

Result simulate(const SharedProgram& program, const MachineArgument& machine, SizeArgument size,
                const GpusArgument& gpus, const GpusArgument& relays, const std::string& profile,
                ChunkArgument chunk, const std::string& links, bool nccl) {
  Session& session = *machine->session;
  Query query = question_for(*program, session, size.bytes);
  query.gpus = gpus_for(*program, *machine->topology, gpus.numbers);
  query.relays = relays.numbers;
  query.profile = profile;
  query.chunk_bytes = chunk.bytes;
  query.links = value_named("link scope", links, all_link_scopes());
  query.against_nccl = nccl;
  return compute(
      [&] {
        Result result{session.ask(query, program), machine->session, program};
        if (result.outcome.skipped) require_possible(*program, machine->topology, query);
        require_ran(result.outcome);
        return result;
      },
      [&] { session.forget(); });
}

/// Ranks alone need no machine; relays are GPUs of one.
std::string place_for(const KnownProgram& known) {
  const Program& program = known.program();
  if (program.relays == 0) return {};
  return fmt::format("full:n={},host_gbps=25", program.ranks() + program.relays);
}

Result execute(const SharedProgram& program, SizeArgument size, const std::string& type,
               const std::string& op, int iterations, int warmup, const std::string& backend,
               const std::vector<int>& devices, double timeout) {
  const BackendEntry& entry = find_backend(backend);
  Query query;
  query.ranks = program->program().ranks();
  query.run.type = data_type_named(type);
  query.run.op = value_named("operator", op, all_reduce_ops(), reduce_op_synonyms());
  query.run.iterations = iterations;
  query.run.warmup = warmup;
  query.run.timeout_s = timeout;
  return compute(
      [&] {
        if (!entry.executes) throw Error(ErrorKind::usage, backend + " executes nothing");
        auto session = std::make_shared<Session>(MachineOrigin{place_for(*program)},
                                                 entry.make({devices, false}));
        Query asked = question_for(*program, *session, size.bytes);
        asked.judge = false;
        asked.ranks = query.ranks;
        asked.run = query.run;
        if (program->program().relays > 0) asked.gpus = numbers(0, query.ranks);
        asked.relays = numbers(query.ranks, program->program().relays);
        asked.run.size_bytes = size.bytes;
        Result result{session->ask(asked, program), session, program};
        require_ran(result.outcome);
        return result;
      },
      [] {});
}

/// With its author's lines, for what writers say of ops.
Program with_own_lines(const KnownProgram& known, const ProgramFile& form) {
  Program program = form.program;
  if (known.places.empty()) return program;
  for (int& line : program.lines) line = known.places[static_cast<std::size_t>(line) - 1].line;
  return program;
}

/// \pre the program is right
Written written_as(const SharedProgram& program, const ExportTarget& target,
                   const KnownMachine* machine, const GpusArgument& gpus) {
  if (machine == nullptr) {
    const Program own = with_own_lines(*program, *program->file);
    return target.format == nullptr ? Written{print_program(own), {}, false}
                                    : target.format->write_program(own, {});
  }
  Session& session = *machine->session;
  Query query = question_for(*program, session, 0);
  query.gpus = gpus_for(*program, *machine->topology, gpus.numbers);
  const Program own = with_own_lines(*program, session.form_of(program, query));
  const Machine& placed = session.study().machine(query);
  return write_for_machine(own, target, placed, writing_options(placed));
}

/// What a plan within the GPU fabric makes of a plan's program; nothing where there is none.
std::optional<Written> written_within_fabric(const SharedProgram& program,
                                             const ExportTarget& target,
                                             const KnownMachine* machine,
                                             const GpusArgument& gpus) {
  if (target.format == nullptr || !program->within_fabric) return std::nullopt;
  try {
    const auto& [session, query] = *program->within_fabric;
    const SharedProgram other = program_of(plan_query(session->study(), query));
    Written written = written_as(other, target, machine, gpus);
    written.notes.insert(
        written.notes.begin(),
        fmt::format("this is the plan within the GPU fabric (links=\"fabric\"): "
                    "the other one names ways over the machine, and {} has its own",
                    target.format->name));
    return written;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::string> export_program(const SharedProgram& program, const PathArgument& path,
                                        const std::optional<MachineArgument>& named,
                                        const GpusArgument& gpus,
                                        const std::optional<std::string>& to, int instances) {
  const KnownMachine* const machine = named ? named->machine.get() : nullptr;
  return compute(
      [&] {
        const ExportTarget target{
            path.text, format_to_write(path.text, to.value_or(""), Exported::program), instances};
        const Verification verification = verify(*program->file);
        if (!verification.ok()) {
          throw Error(ErrorKind::input, program->located(verification.problems));
        }
        Written written;
        try {
          written = written_as(program, target, machine, gpus);
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::unsupported) throw;
          auto other = written_within_fabric(program, target, machine, gpus);
          if (!other) throw;
          written = std::move(*other);
        }
        write_file(path.text, written.text);
        return written.notes;
      },
      [&] {
        if (machine != nullptr) machine->session->forget();
      });
}

/// A program as another process can read it; see program_from.
py::tuple program_state(const KnownProgram& one) {
  const auto written = [](const ProgramFile& file) {
    return py::make_tuple(py::bytes(print_program(file.program)), file.program.lines);
  };
  py::list places;
  for (const Location& place : one.places) places.append(state_of(place));
  const py::object by_block = one.by_block ? py::object(written(*one.by_block)) : py::none();
  const py::object within_fabric =
      one.within_fabric ? py::object(py::make_tuple(one.within_fabric->session,
                                                    state_of(one.within_fabric->query)))
                        : py::none();
  return py::make_tuple(py::bytes(one.file->path), py::bytes(one.text), written(*one.file),
                        by_block, places, state_of(one.definition), within_fabric);
}

SharedProgram program_from(const py::tuple& state) {
  auto known = std::make_shared<KnownProgram>();
  const auto path = state[0].cast<std::string>();
  known->text = state[1].cast<std::string>();
  const auto read = [&](const py::handle& part) {
    const auto both = part.cast<py::tuple>();
    Program program = parse_program(both[0].cast<std::string>(), path);
    program.lines = both[1].cast<std::vector<int>>();
    program.header_lines = {};
    return program_file_of(std::move(program), path);
  };
  known->file = known->text.empty() ? read(state[2]) : program_file_of(known->text, path);
  if (!state[3].is_none()) known->by_block = read(state[3]);
  for (const py::handle place : state[4]) known->places.push_back(location_from(place));
  known->definition = location_from(state[5]);
  if (!state[6].is_none()) {
    const auto asked = state[6].cast<py::tuple>();
    known->within_fabric = {asked[0].cast<std::shared_ptr<Session>>(), query_from(asked[1])};
  }
  return known;
}

void bind_verdict(py::module_& module) {
  using Of = const Verdict&;
  py::class_<Verdict>(module, "Verification", "What the verifier says of a program.")
      .def_property_readonly("ok", [](Of one) { return one.verification.ok(); })
      .def_property_readonly(
          "problems", [](Of one) { return one.verification.problems; },
          "All that is wrong, each with the line of the op; empty: the program is right.")
      .def_property_readonly(
          "order_consistent", [](Of one) { return one.verification.order_consistent; },
          "Every rank combines in the same order, so that all agree to the last bit.")
      .def_property_readonly(
          "is_exact", [](Of one) { return one.verification.proof == Proof::exact; },
          "Results were compared exactly, and not by random sums (docs/ir.md, R7).")
      .def("raise_for_errors", &Verdict::raise_for_errors, "Raises Error with all problems.")
      .def(py::pickle(
          [](Of one) {
            const Verification& said = one.verification;
            return py::make_tuple(said.problems, said.order_consistent, said.combines_in_switch,
                                  static_cast<int>(said.proof));
          },
          [](const py::tuple& state) {
            return Verdict{{state[0].cast<std::vector<Diagnostic>>(), state[1].cast<bool>(),
                            state[2].cast<bool>(), static_cast<Proof>(state[3].cast<int>())}};
          }))
      .def("__bool__", [](Of one) { return one.verification.ok(); })
      .def("__repr__", [](Of one) {
        return one.verification.ok()
                   ? std::string("<Verification: ok>")
                   : fmt::format("<Verification: {}>",
                                 counted(one.verification.problems.size(), "problem"));
      });
}

}  // namespace

void bind_program(py::module_& module) {
  bind_verdict(module);
  using Of = const KnownProgram&;
  py::class_<KnownProgram, SharedProgram>(
      module, "Program", "A collective for one number of ranks, free of message size and machine.")
      .def_static(
          "load",
          [](const PathArgument& path) {
            return compute(
                [&] {
                  auto known = std::make_shared<KnownProgram>();
                  known->file = read_program_file(path.text);
                  known->text = read_file(path.text);
                  return known;
                },
                [] {});
          },
          py::arg("path"), "A program in a file: .esp, or as MSCCL and MSCCL++ have them.")
      .def_property_readonly("name", [](Of one) { return one.program().name; })
      .def_property_readonly(
          "collective",
          [](Of one) { return std::string(to_string(one.program().contract.collective)); })
      .def_property_readonly("ranks", [](Of one) { return one.program().ranks(); })
      .def_property_readonly("root", [](Of one) { return one.program().contract.root; })
      .def_property_readonly("in_place", [](Of one) { return one.program().contract.in_place; })
      .def_property_readonly("ops", [](Of one) { return one.program().ops.size(); })
      .def_property_readonly("transfers", [](Of one) { return count_transfers(one.program()); })
      .def(
          "verify", &verify_on, py::arg("machine") = py::none(), py::kw_only(),
          py::arg("gpus") = py::none(), py::arg("relays") = py::none(), py::arg("exact") = false,
          "Proves it right, for every timing that it allows, or says what is wrong; with a machine "
          "also whether that can carry it out. By default it runs on the first GPUs.")
      .def("simulate", &simulate, py::arg("machine"), py::arg("size"), py::kw_only(),
           py::arg("gpus") = py::none(), py::arg("relays") = py::none(),
           py::arg("profile") = "kernel", py::arg("chunk") = py::none(), py::arg("links") = "all",
           py::arg("nccl") = false,
           "How long it takes on a machine. `profile`: the runtime that moves the bytes; `nccl`: "
           "also how "
           "long NCCL takes.")
      .def("execute", &execute, py::arg("size"), py::kw_only(), py::arg("dtype") = "float",
           py::arg("op") = "sum", py::arg("iterations") = 1, py::arg("warmup") = 0,
           py::arg("backend") = "host", py::arg("devices") = std::vector<int>(),
           py::arg("timeout") = 60.0,
           "Runs it with real data on this computer, and compares every element.")
      .def("export", &export_program, py::arg("path"), py::kw_only(),
           py::arg("machine") = py::none(), py::arg("gpus") = py::none(),
           py::arg("to") = py::none(), py::arg("instances") = 0,
           "Writes it to a file, by whose ending, or by `to`, the format is known: .esp, .xml of "
           "MSCCL, .json of MSCCL++. For a machine it is repeated side by side to fill the GPUs' "
           "blocks. Returns what its reader should know.")
      .def(py::pickle(&program_state, &program_from))
      .def(
          "__str__", [](Of one) { return print_program(one.program()); }, "As text (docs/ir.md).")
      .def("__repr__", [](Of one) {
        return fmt::format("<Program {}: {}, {}, {}>", one.program().name,
                           to_string(one.program().contract.collective),
                           counted(static_cast<std::size_t>(one.program().ranks()), "rank"),
                           counted(one.program().ops.size(), "op"));
      });
}

}  // namespace espalier
