"""Logs: for people on a terminal, JSON lines anywhere else; each line bears the workflow, run and step that it belongs to."""

import logging
import sys
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from workflow.context import running_step

__all__ = ["configure_logging"]


def configure_logging(log_format: str = "auto", level: int = logging.INFO) -> None:
    """Set up structlog, through which the standard library's loggers (Celery's, say) speak too."""
    readable = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _with_step,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if readable else "iso", utc=not readable),
    ]
    last: list[Any] = (
        [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)]
        if readable
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # A logger that was cached would keep the first set-up for ever, whatever is configured later.
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for chatty in ("celery.worker.strategy", "celery.app.trace", "httpx2", "httpcore2", "apprise"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _with_step(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Name the step in whose node this line was written."""
    step = running_step()
    if step is not None:
        event.setdefault("workflow_id", step.store.workflow_id)
        event.setdefault("run_id", step.store.control.run_id)
        event.setdefault("step", step.step_id)
    return event
