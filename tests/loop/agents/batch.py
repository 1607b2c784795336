"""A batch job: a step a row, each of which may be done again but need not be once it is recorded."""

from __future__ import annotations

from typing import Any

import archiver
from archiver.testing import Place

ROWS = (3, 1, 4, 1, 5, 9)


def agent(place: Place) -> Any:
    """Returns the sum, which is wrong if a step is lost or its output changed."""

    def squared(number: int, row: int) -> dict[str, int]:
        place.world.act(f"row-{number}", row, replayable=True)
        return {"row": row, "square": row * row}

    with archiver.run("batch", policy="every-step", check=place.check) as run:
        outputs = [run.step(f"row-{number}", squared, number, row) for number, row in enumerate(ROWS)]
        total = run.step("total", sum, [one["square"] for one in outputs])
        run.finish("succeeded")
        return {"total": total, "steps": run.results}
