"""Times in answers of AWS, read as boto3 reads them and faster."""

from __future__ import annotations

from datetime import UTC

import pytest
from botocore.utils import parse_timestamp

from archiver.aws.door import moment


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-29T20:34:18Z",
        "2026-11-29T20:34:18.000Z",
        "2026-11-29T20:34:18.123456+02:00",
        "Sun, 29 Nov 2026 20:34:18 GMT",
        "Sun, 29 Nov 2026 20:34:18 +0200",
        "1764448458",
        1764448458,
        1764448458.25,
    ],
)
def test_the_same_moment_with_its_zone(text: str | float) -> None:
    found = moment(text)
    assert found.tzinfo is not None
    assert found.astimezone(UTC) == parse_timestamp(text).astimezone(UTC)


def test_what_is_no_time_stays_an_error() -> None:
    with pytest.raises(ValueError, match="tomorrow"):
        moment("tomorrow")
