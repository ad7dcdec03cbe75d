"""What a process tells of itself: log lines, and spans for OpenTelemetry."""

from workers.telemetry.logs import configure_logging

__all__ = ["configure_logging"]
