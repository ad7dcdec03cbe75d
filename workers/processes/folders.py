"""Folders of a data folder: made for one user, and trouble with them told in one line."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from workers.errors import FolderUnusableError


@contextmanager
def usable(path: Path) -> Generator[None]:
    """Turn what the disk refuses within the block into a `FolderUnusableError` that names this file or folder."""
    try:
        yield
    except OSError as error:
        raise FolderUnusableError(f"{path} cannot be used ({error.strerror}): mend it or choose another folder.") from error


def make_private(folder: Path) -> None:
    """Make a folder that only its user can enter, where there is none."""
    with usable(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
