"""What stores say that cannot answer."""

from pathlib import Path

import pytest

from persistence import FilePersistence, Persistence, RedisPersistence
from persistence.redis import connect
from persistence.testing import PersistenceTroubleContract


class TestFilesWithoutADirectory(PersistenceTroubleContract):
    @pytest.fixture
    def broken(self, tmp_path: Path) -> Persistence:
        (tmp_path / "store").write_text("theirs")
        return FilePersistence(tmp_path / "store")


class TestRedisWithoutAServer(PersistenceTroubleContract):
    @pytest.fixture
    def broken(self, tmp_path: Path) -> Persistence:
        return RedisPersistence(connect(f"unix://{tmp_path}/socket?db=0"), retry_delays=())
