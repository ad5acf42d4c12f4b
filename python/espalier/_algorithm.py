# SPDX-License-Identifier: Apache-2.0
"""Algorithms written in Python."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Iterator, SupportsIndex

from espalier._espalier import Program, Sketch, _refuse_here, _require_collective


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """What was written with `def`, within decorators, functools.partial and objects that are called."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not hasattr(function, "__code__") and hasattr(type(function).__call__, "__code__"):
            function = type(function).__call__
        else:
            return function


def _name_of(function: Callable[..., Any]) -> str:
    """Programs have names; a lambda has none."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "program"


class Algorithm:
    """A collective algorithm: a function that writes a program for a number of ranks.

    It is called as `function(p, n, **parameters)`, where p is a Sketch and n the number of ranks, and
    moves blocks of the message about in an order that would be right if ops ran one by one.
    """

    def __init__(self, function: Callable[..., Any], collective: str,
                 blocks: SupportsIndex | Callable[[int], int] | None = None) -> None:
        _require_collective(collective)
        if not callable(function):
            _refuse_here(f"{function!r} is no function", "def name(p, n): ...")
        if inspect.iscoroutinefunction(_innermost(function)):
            _refuse_here(f"{_name_of(function)} is async, and nobody would await it", "def name(p, n): ...")
        if blocks is not None and not callable(blocks) and blocks.__index__() < 1:
            _refuse_here(f"{blocks} blocks", "one at least")
        functools.update_wrapper(self, function)
        self.function = function
        self.name = _name_of(function)
        self.collective = collective
        self.blocks = blocks

    def build(self, ranks: SupportsIndex, *, root: SupportsIndex = 0, in_place: bool = False,
              name: str | None = None, **parameters: Any) -> Program:
        """The program for so many ranks; `parameters` are the function's own. `name`: what tables call
        it, by default as the function."""
        count = ranks.__index__()
        blocks = self.blocks(count) if callable(self.blocks) else self.blocks
        sketch = Sketch(self.name if name is None else name, self.collective, count, root,
                        count if blocks is None else blocks, in_place)
        written = self.function(sketch, count, **parameters)
        if isinstance(written, Iterator):  # of a function that yields between its ops
            for _ in written:
                pass
        code = getattr(_innermost(self.function), "__code__", None)
        return sketch.finish("" if code is None else code.co_filename,
                             0 if code is None else code.co_firstlineno)

    def __reduce__(self) -> str:
        # As a function: by its name in its module, where other processes find it, too.
        return getattr(self, "__qualname__", self.name)

    def __repr__(self) -> str:
        return f"<Algorithm {self.name}: {self.collective}>"


def algorithm(collective: str, *, blocks: SupportsIndex | Callable[[int], int] | None = None
              ) -> Callable[[Callable[..., Any]], Algorithm]:
    """Makes an Algorithm of a function. `blocks`: equal parts that the message is divided into, as a
    number or as a function of the number of ranks; by default one for every rank."""
    def make(function: Callable[..., Any]) -> Algorithm:
        return Algorithm(function, collective, blocks)
    return make
