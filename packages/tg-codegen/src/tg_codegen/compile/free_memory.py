"""An arena of which pieces are taken and given back, for offsets only: no memory is held.

The smallest free piece that fits is taken, the lowest of equal ones. Free pieces that touch join.
"""

from __future__ import annotations

from bisect import bisect_left, insort


class FreeMemory:
    """The free pieces of an arena that grows at its end.

    Attributes:
        size: how far the arena has grown, in bytes.
    """

    def __init__(self) -> None:
        """Start with an empty arena."""
        self.size = 0
        self._by_size: list[tuple[int, int]] = []  # (length, begin), sorted
        self._end_of: dict[int, int] = {}
        self._begin_of: dict[int, int] = {}

    def take(self, length: int) -> int:
        """The offset of a piece of `length` bytes."""
        place = bisect_left(self._by_size, (length, 0))
        if place < len(self._by_size):
            _, begin = self._by_size[place]
            end = self._remove(begin)
            if end - begin > length:
                self._insert(begin + length, end)
            return begin
        # a free piece at the end is grown
        begin = self._begin_of.get(self.size, self.size)
        if begin < self.size:
            self._remove(begin)
        self.size = begin + length
        return begin

    def give_back(self, begin: int, end: int) -> None:
        """Frees the bytes from `begin` to `end`, which were taken."""
        if end in self._end_of:
            end = self._remove(end)
        if begin in self._begin_of:
            begin = self._begin_of[begin]
            self._remove(begin)
        if begin < end:
            self._insert(begin, end)

    def _insert(self, begin: int, end: int) -> None:
        insort(self._by_size, (end - begin, begin))
        self._end_of[begin] = end
        self._begin_of[end] = begin

    def _remove(self, begin: int) -> int:
        """Removes the free piece at `begin`; returns its end."""
        end = self._end_of.pop(begin)
        del self._begin_of[end]
        del self._by_size[bisect_left(self._by_size, (end - begin, begin))]
        return end
