"""What the processes of a mesh are told."""

import json
import sys
from pathlib import Path

import pytest

from workers.mesh_processes import call_worker, mesh_environment, mesh_processes, worker_process
from workers.settings import Settings


@pytest.fixture
def settings():
    return Settings(redis_url="redis://:hunter2@db.example:6379/0", home=Path("elsewhere"))


def test_a_mesh_is_worker_beat_sweeper_and_consumers(settings, tmp_path):
    specs = mesh_processes(settings, tmp_path)
    assert [spec.role for spec in specs] == ["worker", "beat", "sweeper", "consumers"]
    assert [spec.log for spec in specs] == [tmp_path / "logs" / f"{spec.role}.log" for spec in specs]
    assert {spec.argv[0] for spec in specs} == {sys.executable}
    assert (tmp_path / "beat").is_dir()


def test_no_secret_stands_in_a_command_line(settings, tmp_path):
    for spec in mesh_processes(settings, tmp_path):
        assert "hunter2" not in " ".join(spec.argv)
        assert spec.env["JARVIS_REDIS_URL"] == "redis://:hunter2@db.example:6379/0"
        assert spec.env["JARVIS_BROKER_URL"] == "redis://:hunter2@db.example:6379/1"


def test_paths_are_absolute_since_processes_run_in_the_home_folder(settings, tmp_path):
    environment = mesh_environment(settings.model_copy(update={"config": Path("jarvis.toml")}), tmp_path)
    assert environment["JARVIS_HOME"] == str(tmp_path)
    assert environment["JARVIS_CONFIG"] == str(Path("jarvis.toml").absolute())
    assert environment["PYTHONSAFEPATH"] == "1"
    assert f"--workdir {tmp_path} " in " ".join(worker_process(settings, tmp_path).argv)


def test_a_worker_for_one_call_expects_whom_it_is_told_and_keeps_the_rest(settings, tmp_path):
    told = json.loads(call_worker(settings, tmp_path, ["research"]).env["JARVIS_WATCHDOG"])
    assert told == {"agents": ["research"], "stale_after_seconds": settings.watchdog.stale_after_seconds}
    assert "JARVIS_WATCHDOG" not in worker_process(settings, tmp_path).env


def test_a_worker_for_one_call_takes_no_sweeps(settings, tmp_path):
    queues = [
        spec.argv[spec.argv.index("--queues") + 1]
        for spec in (call_worker(settings, tmp_path, ()), worker_process(settings, tmp_path))
    ]
    assert queues == ["segments", "segments,sweeps"]
