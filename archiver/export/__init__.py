"""Copy the sealed objects of a run out of a store, byte for byte, with what is known of each.

DIR/objects/…            a store of its own: `--store DIR/objects` verifies it and restores from it
DIR/versions/NAME/0001   what else the store keeps under a name, the oldest first
DIR/EXPORT.json          where each came from, who signed it, and whether it holds
"""

from archiver.export.exporting import Exported, export

__all__ = ["Exported", "export"]
