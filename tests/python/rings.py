# SPDX-License-Identifier: Apache-2.0
"""Algorithms that several tests and the benchmark use."""

import espalier as es


@es.algorithm("allgather")
def ring(p, n):
    for step in range(n - 1):
        for rank in range(n):
            p.rank(rank).copy(block=(rank - step) % n, to=(rank + 1) % n)


@es.algorithm("allreduce")
def ring_allreduce(p, n):
    for step in range(n - 1):
        for rank in range(n):
            p.rank(rank).reduce(block=(rank - step) % n, to=(rank + 1) % n)
    for step in range(n - 1):
        for rank in range(n):
            p.rank(rank).copy(block=(rank + 1 - step) % n, to=(rank + 1) % n)
