# SPDX-License-Identifier: Apache-2.0
"""Questions about machines."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any, Iterable, SupportsIndex, Union

from espalier import _espalier
from espalier._algorithm import Algorithm
from espalier._espalier import Comparison, Fit, Machine, Plan, Program, Result, Training, Tuning
from espalier._table import Table

# A machine, or what names one; numbers may be those of numpy.
AnyMachine = Union[Machine, str, "os.PathLike[str]"]
Gpus = Union[str, Iterable[SupportsIndex], None]
Size = Union[SupportsIndex, str]
Reported = Union[Result, Plan, Table, Training, Comparison]


_MACHINES = (Machine, str, os.PathLike)
_SIZES = (Integral, str)


def _listed(one_or_several: Any, kinds: type | tuple[type, ...]) -> list[Any]:
    """Whoever takes the list says what is wrong with something that is neither."""
    is_one = isinstance(one_or_several, kinds) or not isinstance(one_or_several, Iterable)
    return [one_or_several] if is_one else list(one_or_several)


def _require_text(**arguments: Any) -> None:
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} is {value!r}, and no text")


def _listed_algorithms(algorithms: Any) -> list[Any]:
    listed = _listed(algorithms, (str, Program))
    for one in listed:
        if isinstance(one, Algorithm):
            raise TypeError(f"{one!r} is for any number of ranks: build(ranks) makes a program of it")
        if not isinstance(one, (str, Program)):
            raise TypeError(f"{one!r} is not an algorithm: a name, or a Program")
    return listed


def sweep(machine: AnyMachine | Iterable[AnyMachine], collective: str = "allreduce", *,
          sizes: Size | Iterable[Size] = "1GiB",
          algorithms: str | Program | Iterable[str | Program] = "all", gpus: Gpus = None,
          relays: Gpus = None, root: SupportsIndex = 0, profile: str = "kernel",
          chunk: Size | None = None, links: str = "all", in_place: bool = False, nccl: bool = True,
          jobs: SupportsIndex = 1, budget: float | None = None) -> Table:
    """Simulates algorithms for messages of several sizes, on one machine or on several.

    `algorithms` are names as --algorithm takes them, or programs; "all" are those of the catalogue,
    of which those that do not apply are in `Table.skipped`. `nccl`: also how long NCCL takes.
    `jobs`: worker processes, 0 for one per processor. `budget`: seconds that searches may take.
    """
    _require_text(collective=collective, profile=profile, links=links)
    table = Table([])
    # What can be gone through once only is to do for all machines.
    asked_sizes = _listed(sizes, _SIZES)
    asked_algorithms = _listed_algorithms(algorithms)
    machines = _listed(machine, _MACHINES)
    if not machines:
        _espalier._refuse("no machine is given", "one of machines(), or several")
    for one in machines:
        table += Table(*_espalier._sweep(
            one, collective, asked_sizes, asked_algorithms, gpus=gpus, relays=relays, root=root,
            profile=profile, chunk=chunk, links=links, in_place=in_place, nccl=nccl, jobs=jobs,
            budget=budget))
    return table


def simulate(machine: AnyMachine, collective: str, size: Size, algorithm: str | Program = "auto", *,
             gpus: Gpus = None, relays: Gpus = None, root: SupportsIndex = 0, profile: str = "kernel",
             chunk: Size | None = None, links: str = "all", in_place: bool = False,
             nccl: bool = False) -> Result:
    """One message with one algorithm of the catalogue, or the fastest ("auto")."""
    return sweep(machine, collective, sizes=size, algorithms=algorithm, gpus=gpus, relays=relays,
                 root=root, profile=profile, chunk=chunk, links=links, in_place=in_place,
                 nccl=nccl).results[0]


def tune(machine: AnyMachine, collective: str = "allreduce", *,
         sizes: Size | Iterable[Size] | None = None, algorithms: str | Iterable[str] = "all",
         gpus: Gpus = None, relays: Gpus = None, root: SupportsIndex = 0, profile: str = "kernel",
         links: str = "all", in_place: bool = False, nccl: bool = True, jobs: SupportsIndex = 1,
         budget: float | None = None) -> Tuning:
    """The fastest algorithm and chunk size for every message size, by default from 1KiB to 1GiB.

    `budget`: seconds that searches may take.
    """
    _require_text(collective=collective, profile=profile, links=links)
    chosen = _espalier.sizes("1KiB", "1GiB") if sizes is None else _listed(sizes, _SIZES)
    return _espalier._tune(machine, collective, chosen, _listed(algorithms, str), gpus=gpus,
                           relays=relays, root=root, profile=profile, links=links, in_place=in_place,
                           nccl=nccl, jobs=jobs, budget=budget)


def fit(logs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], machine: AnyMachine, *,
        gpus: Gpus = None, collective: str | None = None, in_place: bool = False,
        algorithm: str = "nccl", profile: str = "nccl", launch: str | None = None,
        nccl_version: str | None = None, links: str = "all", budget: float | None = None) -> Fit:
    """Fits the constants of a profile to what nccl-tests or rccl-tests printed (docs/fitting.md).

    `collective`: the tables that count, where logs have several. `launch` ("per_gpu", "single",
    "graph") and `nccl_version` say what a log does not. `budget`: seconds after which at most one
    more step is taken.
    """
    return _espalier._fit(_listed(logs, (str, os.PathLike)), machine, gpus=gpus, collective=collective,
                          in_place=in_place, algorithm=algorithm, profile=profile, launch=launch,
                          nccl_version=nccl_version, links=links, budget=budget)


def compare(machine: AnyMachine | None = None, collective: str = "allreduce", *,
            sizes: Size | Iterable[Size] = "1MiB",
            algorithms: str | Program | Iterable[str | Program] = "ring", backend: str = "host",
            ranks: SupportsIndex | None = None, devices: Iterable[SupportsIndex] = (), gpus: Gpus = None,
            root: SupportsIndex = 0, dtype: str = "float", op: str = "sum",
            iterations: SupportsIndex = 20, warmup: SupportsIndex = 1, chunk: Size | None = None,
            profile: str = "kernel", links: str = "all", in_place: bool = False,
            timeout: float = 60) -> list[Comparison]:
    """Simulates programs on this computer and runs them here, with real data.

    `machine`: this computer as it was probed before; without it, it is probed now. `ranks`: how many,
    where it is. `timeout`: seconds that a run may take.
    """
    _require_text(collective=collective, profile=profile, links=links, backend=backend, dtype=dtype, op=op)
    return _espalier._compare(machine, collective, _listed(sizes, _SIZES),
                              _listed_algorithms(algorithms), backend=backend, ranks=ranks,
                              devices=list(devices), gpus=gpus, root=root, dtype=dtype, op=op,
                              iterations=iterations, warmup=warmup, chunk=chunk, profile=profile,
                              links=links, in_place=in_place, timeout=timeout)


def report(items: Reported | Iterable[Reported], path: str | os.PathLike[str], *,
           title: str = "") -> None:
    """Writes one HTML file that shows answers: curves, the machine, timelines, proofs, training.

    The timelines are those of the first two simulations; of a table, of its best result; of
    iterations of training, of the first.
    """
    shown: list[Result] = []
    others: list[Result] = []
    plans: list[Plan] = []
    trained: list[Training] = []
    measured: list[Result] = []
    for item in _listed(items, (Result, Plan, Table, Training, Comparison)):
        if isinstance(item, Plan):
            plans.append(item)
        elif isinstance(item, Training):
            trained.append(item)
        elif isinstance(item, Comparison):
            shown.append(item.predicted)
            measured.append(item.measured)
        elif isinstance(item, Table):
            best = item.best() if len(item) else None
            shown += [] if best is None else [best]
            others += [result for result in item if result is not best]
        elif isinstance(item, Result):
            shown.append(item)
        else:
            raise TypeError(f"{item!r} cannot be drawn: results, tables, comparisons, plans or training")
    _espalier._report(shown[:2], shown[2:] + others, plans, trained, measured, os.fspath(path), title)
