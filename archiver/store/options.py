"""How an S3 store is to be used; light, so that settings can be made into it without loading boto3."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from archiver.aws.options import AwsOptions

Checksums = Literal["full", "basic", "off"]


@dataclass(frozen=True, slots=True)
class S3Options:
    """What the settings of `[store]` say besides the address."""

    aws: AwsOptions = field(default_factory=AwsOptions)
    checksums: Checksums = "full"
    part_size: int = 16 << 20
    """Bytes of a part; what has more goes up in parts."""
    largest: int = 5 << 40
    """Bytes that an object may have, on the way up and down; S3 itself takes no more than these."""
