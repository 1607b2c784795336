"""Rewrite headers for the recipients of the present configuration: look → repeat notes that stand → sign and
put a note → rewrite.

Payloads stay as they are, byte for byte, so nothing that is signed changes. The note comes before the first
header that it covers. Killed between the two, the run is as it was: a note that covers an old header says
nothing against it. Killed among the headers, each is the old one, which the record signed, or a new one that
the note explains; both open, and running it again does the rest. The other way round a death would leave new
headers that nobody vouches for, and the time of writing would be lost for good.

It revokes nothing: whoever could open an object before, and kept it, still can.
"""

from archiver.rekey.planning import Plan, Target, plan, plans
from archiver.rekey.repeating import noted_runs
from archiver.rekey.rewriting import Done, rekey

__all__ = ["Done", "Plan", "Target", "noted_runs", "plan", "plans", "rekey"]
