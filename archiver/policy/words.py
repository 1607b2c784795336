"""How times, counts and money are said."""

from __future__ import annotations

import math


def counted(count: int, what: str) -> str:
    """`1 call`, `3 calls`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def span(seconds: float) -> str:
    """A length of time in the unit that a person would take: `0.4 s`, `8.7 min`, `78 h`, `12 days`."""
    if math.isinf(seconds):
        return "never"
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (100 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{_number(seconds / size)} {unit}"
    return f"{_number(seconds / 86_400)} days"


def usd(amount: float) -> str:
    """US dollars: `$37`, `$0.80`, `$0.0013`; below a millionth of a dollar that it is less."""
    if amount == 0 or amount >= 0.01:
        return f"${amount:,.0f}" if amount >= 1 and round(amount, 2) == int(amount) else f"${amount:,.2f}"
    return f"${amount:.2g}" if amount >= 1e-4 else f"${amount:.6f}" if amount >= 1e-6 else "under $0.000001"


def share(probability: float) -> str:
    """A probability in percent: `5 %`, `0.043 %`."""
    return f"{probability * 100:.3g} %"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
