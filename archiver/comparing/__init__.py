"""Two checkpoints compared: documents in, differences out; pure, and in bounded memory.

Transcripts are compared by what was said and called, not by bytes: compaction replaces older results with
stubs in the later of the two, and that is no change of the conversation.
"""

from archiver.comparing.comparison import COVERED, NOT_COMPARED, Side, compare
from archiver.comparing.tree import Tree, tree_in

__all__ = ["COVERED", "NOT_COMPARED", "Side", "Tree", "compare", "tree_in"]
