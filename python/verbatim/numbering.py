"""The trainer's numbers of its steps, and which of them are recorded."""

from __future__ import annotations

from verbatim.arguments import checked_number


class Numbering:
    """Numbers steps from `first` on, of which multiples of `every` are recorded.

    What a step follows from is gathered before its number is given. It is foreseen where numbers
    have always ascended by the same; where they have not, any step may be recorded.
    """

    def __init__(self, first: int, every: int) -> None:
        self.every = every
        self.last: int | None = None
        """Number of the latest step."""
        self._next = first
        self._stride: int | None = None
        self._is_regular = True

    def number(self, given: int | None) -> int:
        """Of the step that ends: as given, or else one more than the last."""
        if given is None:
            return self._next if self.last is None else self.last + 1
        return checked_number(given, self.last)

    def is_recorded(self, number: int) -> bool:
        return number % self.every == 0

    def may_be_recorded(self) -> bool:
        """Whether the step that goes on will be recorded, as far as that can be told."""
        return self.every == 1 or self._stride is None or self.is_recorded(self._next)

    def end(self, number: int, *, is_given: bool) -> None:
        """Of the step that goes on."""
        if self.last is None:
            self._stride = None if is_given else 1
        elif self._is_regular:
            stride = number - self.last
            self._is_regular = self._stride in (None, stride)
            self._stride = stride if self._is_regular else None
        self.last = number
        self._next = number + (self._stride or 1)

    def planned(self, steps: int) -> int:
        """How many of the next so many steps are recorded, if numbers ascend by one."""
        first = -(-self._next // self.every)
        return max((self._next + steps - 1) // self.every - first + 1, 0)
