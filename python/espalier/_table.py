# SPDX-License-Identifier: Apache-2.0
"""Answers to many questions as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator

import numpy

from espalier._espalier import Result, _columns

if TYPE_CHECKING:
    import pandas  # type: ignore[import]


def _array(values: list[Any]) -> numpy.ndarray[Any, Any]:
    """Numbers where all are, NaN for those that are missing; else objects."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {bool} and None not in values:
        return numpy.array(values, dtype=bool)
    if kinds == {int} and None not in values:
        return numpy.array(values, dtype=numpy.int64)
    if kinds and kinds <= {int, float}:
        return numpy.array([numpy.nan if value is None else value for value in values], dtype=float)
    column = numpy.empty(len(values), dtype=object)
    column[:] = values
    return column


class Table:
    """The answers of a sweep: results in the order of the questions, and columns of their figures.

    Columns are those of CSV (docs/reports.md), with units in their names and lists as text:
    `table["busbw_gbps"]`, `table["gpus"]` with "0-5"; those without any figure are left out.
    """

    def __init__(self, results: Iterable[Result], skipped: Iterable[dict[str, Any]] = ()) -> None:
        self.results: list[Result] = list(results)
        self.skipped: list[dict[str, Any]] = list(skipped)
        """What did not run, and why."""
        self._by_name: dict[str, numpy.ndarray[Any, Any]] = {
            name: _array(values) for name, values in _columns(self.results).items()
            if any(value is not None for value in values)}

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._by_name)

    def __getitem__(self, name: str) -> numpy.ndarray[Any, Any]:
        if not isinstance(name, str):
            raise TypeError(f"columns have names, and {name!r} is none: rows are in `results`")
        if name not in self._by_name:
            raise KeyError(f"there is no column {name!r}: {', '.join(self._by_name)}")
        return self._by_name[name]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __add__(self, other: Table) -> Table:
        return Table(self.results + other.results, self.skipped + other.skipped)

    def best(self, size: int | None = None) -> Result:
        """The fastest for a message of so many bytes, by default the largest."""
        if not self.results:
            raise ValueError("the table is empty")
        sizes = {result.size for result in self.results}
        wanted = max(sizes) if size is None else size
        if wanted not in sizes:
            raise KeyError(f"no result is for {wanted} bytes")
        return min((result for result in self.results if result.size == wanted),
                   key=lambda result: result.time)

    def to_pandas(self) -> pandas.DataFrame:
        """The columns as a data frame of pandas, which is imported for this alone."""
        import pandas
        return pandas.DataFrame(self._by_name)

    def __repr__(self) -> str:
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"<Table: {len(self.results)} results{skipped}>"
