"""Start-up check: the rooms have common names, and none may come from somewhere else than this one."""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from console.errors import ForeignRoomError

__all__ = ["ROOMS", "check_rooms", "foreign_room", "room_places"]

ROOMS = ("persistence", "workflow", "bus", "mesh", "workers")


def check_rooms() -> None:
    """Raise `ForeignRoomError` naming the file that stands in the place of a room of ours."""
    home = Path(__file__).parent.parent
    foreign = foreign_room(room_places(ROOMS), home)
    if foreign is not None:
        room, place = foreign
        found = f"is {place}, which is not ours" if place else "cannot be found"
        raise ForeignRoomError(f"the package {room!r} {found}: {home / room} should be; look at PYTHONPATH, or install again")


def room_places(rooms: Iterable[str]) -> dict[str, Path | None]:
    """Where an import of each room would come from. Nothing is imported."""
    return {room: _place(room) for room in rooms}


def foreign_room(places: Mapping[str, Path | None], home: Path) -> tuple[str, Path | None] | None:
    """The first room that does not stand in ``home``, and where it comes from (None: nowhere)."""
    return next(((room, place) for room, place in places.items() if place != home / room / "__init__.py"), None)


def _place(room: str) -> Path | None:
    try:
        spec = find_spec(room)
    except ValueError:  # somebody put a module without a spec into the table of loaded ones
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None
