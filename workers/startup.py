"""How a process of the mesh begins: with its settings, or with one line and exit code 2."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from mesh.errors import MeshError
from workers.errors import WorkersError

__all__ = ["mistakes_explained"]


@contextmanager
def mistakes_explained() -> Generator[None]:
    """Turn a mistake in settings that shows in this block into one line on stderr and exit code 2."""
    try:
        yield
    except (WorkersError, MeshError) as mistake:
        sys.stderr.write(f"workers: {mistake}\n")
        raise SystemExit(2) from mistake
