"""What a role agent is asked to do."""

from __future__ import annotations

import datetime as dt

from pydantic import BaseModel, ConfigDict


class Assignment(BaseModel):
    """One piece of work for one role. `research` and `operations` are the texts of the others, for the one who composes."""

    model_config = ConfigDict(frozen=True)

    role: str
    date: dt.date
    research: str | None = None
    operations: str | None = None
