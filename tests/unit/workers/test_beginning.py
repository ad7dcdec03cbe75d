"""A process of the mesh that is started with a mistake in its settings says so in one line, and ends with exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CELERY = ["-m", "celery", "--app", "workers", "worker"]
CONSUMERS = ["-m", "workers", "consumers"]


def start(folder: Path, argv: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("JARVIS_")}
    given = {**known, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, *argv], cwd=folder, env=given, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("argv", [CELERY, CONSUMERS, ["-m", "workers", "sweeper"]], ids=["celery", "consumers", "sweeper"])
@pytest.mark.parametrize(
    ("environment", "word"),
    [
        ({}, "no server is known"),
        ({"JARVIS_REDIS_URL": "nonsense"}, "JARVIS_REDIS_URL"),
        ({"JARVIS_REDIS_URL": "redis://localhost", "JARVIS_SWEEP_EVERY": "soon"}, "sweep_every"),
        ({"JARVIS_REDIS_URL": "redis://localhost", "JARVIS_MODULES": "no_such_module"}, "no_such_module"),
        ({"JARVIS_REDIS_URL": "redis://localhost", "JARVIS_CONFIG": "missing.toml"}, "missing.toml"),
    ],
)
def test_a_mistake_in_the_settings_is_one_line(tmp_path: Path, argv: list[str], environment: dict[str, str], word: str) -> None:
    ended = start(tmp_path, argv, **environment)

    assert ended.returncode == 2, ended.stderr
    assert word in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_an_alert_address_that_is_none_is_named_by_its_place_and_its_secret_is_not_told(tmp_path: Path) -> None:
    config = tmp_path / "jarvis.toml"
    config.write_text('[alerts]\nurls = ["json://localhost/ok", "no-such-kind://user:secret@host"]\n')

    ended = start(tmp_path, CONSUMERS, JARVIS_REDIS_URL="redis://localhost")

    assert ended.returncode == 2, ended.stderr
    assert "number 2" in ended.stderr
    assert "secret" not in ended.stderr
