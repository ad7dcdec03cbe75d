"""`jarvis signals dead`: what a group of consumers gave up; to look at, to hand out again, to delete."""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from console.errors import ConsoleError, MisuseError
from console.output import say, show, show_json
from console.wording import moment, parse_since

if TYPE_CHECKING:
    from bus import DeadLetter, SignalBus
    from workers.settings import Settings

__all__ = ["Wanted", "act_on", "dead", "letter_line", "letters_of"]

dead = typer.Typer(help="Signals that a group of consumers gave up.")

Group = Annotated[str, typer.Argument(help="The group: `jarvis signals groups` shows them.")]
Names = Annotated[list[str] | None, typer.Argument(help="Ids of signals, or of their entries. Else choose by the options.")]
Topics = Annotated[list[str] | None, typer.Option("--topic", help="Topics that match: * is one word, # any number.")]
Error = Annotated[str | None, typer.Option(help="Those whose error holds these words.")]
Since = Annotated[str | None, typer.Option(help="Those given up since then: an age such as 2h, or 2026-11-30T07:00.")]
All = Annotated[bool, typer.Option("--all", help="All of the group.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it. Without it, only their number is said.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dead.command("list")
def list_letters(group: Group, topic: Topics = None, error: Error = None, since: Since = None, as_json: AsJson = False) -> None:
    """Show the dead letters of a group, the oldest first."""
    settings = _settings()
    zone = settings.mesh.operator.tzinfo
    wanted = Wanted.typed((), topic, error, since, zone)
    letters = _visit(settings, lambda bus: wanted.of(letters_of(bus, group)))
    if as_json:
        show_json([_as_json(letter) for letter in letters])
    else:
        for letter in letters:
            show(letter_line(letter, zone))


@dead.command()
def replay(
    group: Group,
    names: Names = None,
    topic: Topics = None,
    error: Error = None,
    since: Since = None,
    every: All = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Hand dead letters to their group again, with a fresh count of tries."""
    _act("replayed", group, _wanted(names, topic, error, since, every), yes=yes, as_json=as_json)


@dead.command()
def discard(
    group: Group,
    names: Names = None,
    topic: Topics = None,
    error: Error = None,
    since: Since = None,
    every: All = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete dead letters for good."""
    _act("discarded", group, _wanted(names, topic, error, since, every), yes=yes, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which letters are meant: by the names of signals or entries, or by topic, error and time."""

    names: tuple[str, ...] = ()
    topics: tuple[str, ...] = ("#",)
    error: str | None = None
    since: dt.datetime | None = None

    @classmethod
    def typed(
        cls, names: Iterable[str], topics: Sequence[str] | None, error: str | None, since: str | None, zone: ZoneInfo
    ) -> "Wanted":
        """What was typed. Raises `MisuseError`."""
        from bus import BusError
        from bus.topics import check_patterns

        try:
            patterns = check_patterns(topics or ("#",))
        except BusError as wrong:
            raise MisuseError(str(wrong)) from wrong
        begin = None if since is None else parse_since(since, dt.datetime.now(dt.UTC), zone)
        return cls(tuple(names), patterns, error, begin)

    def of(self, letters: Iterable["DeadLetter"]) -> list["DeadLetter"]:
        """Those of these letters that are meant."""
        from bus import chosen

        found = chosen(letters, topics=self.topics, error=self.error, since=self.since)
        if not self.names:
            return found
        return [letter for letter in found if {letter.signal.id, letter.signal.entry_id} & set(self.names)]


def letters_of(bus: "SignalBus", group: str) -> list["DeadLetter"]:
    """The dead letters of a group. Raises `ConsoleError` when nobody knows of such a group."""
    letters = bus.dead_letters(group)
    names = [info.name for info in bus.groups()]
    if not letters and group not in names:
        raise ConsoleError(f"there is no group {group!r}: the groups are {', '.join(names) or '(none)'}")
    return letters


def act_on(bus: "SignalBus", how: str, group: str, wanted: Wanted, *, yes: bool) -> tuple[int, int]:
    """Replay or discard; returns how many letters were meant, and how many it was done to.

    Letters that were named are taken at their word. For others `ConsoleError` says how many there are, unless ``yes``.
    """
    letters = wanted.of(letters_of(bus, group))
    if not letters:
        raise ConsoleError(f"group {group!r} has no such dead letter: `jarvis signals dead list {group}` shows what it has")
    if not wanted.names and not yes:
        raise ConsoleError(f"{len(letters)} dead letters of group {group!r} would be {how}: add --yes to do it")
    act: Callable[[str, Sequence[str]], int] = bus.replay if how == "replayed" else bus.discard
    return len(letters), act(group, [letter.signal.entry_id or "" for letter in letters])


def letter_line(letter: "DeadLetter", zone: ZoneInfo) -> str:
    """One letter for people: when it was given up, what, which, after how many tries, and why."""
    signal = letter.signal
    error = " ".join(letter.error.split())
    return f"{moment(letter.died_at, zone)}  {signal.topic}  {signal.id}  {letter.attempts} tries  {error}"


def _act(how: str, group: str, wanted: Wanted, *, yes: bool, as_json: bool) -> None:
    meant, done = _visit(_settings(), partial(act_on, how=how, group=group, wanted=wanted, yes=yes))
    if as_json:
        show_json({"group": group, "chosen": meant, how: done})
    else:
        show(f"{how} {done} of {meant}")
    if done < meant:
        say(f"{meant - done} stay as they were: the bus no longer holds their signals, or somebody else was faster")


def _wanted(
    names: Sequence[str] | None, topic: Sequence[str] | None, error: str | None, since: str | None, every: bool
) -> Wanted:
    if not (names or topic or error or since or every):
        raise MisuseError("which ones? Give ids, or --topic, --error or --since, or --all")
    if every and (names or topic or error or since):
        raise MisuseError("--all means every letter of the group: leave out either it or the others")
    return Wanted.typed(names or (), topic, error, since, _settings().mesh.operator.tzinfo)


def _settings() -> "Settings":
    from workers.settings import Settings

    return Settings.load()


def _visit(settings: "Settings", act: Callable[["SignalBus"], Any]) -> Any:
    from console.joining import visit

    return visit(settings, lambda mesh: act(mesh.client.runtime.signals))


def _as_json(letter: "DeadLetter") -> dict[str, Any]:
    signal = letter.signal
    return {
        "id": signal.id,
        "topic": signal.topic,
        "entry_id": signal.entry_id,
        "published_at": signal.published_at and signal.published_at.isoformat(),
        "died_at": letter.died_at.isoformat(),
        "attempts": letter.attempts,
        "error": letter.error,
        "payload": dict(signal.payload),
    }
