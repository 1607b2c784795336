"""The ends of texts that dictionaries are made of: of a long chain they are more than memory should hold."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from archiver import pack
from archiver.scratch import Scratch, Tape

Place = tuple[int, str]
"""A text by a number that stands for its bundle, and its path."""


class Texts:
    """They lie in a private file, which is made when there is something to keep."""

    def __init__(self, beside: Path | None = None) -> None:
        """`beside`: the folder in which a private one is made; that for temporary files if there is none."""
        self._beside = beside
        self._opened = ExitStack()
        self._lock = threading.Lock()
        self._tape: Tape | None = None
        self._places: dict[Place, tuple[int, int]] = {}
        """Where each begins in the file, and its length."""

    def __enter__(self) -> Texts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def __contains__(self, place: Place) -> bool:
        return place in self._places

    def of(self, number: int, is_one: Callable[[str], bool]) -> pack.Ends:
        """Keeps those texts of that bundle while it is unpacked; raises what a `Tape` does."""
        return pack.Ends(is_one, lambda path, end: self._take((number, path), end))

    def _take(self, place: Place, end: bytes) -> None:
        with self._lock:
            tape = self._file()
            self._places[place] = (tape.size, len(end))
            tape.write(end)

    def dictionary(self, places: Iterable[Place], count: int) -> bytes:
        """The last bytes of the texts at these places, joined, `count` at most."""
        return pack.joined((self._read(place) for place in places), count)

    def keep_only(self, numbers: Collection[int]) -> None:
        """Forget the texts of other bundles; what they took on disk is free once none is left."""
        self._places = {place: at for place, at in self._places.items() if place[0] in numbers}
        if self._tape is not None and not self._places:
            self._tape.cut(0)

    def _read(self, place: Place) -> bytes:
        return self._file().read(*self._places[place])

    def _file(self) -> Tape:
        if self._tape is None:
            scratch = self._opened.enter_context(Scratch(self._beside))
            self._tape = self._opened.enter_context(Tape(scratch.new_path("texts"), 0))
        return self._tape
