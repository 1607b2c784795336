"""Members to a stream of tar in zstd frames, and back.

Frame 0 holds `manifest.json` alone; the other frames hold 8 MiB of the tar stream each, the last what is
left. `zstd -d | tar x` reads the whole of a full bundle.
"""

from archiver.pack.chain import Place, Whole, demand_chain, whole
from archiver.pack.dictionary import is_text, joined
from archiver.pack.reader import (
    Ends,
    First,
    Lend,
    check_table,
    compressed,
    read_first,
    read_manifest,
    unpack,
    unpack_parts,
)
from archiver.pack.writer import Base, Held, Kept, Packed, new, pack

__all__ = [
    "Base",
    "Ends",
    "First",
    "Held",
    "Kept",
    "Lend",
    "Packed",
    "Place",
    "Whole",
    "check_table",
    "compressed",
    "demand_chain",
    "is_text",
    "joined",
    "new",
    "pack",
    "read_first",
    "read_manifest",
    "unpack",
    "unpack_parts",
    "whole",
]
