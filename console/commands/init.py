"""`jarvis init`: a commented jarvis.toml to start from."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from console.errors import ConsoleError, MisuseError
from console.output import say

__all__ = ["init"]

CONFIG = Path("jarvis.toml")


def init(force: Annotated[bool, typer.Option("--force", help="Replace a jarvis.toml that is there.")] = False) -> None:
    """Write a commented jarvis.toml into this folder."""
    template = (files("mesh") / "templates" / CONFIG.name).read_text(encoding="utf-8")
    try:
        with CONFIG.open("w" if force else "x", encoding="utf-8") as file:
            file.write(template)
    except FileExistsError as there:
        raise MisuseError(f"{CONFIG} is there already: edit it, or replace it with `jarvis init --force`") from there
    except OSError as trouble:
        raise ConsoleError(f"{CONFIG} cannot be written ({trouble.strerror}): go to a folder of your own") from trouble
    say(f"wrote {CONFIG}: say there who you are and what to read, then `jarvis brief`")
