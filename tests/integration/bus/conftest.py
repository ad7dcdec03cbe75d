"""A server that a test may stop, kill and start again."""

import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import redis

from workers.embedded import installed_binaries


class Server:
    """One server program on a socket and a data folder of its own."""

    def __init__(self, binary: str, folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{folder}/s?db=0"

    def start(self) -> None:
        options = f"--port 0 --unixsocket {self._folder}/s --dir {self._folder} --appendonly yes --appendfsync always".split()
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([self._binary, *options, "--save", ""], stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while not self._answers():
            assert time.monotonic() < deadline, (self._folder / "log").read_text()[-500:]
            time.sleep(0.01)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it hang, with its connections open."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def forget_data(self) -> None:
        shutil.rmtree(self._folder / "appendonlydir")

    def _answers(self) -> bool:
        assert self._process
        with redis.Redis.from_url(self.url) as client:
            try:
                return client.info("server")["process_id"] == self._process.pid
            except redis.ConnectionError:
                return False


@pytest.fixture(params=installed_binaries(), ids=lambda binary: binary.version)
def server(request):
    with tempfile.TemporaryDirectory(prefix="jb-") as folder:
        one = Server(str(request.param.path), Path(folder))
        one.start()
        yield one
        one.kill()
