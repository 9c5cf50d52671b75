"""Strides: what BLAS can express of a NumPy array, and what must be copied.

A BLAS matrix has one unit stride and one leading dimension. leading() finds them in a pair of strides; BatchPlan turns a stack
of products, given by its strides, into the fewest strided-batch calls. All strides here count elements. Nothing here touches
data or knows about element types.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional


def leading(rows: int, cols: int, row_stride: int, col_stride: int) -> int:
    """The leading dimension of a rows x cols matrix (both >= 1): positive if it is row-major, negative if it is column-major,
    0 if BLAS cannot express it. A single row or column is row-major where it can be either."""
    if (col_stride == 1 or cols == 1) and (row_stride >= cols or rows == 1):
        return row_stride if rows > 1 else cols
    if (row_stride == 1 or rows == 1) and (col_stride >= rows or cols == 1):
        return -(col_stride if cols > 1 else rows)
    return 0


def may_overlap_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """False only if no two elements of the array share memory. Units of the strides do not matter, as long as an element's
    size is 1."""
    extent = 1
    for stride, size in sorted((abs(stride), size) for size, stride in zip(shape, strides) if size > 1):
        if stride < extent:
            return True
        extent += (size - 1) * stride
    return False


def broadcast_strides(shape: Sequence[int], strides: Sequence[int], stack: Sequence[int], n_axes: int = 2) -> tuple[int, ...]:
    """Those of a stack of this shape, of what the last dimensions are."""
    steps = [0 if size == 1 else stride for size, stride in zip(shape[: len(shape) - n_axes], strides)]
    return (*(0,) * (len(stack) - len(steps)), *steps, *strides[len(steps) :])


Loop = tuple[int, ...]  # how often, and the step of each array: A, B, C, ...
OwnLoops = tuple[Optional[tuple[int, int]], Optional[tuple[int, int]]]  # of A, of B: see inside_and_outside


def inside_and_outside(loops: Sequence[Loop], once: Loop, own_loops: OwnLoops) -> tuple[Loop, list[Loop]]:
    """(the loop that one call does, or `once`, if it does none; those round it)

    own_loops: for A and B, what every call must do of it, (how often, step), or None: what it may.

    Raises:
        ValueError: there is no such loop.
    """
    fitting = list(loops)
    for i, (name, own) in enumerate(zip("ab", own_loops), 1):
        if own is not None:
            fitting = [loop for loop in fitting if (loop[0], loop[i]) == own]
            if not fitting:
                raise ValueError(
                    f"{name} was packed as a stack of {own[0]} matrices, through which this product does not go in one: the "
                    "other operand, or the result, does not lie at equal steps in the same order"
                )
    inside = max(fitting) if fitting else once
    return inside, [loop for loop in loops if loop is not inside]


def loops_of(sizes: Sequence[int], *strides: Sequence[int], is_free: bool) -> tuple[list[Loop], list[int]]:
    """(the dimensions of a stack that are longer than 1, innermost first in the memory of the third array, the result; where each
    array begins). is_free: each dimension is gone through forwards, as the result lies."""
    begins = [0] * len(strides)
    loops: list[Loop] = []
    for loop in zip(sizes, *strides):
        last = loop[0] - 1
        if last == 0:
            continue
        if is_free and loop[3] < 0:
            begins = [begin + last * step for begin, step in zip(begins, loop[1:])]
            loop = (loop[0], *(-step for step in loop[1:]))
        loops.append(loop)
    if len(loops) > 1:
        loops.reverse()
        loops.sort(key=lambda loop: abs(loop[3]))
    return loops, begins


def _take_in(loops: list[Loop], loop: Loop) -> None:
    # One more loop round the others, joined to the last of them where each array goes on by the same step.
    if loops and loop[1:] == tuple(loops[-1][0] * step for step in loops[-1][1:]):
        loops[-1] = (loops[-1][0] * loop[0], *loops[-1][1:])
    else:
        loops.append(loop)


def stack_calls(sizes: Sequence[int], *strides: Sequence[int]) -> tuple[Loop, Iterable[tuple[int, ...]]]:
    """A stack of calls on matrices that stay as they are: what BatchPlan.calls() gives. strides: of A, B and C (longer lists will
    do), which lie in memory in C's order."""
    found, begins = loops_of(sizes, *strides, is_free=True)
    loops: list[Loop] = []
    for loop in found:
        _take_in(loops, loop)
    inside, outside = inside_and_outside(loops, _ONCE, (None, None))
    return inside, _offsets(outside, begins)


