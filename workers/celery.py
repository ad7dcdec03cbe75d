"""The entry point of ``celery -A workers worker`` and ``celery -A workers beat``: settings from environment and jarvis.toml."""

from workers.broker.redis_transport import install
from workers.composition import Runtime
from workers.settings import Settings
from workers.startup import mistakes_explained
from workers.tasks import attach

__all__ = ["app", "runtime"]

with mistakes_explained():
    runtime = Runtime(Settings.load())
    app = runtime.celery
    attach(app, runtime)
    install()
