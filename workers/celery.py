"""The entry point of ``celery -A workers worker`` and ``celery -A workers beat``: settings from environment and jarvis.toml."""

from workers.composition import Runtime
from workers.settings import Settings
from workers.tasks import attach

__all__ = ["app", "runtime"]

runtime = Runtime(Settings.load())
app = runtime.celery
attach(app, runtime)
