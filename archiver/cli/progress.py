"""Progress at a terminal, on standard error; elsewhere nobody is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from archiver.cli import output
from archiver.progress import Progress, Silent

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


@contextmanager
def shown(as_json: bool = False) -> Iterator[Progress]:
    """A progress display for the time of one operation."""
    if as_json or not sys.stderr.isatty():
        yield Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    with (
        Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=Console(file=sys.stderr),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as bars,
        _given_way(bars),
    ):
        yield _Shown(bars)


@contextmanager
def counted(what: str, as_json: bool = False) -> Iterator[Callable[[], None]]:
    """A display of how many of something are done, while nobody knows how many there are."""
    if as_json or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn

    with Bars(
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} {task.description}", markup=False),
        console=Console(file=sys.stderr),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bars:
        task = bars.add_task(what, total=None)
        with _given_way(bars):
            yield lambda: bars.advance(task)


@contextmanager
def _given_way(bars: Bars) -> Iterator[None]:
    """Have what is printed at the terminal meanwhile stand above the display.

    rich would do that by taking standard output over, and writes what goes into a file to the terminal then.
    """

    @contextmanager
    def hidden() -> Iterator[None]:
        bars.stop()
        try:
            yield
        finally:
            bars.start()

    with output.beside(hidden):
        yield


class _Shown:
    """One line a stage."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task: TaskID | None = None

    def stage(self, name: str, total: int | None = None) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(name, total=total)

    def advance(self, count: int) -> None:
        if self._task is not None:
            self._bars.advance(self._task, count)
