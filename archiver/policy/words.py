"""How times, counts and money are said."""

from __future__ import annotations


def counted(count: int, what: str) -> str:
    """`1 call`, `3 calls`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def span(seconds: float) -> str:
    """A length of time in the unit that a person would take: `0.4 s`, `8.7 min`, `78 h`, `12 days`."""
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (100 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{_number(seconds / size)} {unit}"
    return f"{_number(seconds / 86_400)} days"


def usd(amount: float) -> str:
    """US dollars, as exact as they matter: `$37`, `$1.85`, `$0.80`, `$0.025`, `$0.0013`."""
    if amount >= 1:
        return f"${amount:,.2f}".removesuffix(".00")
    if amount == 0 or amount >= 0.01:
        return "$0" if amount == 0 else f"${amount:.3f}".removesuffix("0")
    return f"${amount:.2g}" if amount >= 1e-4 else f"${amount:.6f}" if amount >= 1e-6 else "under $0.000001"


def share(probability: float) -> str:
    """A probability in percent: `5 %`, `0.043 %`."""
    return f"{probability * 100:.3g} %"


def _number(value: float) -> str:
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.1f}".removesuffix(".0") if value >= 1 or value == 0 else f"{value:.2g}"
