"""What has become of runs, also of those that the store no longer holds.

Read in this order: `past` (one run, as its lines tell it), `archive` (all of them, in partitions of their own), `pruning`
(what is forgotten), `telling` (which lines are signals), `relay` (from the store's log into the archive and onto the bus).
"""

from workers.history.archive import PastPage, Query, RunArchive
from workers.history.past import ABANDONED, PastRun
from workers.history.relay import HistoryRelay

__all__ = ["ABANDONED", "HistoryRelay", "PastPage", "PastRun", "Query", "RunArchive"]
