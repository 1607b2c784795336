"""A table for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_SHORTEST = 8
"""Cells that a column keeps when it is cut."""
_FOLDED = 30
"""Cells that a column keeps when it goes over several lines."""
_GAP = 2


def show(
    columns: Sequence[str], rows: Sequence[Sequence[str]], cut: Collection[str], fold: Collection[str]
) -> None:
    """Print harmless texts as a table; no columns but those in `cut` and `fold` are made narrower.

    A table that does not fit even so is wider than the terminal.
    """
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 1))
    needed = 0
    for at, column in enumerate(columns):
        width = max(cell_len(text) for text in (column, *(cells[at] for cells in rows)))
        least = min(width, _SHORTEST if column in cut else _FOLDED if column in fold else width)
        needed += least + _GAP + 1
        table.add_column(column, no_wrap=column not in fold, overflow="ellipsis", min_width=least)
    for cells in rows:
        table.add_row(*(Text(text) for text in cells))
    console.width = max(console.width, needed)
    console.print(table)
