"""`jarvis make workflow`: a workflow to start from, which runs as it stands, and its test."""

import keyword
import re
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from console.errors import ConsoleError, MisuseError
from console.output import say, show
from console.wording import shown_path

__all__ = ["make_workflow"]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
TEMPLATES = {"{name}.py": "workflow.py.template", "test_{name}.py": "test_workflow.py.template"}
"""What is written, and what it is made of."""


def make_workflow(
    name: Annotated[str, typer.Argument(help="The name of the module and of the workflow, such as order_intake.")],
    folder: Annotated[Path, typer.Option(help="Where to write.")] = Path(),
) -> None:
    """Write a workflow that runs as it stands, and its test."""
    _check_spelling(name)
    if not folder.is_dir():
        raise MisuseError(f"{folder} is no folder: make it first, or name another one with --folder")
    made = _texts(name, folder)
    _check_free(name)
    for path, text in made.items():
        _write(path, text)
        show(shown_path(path, Path.cwd()))
    for line in _next_steps(name, folder):
        say(line)


def _check_spelling(name: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise MisuseError(f"{name!r} cannot name a module: use lower-case letters, digits and _, such as {_proposal(name)}")


def _check_free(name: str) -> None:
    """Raise `MisuseError` for the name of a module that is there: one of the two would hide the other."""
    if name in sys.stdlib_module_names or find_spec(name) is not None:
        raise MisuseError(f"there is a module {name!r} already: take another name, such as {name}_workflow")


def _texts(name: str, folder: Path) -> dict[Path, str]:
    """The files to write. Raises `MisuseError` when one of them is there."""
    made = {folder / file.format(name=name): _filled(template, name) for file, template in TEMPLATES.items()}
    for path in made:
        if path.exists():
            raise MisuseError(f"{path} is there already: take another name, or another --folder")
    return made


def _filled(template: str, name: str) -> str:
    text = (files("console") / "templates" / template).read_text(encoding="utf-8")
    title = "".join(word.capitalize() for word in name.split("_"))
    return Template(text).substitute({"name": name, "workflow": f"{title}Workflow"})


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as trouble:
        raise ConsoleError(f"{path} cannot be written ({trouble.strerror}): go to a folder of your own") from trouble


def _next_steps(name: str, folder: Path) -> list[str]:
    test = shown_path(folder / f"test_{name}.py", Path.cwd())
    places = f"PYTHONPATH={folder.absolute()} JARVIS_MODULES=workers.definitions,{name}"
    return [
        f"its test: python -m pytest {test}",
        f"its picture: {places} jarvis graph {name}",
        f"on the mesh: {places} jarvis up; then MeshClient().start({name!r}, '{name}:1') runs it",
    ]


def _proposal(name: str) -> str:
    """A name like the one that was typed that will do."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    made = re.sub(r"[^a-z0-9]+", "_", words).strip("_0123456789")
    return made if _NAME.fullmatch(made) and not keyword.iskeyword(made) else "order_intake"
