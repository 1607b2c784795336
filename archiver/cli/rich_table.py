"""A table for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_LEAST_CUT = 8
"""Cells that a column keeps when it is cut."""
_LEAST_OF_ALL = 5
"""Cells that it keeps where the table would not fit otherwise."""
_LEAST_MIDDLE = 13
"""Cells that an id keeps."""
_LEAST_FOLDED = 30
"""Cells that a column keeps when it goes over several lines."""
_LEAST_SPARE = 20
"""Cells that are worth a column that is not needed."""
_GAP = 2
"""Cells between columns, one of which the box draws."""


def show(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    cut: Collection[str],
    fold: Collection[str],
    middle: Collection[str] = (),
    spare: Collection[str] = (),
) -> None:
    """Print harmless texts as a table; no columns but those named in `cut`, `fold` and `middle` get narrower.

    Those in `cut` first, then also below what reads well, then those in `middle`. A table that does not fit
    even so is wider than the terminal. Those in `spare` are left out unless some of them fits beside all
    others whole.
    """
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    widths = [
        max(cell_len(text) for text in (column, *(cells[at] for cells in rows)))
        for at, column in enumerate(columns)
    ]
    left = console.width - sum(widths[at] + _GAP for at, name in enumerate(columns) if name not in spare)
    kept = [
        at
        for at, name in enumerate(columns)
        if name not in spare or left >= min(widths[at], _LEAST_SPARE) + _GAP
    ]
    columns, widths = [columns[at] for at in kept], [widths[at] for at in kept]
    rows = [[cells[at] for at in kept] for cells in rows]
    folded = dict.fromkeys(fold, _LEAST_FOLDED)
    for least in (
        dict.fromkeys(cut, _LEAST_CUT) | folded,
        dict.fromkeys(cut, _LEAST_OF_ALL),
        dict.fromkeys(middle, _LEAST_MIDDLE),
    ):
        shortest = [min(width, least.get(name, width)) for name, width in zip(columns, widths, strict=True)]
        widths = fitted(widths, shortest, console.width - _GAP * len(columns))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold", padding=(0, _GAP - 1, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column, width=width, no_wrap=column not in fold, overflow="ellipsis")
    for cells in rows:
        table.add_row(
            *(
                Text(without_middle(text, width) if column in middle else text)
                for column, text, width in zip(columns, cells, widths, strict=True)
            )
        )
    console.width = max(console.width, sum(widths) + _GAP * len(columns))
    console.print(table)


def without_middle(text: str, width: int) -> str:
    """The text in at most `width` cells: its beginning and its end, which tell ids apart."""
    if cell_len(text) <= width:
        return text
    keep = width - 1
    while keep > 1:
        end = keep // 2
        shown = f"{text[: keep - end]}…{text[-end:]}"
        if cell_len(shown) <= width:
            return shown
        keep -= 1
    return "…"


def fitted(natural: Sequence[int], shortest: Sequence[int], space: int) -> list[int]:
    """Column widths that fit into `space`, the widest made narrower first, none under its shortest."""
    widths = list(natural)
    while sum(widths) > space:
        shrinkable = [at for at, width in enumerate(widths) if width > shortest[at]]
        if not shrinkable:
            break
        widest = max(shrinkable, key=lambda at: widths[at])
        widths[widest] -= 1
    return widths
