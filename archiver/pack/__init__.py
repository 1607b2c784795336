"""Members to a stream of tar in zstd frames, and back.

Frame 0 holds `manifest.json` alone; the other frames hold 8 MiB of the tar stream each, the last what is
left. `zstd -d | tar x` reads the whole.
"""

from archiver.pack.reader import read_manifest, unpack
from archiver.pack.writer import Packed, pack

__all__ = ["Packed", "pack", "read_manifest", "unpack"]
