"""What all models share: frozen, strict about fields, JSON values and times in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    ValidationInfo,
)

from archiver import jsonio
from archiver.errors import NotSerialisableError

__all__ = ["Frozen", "JsonValue", "Utc", "utc_text"]


class Frozen(BaseModel):
    """An immutable model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    def document(self, **options: Any) -> dict[str, Any]:
        """The model as a JSON-ready dictionary."""
        return self.model_dump(mode="json", by_alias=True, **options)


def _json_value(value: Any, info: ValidationInfo) -> Any:
    try:
        jsonio.check(value)
    except NotSerialisableError as error:
        path = f"$.{info.field_name}{error.path[1:]}" if info.field_name else error.path
        raise NotSerialisableError(
            f"{error} (in the field {info.field_name})", path=path, remedy=error.remedy
        ) from error
    return value


JsonValue = Annotated[Any, BeforeValidator(_json_value)]
"""Anything that JSON can hold; else `NotSerialisableError` with the path from the model's field on."""


def utc_text(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds: `2026-01-31T14:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("the moment lies outside the years 1 to 9999 in UTC") from error


Utc = Annotated[
    AwareDatetime, AfterValidator(_to_utc), PlainSerializer(utc_text, return_type=str, when_used="json")
]
"""A moment with a zone, kept in UTC; text in JSON is RFC 3339 with milliseconds."""
