# SPDX-License-Identifier: Apache-2.0
"""Algorithms written in Python."""

from __future__ import annotations

import functools
from typing import Any, Callable

from espalier._espalier import Program, Sketch


class Algorithm:
    """A collective algorithm: a function that writes a program for a number of ranks.

    It is called as `function(p, n, **parameters)`, where p is a Sketch and n the number of ranks, and
    moves blocks of the message about in an order that would be right if ops ran one by one.
    """

    def __init__(self, function: Callable[..., None], collective: str,
                 blocks: int | Callable[[int], int] | None = None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        # Programs have names; a lambda has none.
        self.name = function.__name__ if function.__name__.isidentifier() else "program"
        self.collective = collective
        self.blocks = blocks

    def build(self, ranks: int, *, root: int = 0, in_place: bool = False, **parameters: Any) -> Program:
        """The program for so many ranks; `parameters` are the function's own."""
        blocks = self.blocks(ranks) if callable(self.blocks) else self.blocks
        sketch = Sketch(self.name, self.collective, ranks, root, ranks if blocks is None else blocks,
                        in_place)
        self.function(sketch, ranks, **parameters)
        code = self.function.__code__
        return sketch.finish(code.co_filename, code.co_firstlineno)

    def __repr__(self) -> str:
        return f"<Algorithm {self.name}: {self.collective}>"


def algorithm(collective: str, *,
              blocks: int | Callable[[int], int] | None = None) -> Callable[[Callable[..., None]], Algorithm]:
    """Makes an Algorithm of a function. `blocks`: equal parts that the message is divided into, as a
    number or as a function of the number of ranks; by default one for every rank."""
    def make(function: Callable[..., None]) -> Algorithm:
        return Algorithm(function, collective, blocks)
    return make
