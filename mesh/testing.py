"""For tests of what uses the mesh: agents that answer from a script."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mesh.errors import UnknownRoleError
from mesh.ports import RoleAgent
from mesh.roles.assignment import Assignment

__all__ = ["Answer", "ScriptedAgentFactory"]

Answer = str | Exception | Callable[[Assignment], str]
"""A text, an error to raise, or a function that is called."""


class ScriptedAgentFactory:
    """A `JarvisAgentFactory` whose agents say what the script holds for their role.

    Several answers for a role are used up in their order, the last one again and again. ``asked`` records every assignment,
    ``threads`` the thread ids.
    """

    def __init__(self, script: Mapping[str, Answer | list[Answer]]) -> None:
        self.asked: list[Assignment] = []
        self.threads: list[str] = []
        self._script = {role: _as_list(answers) for role, answers in script.items()}

    def make(self, role: str, thread_id: str) -> RoleAgent:
        """See `JarvisAgentFactory.make`."""
        if role not in self._script:
            raise UnknownRoleError(role, self._script)
        self.threads.append(thread_id)
        return _ScriptedAgent(self._script[role], self.asked)


def _as_list(answers: Answer | list[Answer]) -> list[Answer]:
    return [*answers] if isinstance(answers, list) else [answers]


@dataclass(frozen=True)
class _ScriptedAgent:
    answers: list[Answer]
    asked: list[Assignment]

    def perform(self, assignment: Assignment) -> str:
        self.asked.append(assignment)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else answer(assignment)
