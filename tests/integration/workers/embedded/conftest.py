"""Private servers of a data folder, on each server program of this machine."""

from pathlib import Path

import pytest

from workers.embedded import ServerBinary, installed_binaries

INSTALLED = installed_binaries()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "with a space, ümlaut" / ".jarvis"


@pytest.fixture(params=INSTALLED, ids=[binary.version for binary in INSTALLED])
def binary(request: pytest.FixtureRequest) -> ServerBinary:
    return request.param
