"""Warns of a node that acts on the world outside of a memo, while it does: whenever the node runs again, it would do it again.

Python tells of connections, mails, processes and files by its audit events. What goes over a connection that stands, happens in
memory, or is done by threads of the node's own, it does not tell of.
"""

import os
import sys
import warnings
from types import FrameType
from typing import Any

from workflow.context import in_memo, running_step

__all__ = ["EffectOutsideMemoWarning", "warn_of_effects"]

_ACTS = {
    **dict.fromkeys(("socket.connect", "socket.sendto", "socket.sendmsg"), "speaks to another process"),
    **dict.fromkeys(("http.client.send", "urllib.Request"), "sends a request"),
    **dict.fromkeys(("smtplib.connect", "smtplib.send"), "sends mail"),
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"), "starts a process"),
    **dict.fromkeys(("os.kill", "signal.pthread_kill"), "signals a process"),
    **dict.fromkeys(("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree"), "changes files"),
    **dict.fromkeys(("os.link", "os.symlink", "os.chmod", "os.chown", "os.utime"), "changes files"),
    "sqlite3.connect": "opens a database",
    "open": "writes a file",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CALLERS = ("workflow.calling", "workflow.bridge")
"""The modules that call nodes."""


class EffectOutsideMemoWarning(UserWarning):
    """A node acts on the world outside of a memo."""


class _Hook:
    """The audit hook, of which a process has one: hooks cannot be removed."""

    def __init__(self) -> None:
        self.active = False
        self._added = False

    def add(self) -> None:
        if not self._added:
            self._added = True
            sys.addaudithook(self)

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active or event not in _ACTS or (event == "open" and not _writes(*args)):
            return
        step = running_step()
        node = None if step is None or in_memo() else _node_frame()
        if step is None or node is None:
            return
        name = step.step_id.rpartition("-")[0]  # the same for each round, so that a place is named once
        message = f"node {name!r} {_ACTS[event]} ({event}) outside of a memo: it does so again whenever it runs again"
        warnings.warn_explicit(
            f"{message}; put it in memoize()",
            EffectOutsideMemoWarning,
            node.f_code.co_filename,
            node.f_lineno,
            registry=node.f_globals.setdefault("__warningregistry__", {}),
        )


_hook = _Hook()


def warn_of_effects(active: bool = True) -> None:
    """From now on, in this process, warn once for each place where a node acts on the world outside of a memo.

    For tests and for development: with the filter ``error::workflow.testing.EffectOutsideMemoWarning`` the act itself fails. An
    act that may be repeated, such as publishing under a stable id, needs no memo: filter its warning by the line.
    """
    _hook.add()
    _hook.active = active


def _writes(*opened: Any) -> bool:
    path, _, flags = opened
    return isinstance(flags, int) and bool(flags & _WRITING) and "__pycache__" not in str(path)


def _node_frame() -> FrameType | None:
    """Where the node stands that led here; None when the engine itself acts, on its store for instance, or an import."""
    acting = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    frame, node = acting, None
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.startswith("importlib."):
            return None
        if module.startswith(_CALLERS):
            return node or acting
        if module.startswith("workflow."):
            return None
        if not module.startswith("asyncio."):
            node = frame
        elif node is not None:
            return node  # what a loop runs begins here
        frame = frame.f_back
    return acting  # called by hand: whose frame is the node's nobody can say
