"""Schedules: when an occurrence is due, which one is started by whom, and what was started last.

cron.py        what a cron expression means
rules.py       from a rule and a zone to moments: pure
schedule.py    `Schedule`: a rule, the workflow that it starts, and what is done after downtime
catching_up.py which slots are started now: pure
tables.py      how a schedule is written in settings
catalogue.py   the schedules of one mesh, and how an occurrence of each begins
cursor.py      how far a schedule has come, in the store
looking.py     the look that starts what is due; beat's ticks and the sweeper both ask for it
overview.py    what there is to say about schedules to people
"""

from workers.schedules.rules import Every, Slot, WallTimes
from workers.schedules.schedule import AfterDowntime, Schedule

__all__ = ["AfterDowntime", "Every", "Schedule", "Slot", "WallTimes"]