class BatchPlan:
    """C_i = A_i B_i for every i of a stack: sizes, strides and the loops round them.

    After merge() the product is m x n x k with leading dimensions lda, ldb, ldc (signed as leading() gives them), of which a
    call does `count`, stepping by (step_a, step_b, step_c); offsets() are the starting points of the calls.
    """

    __slots__ = ("m", "n", "k", "a", "b", "c", "loops", "begins", "own_loops")

    def __init__(
        self, m: int, n: int, k: int, a: Sequence[int], b: Sequence[int], c: Sequence[int], own_loops: OwnLoops = (None, None)
    ) -> None:
        """a, b, c: (row stride, column stride) of one product's matrices."""
        self.m, self.n, self.k = m, n, k
        self.a, self.b, self.c = a, b, c
        self.own_loops = own_loops
        self.loops: list[Loop] = []
        self.begins = [0, 0, 0]

    def leadings(self) -> tuple[int, int, int]:
        return leading(self.m, self.k, *self.a), leading(self.k, self.n, *self.b), leading(self.m, self.n, *self.c)

    def merge(self, sizes: Sequence[int], a: Sequence[int], b: Sequence[int], c: Sequence[int]) -> None:
        """Takes in the stack's dimensions with the strides of each array (longer lists will do). Each is folded into the matrices,
        or joined to the loop inside it, where the strides allow, or else becomes a loop of its own. A stack that has a loop of
        its own is not folded.
        """
        own_a, own_b = self.own_loops
        loops, begins = loops_of(sizes, a, b, c, is_free=own_a is None and own_b is None)
        self.begins = [before + begin for before, begin in zip(self.begins, begins)]
        for count, step_a, step_b, step_c in loops:
            if own_a is None and self._fold_rows(count, step_a, step_b, step_c):
                continue
            if own_b is None and self._fold_cols(count, step_a, step_b, step_c):
                continue
            _take_in(self.loops, (count, step_a, step_b, step_c))

    def _fold_rows(self, count: int, step_a: int, step_b: int, step_c: int) -> bool:
        # A stack of A's against one B is one taller A, if A's and C's next matrix begins where the next row would.
        if step_b != 0:
            return False
        if self.m > 1 and (step_a != self.m * self.a[0] or step_c != self.m * self.c[0]):
            return False
        a = (self.a[0] if self.m > 1 else step_a, self.a[1])
        c = (self.c[0] if self.m > 1 else step_c, self.c[1])
        m = self.m * count
        if not (leading(m, self.k, *a) and leading(m, self.n, *c)):
            return False
        self.m, self.a, self.c = m, a, c
        return True

    def _fold_cols(self, count: int, step_a: int, step_b: int, step_c: int) -> bool:
        # The same for one A against a stack of B's.
        if step_a != 0:
            return False
        if self.n > 1 and (step_b != self.n * self.b[1] or step_c != self.n * self.c[1]):
            return False
        b = (self.b[0], self.b[1] if self.n > 1 else step_b)
        c = (self.c[0], self.c[1] if self.n > 1 else step_c)
        n = self.n * count
        if not (leading(self.k, n, *b) and leading(self.m, n, *c)):
            return False
        self.n, self.b, self.c = n, b, c
        return True

    def calls(self) -> tuple[Loop, Iterable[tuple[int, int, int]]]:
        """(count, step_a, step_b, step_c) of the strided batch that one call does, and the offsets of A, B and C in the first
        product of each call."""
        inside, outside = inside_and_outside(self.loops, _ONCE, self.own_loops)
        return inside, _offsets(outside, self.begins)


_ONCE = (1, 0, 0, 0)


def _offsets(loops: list[Loop], begins: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    begin_a, begin_b, begin_c = begins
    for idxs in itertools.product(*(range(loop[0]) for loop in loops)):
        yield (
            begin_a + sum(idx * loop[1] for idx, loop in zip(idxs, loops)),
            begin_b + sum(idx * loop[2] for idx, loop in zip(idxs, loops)),
            begin_c + sum(idx * loop[3] for idx, loop in zip(idxs, loops)),
        )
