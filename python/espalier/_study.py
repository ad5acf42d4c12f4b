# SPDX-License-Identifier: Apache-2.0
"""Questions about machines."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any, Iterable, Sequence

from espalier import _espalier
from espalier._espalier import Machine, Plan, Program, Result, Tuning
from espalier._table import Table


def _listed(one_or_several: Any, kinds: type | tuple[type, ...]) -> list[Any]:
    return [one_or_several] if isinstance(one_or_several, kinds) else list(one_or_several)


def sweep(machine: Machine | Sequence[Machine], collective: str = "allreduce", *,
          sizes: int | str | Iterable[int | str] = "1GiB",
          algorithms: str | Program | Iterable[str | Program] = "all",
          gpus: str | Sequence[int] | None = None, relays: str | Sequence[int] | None = None,
          root: int = 0, profile: str = "kernel", chunk: int | str | None = None, links: str = "all",
          in_place: bool = False, nccl: bool = True, jobs: int = 1,
          budget: float | None = None) -> Table:
    """Simulates algorithms for messages of several sizes, on one machine or on several.

    `algorithms` are names as --algorithm takes them, or programs; "all" are those of the catalogue,
    of which those that do not apply are in `Table.skipped`. `nccl`: also how long NCCL takes.
    `jobs`: worker processes, 0 for one per processor. `budget`: seconds that searches may take.
    """
    table = Table([])
    # What can be gone through once only is to do for all machines.
    asked_sizes = _listed(sizes, (Integral, str))
    asked_algorithms = _listed(algorithms, (str, Program))
    for one in _listed(machine, Machine):
        table += Table(*_espalier._sweep(
            one, collective, asked_sizes, asked_algorithms, gpus=gpus, relays=relays, root=root,
            profile=profile, chunk=chunk, links=links, in_place=in_place, nccl=nccl, jobs=jobs,
            budget=budget))
    return table


def simulate(machine: Machine, collective: str, size: int | str, algorithm: str | Program = "auto", *,
             gpus: str | Sequence[int] | None = None, relays: str | Sequence[int] | None = None,
             root: int = 0, profile: str = "kernel", chunk: int | str | None = None, links: str = "all",
             in_place: bool = False, nccl: bool = False) -> Result:
    """One message with one algorithm of the catalogue, or the fastest ("auto")."""
    return sweep(machine, collective, sizes=size, algorithms=algorithm, gpus=gpus, relays=relays,
                 root=root, profile=profile, chunk=chunk, links=links, in_place=in_place,
                 nccl=nccl).results[0]


def tune(machine: Machine, collective: str = "allreduce", *,
         sizes: int | str | Iterable[int | str] | None = None,
         algorithms: str | Iterable[str] = "all", gpus: str | Sequence[int] | None = None,
         relays: str | Sequence[int] | None = None, root: int = 0, profile: str = "kernel",
         links: str = "all", in_place: bool = False, nccl: bool = True, jobs: int = 1) -> Tuning:
    """The fastest algorithm and chunk size for every message size, by default from 1KiB to 1GiB."""
    chosen = _espalier.sizes("1KiB", "1GiB") if sizes is None else _listed(sizes, (Integral, str))
    return _espalier._tune(machine, collective, chosen, _listed(algorithms, str), gpus=gpus,
                           relays=relays, root=root, profile=profile, links=links, in_place=in_place,
                           nccl=nccl, jobs=jobs)


def report(items: Result | Plan | Table | Iterable[Result | Plan | Table],
           path: str | os.PathLike[str], *, title: str = "") -> None:
    """Writes one HTML file that shows results and plans: curves, the machine, timelines, proofs.

    The timelines are those of the first two simulations; of a table, of its best result.
    """
    shown: list[Result] = []
    others: list[Result] = []
    plans: list[Plan] = []
    for item in _listed(items, (Result, Plan, Table)):
        if isinstance(item, Plan):
            plans.append(item)
        elif isinstance(item, Table):
            best = item.best()
            shown.append(best)
            others += [result for result in item if result is not best]
        else:
            shown.append(item)
    _espalier._report(shown[:2], shown[2:] + others, plans, os.fspath(path), title)
