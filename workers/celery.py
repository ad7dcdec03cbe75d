"""The entry point of ``celery -A workers worker`` and ``celery -A workers beat``: settings from environment and jarvis.toml."""

import sys

from mesh.errors import MeshError
from workers.composition import Runtime
from workers.errors import WorkersError
from workers.settings import Settings
from workers.tasks import attach

__all__ = ["app", "runtime"]


def _settings() -> Settings:
    """The settings, or one line and exit code 2: who starts a worker is shown no traceback for a mistake in them."""
    try:
        return Settings.load()
    except (WorkersError, MeshError) as mistake:
        sys.stderr.write(f"workers: {mistake}\n")
        raise SystemExit(2) from mistake


runtime = Runtime(_settings())
app = runtime.celery
attach(app, runtime)
