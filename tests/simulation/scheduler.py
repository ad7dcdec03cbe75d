"""Runs several threads as one: exactly one holds the baton, and it changes hands only where a task pauses.

A task pauses before every store operation, so a chooser that answers the same gives the same run, operation by operation. The
thread that pauses picks the next one itself: when the choice falls on it again, no thread is woken.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Chooser", "Crash", "Obstacle", "Scheduler", "Stuck", "current_task", "in_process", "is_simulated", "pause", "spawn"]

MAX_TASKS = 64
Chooser = Callable[[Sequence[str], bool], int]
"""Given the names of the tasks that could go on, and whether the first of them is the one that runs now: which one does."""


class Crash(BaseException):
    """The death of a process: unwinds its threads."""


class Stuck(BaseException):
    """Unwinds the tasks of a schedule in which nobody can go on."""


class Obstacle(Protocol):
    """What a paused task may have to wait for, besides its turn."""

    held: bool


def _immortal() -> bool:
    return False


@dataclass(eq=False, slots=True)
class Task:
    """One thread of control. ``turn`` is locked while it has to wait."""

    name: str
    body: Callable[[], None]
    scheduler: "Scheduler"
    turn: threading.Lock = field(default_factory=threading.Lock)
    waits_for: Obstacle | None = None
    is_dead: Callable[[], bool] = _immortal
    """Whether the process in which it runs has died; then it goes on only to unwind."""
    paused: bool = False
    done: bool = False
    error: BaseException | None = None

    @property
    def ready(self) -> bool:
        """Whether it could go on if it had the baton."""
        return not self.done and (self.waits_for is None or not self.waits_for.held or self.is_dead())


_own = threading.local()
_served: ContextVar[Task | None] = ContextVar("simulated_task", default=None)
_threads = ThreadPoolExecutor(MAX_TASKS, thread_name_prefix="simulated")


def current_task() -> str:
    """The name of the task that runs here; empty outside a schedule."""
    task = _task()
    return "" if task is None else task.name


def is_simulated() -> bool:
    """Whether this thread belongs to a schedule."""
    return _task() is not None


def pause(waits_for: Obstacle | None = None) -> None:
    """Offer the baton. Returns when it is this task's turn again; at once outside a schedule.

    Raises `Crash` when the process of this task has died, and `Stuck` when nobody can go on.
    """
    task = _task()
    if task is not None:
        task.scheduler.offer(task, waits_for)
        if task.is_dead():
            raise Crash


def in_process(is_dead: Callable[[], bool]) -> None:
    """From now on this task, and what it spawns, runs in a process that may die."""
    task = _task()
    if task is not None:
        task.is_dead = is_dead


def spawn(body: Callable[[], None], mark: str = "+") -> None:
    """Begin another task beside this one, in the same process. ``mark`` is added to its name."""
    parent = _task()
    assert parent is not None
    parent.scheduler.begin(parent.name + mark, body, parent.is_dead)


def _task() -> Task | None:
    """The task of this thread; on a thread that serves others, such as a loop's, the task that it serves."""
    own: Task | None = getattr(_own, "task", None)
    return own or _served.get()


class Scheduler:
    """One schedule: add tasks, then `run` them to their ends."""

    def __init__(self, choose: Chooser) -> None:
        self.schedule: list[str] = []
        """Who went on, wherever there was a choice."""
        self._choose = choose
        self._tasks: list[Task] = []
        self._over = threading.Lock()
        self._stuck = False

    def add(self, name: str, body: Callable[[], None]) -> None:
        """A task to run; all begin together, in any order that the chooser likes."""
        self._tasks.append(Task(name, body, self))

    def begin(self, name: str, body: Callable[[], None], is_dead: Callable[[], bool]) -> None:
        """One more task while the others run already."""
        task = Task(name, body, self, is_dead=is_dead)
        self._tasks.append(task)
        self._start(task)

    def run(self) -> dict[str, BaseException]:
        """Run all tasks. What those that raised have raised, by their names; `Stuck` for those that could not go on."""
        self._over.acquire()
        for task in self._tasks:
            self._start(task)
        self.pass_on(None)
        self._over.acquire()
        return {task.name: task.error for task in self._tasks if task.error is not None}

    def offer(self, task: Task, waits_for: Obstacle | None) -> None:
        """A task pauses: until its turn comes again, and until the lock that it waits for is free."""
        self._check()
        if task.paused:
            raise RuntimeError(f"two threads of task {task.name!r} pause at once: the second needs a task of its own (spawn)")
        task.paused, task.waits_for = True, waits_for
        try:
            self.pass_on(task)
            self._check()
        finally:
            task.paused, task.waits_for = False, None

    def pass_on(self, task: Task | None) -> None:
        """Give the baton of a paused or ended task to whoever is chosen, and wait for it to come back."""
        chosen = self._chosen(task)
        if chosen is task:
            return
        if chosen is None:
            self._over.release()
            return
        chosen.turn.release()
        if task is not None and not task.done:
            task.turn.acquire()

    def _chosen(self, task: Task | None) -> Task | None:
        """Who goes on: the one that runs now comes first among the options. None when all have ended."""
        ready = [other for other in self._tasks if other.ready and other is not task]
        stays = task is not None and task.ready
        if task is not None and stays:
            ready.insert(0, task)
        if len(ready) > 1 and not self._stuck:
            chosen = ready[self._choose([other.name for other in ready], stays)]
            self.schedule.append(chosen.name)
            return chosen
        return ready[0] if ready else self._unwound()

    def _unwound(self) -> Task | None:
        """Nobody can go on. Whoever has not ended yet ends now, one after the other, with `Stuck`."""
        left = [task for task in self._tasks if not task.done]
        self._stuck = self._stuck or bool(left)
        return left[0] if left else None

    def _check(self) -> None:
        if self._stuck:
            raise Stuck

    def _start(self, task: Task) -> None:
        task.turn.acquire()
        _threads.submit(copy_context().run, self._live, task)

    def _live(self, task: Task) -> None:
        _own.task = task
        _served.set(task)
        task.turn.acquire()
        try:
            self._check()
            task.body()
        except BaseException as error:  # noqa: BLE001 - whatever ends a task is the explorer's to judge
            task.error = error
        task.done = True
        _own.task = None
        self.pass_on(task)
