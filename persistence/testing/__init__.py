"""The contract of a store as a pytest suite, so that a backend of anybody's proves itself in five lines::

    class TestMyStore(PersistenceContract):
        @pytest.fixture
        def store(self) -> Persistence:
            return MyStore(...)          # empty at the start of each test

A store that several processes can open derives from `SharedPersistenceContract` and gives ``opener`` as well. What a store
says when it cannot answer is a suite of its own, `PersistenceTroubleContract`, and so is the time of its index among 100,000
partitions, `PersistenceScaleContract`. Needs pytest and hypothesis.
"""

import pytest

_FILES = ("exactness", "index", "logs", "model", "races", "records", "scale", "sizes", "trouble")
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _FILES))

from persistence.testing.contract import (  # noqa: E402 - rewritten first
    PersistenceContract,
    PersistenceScaleContract,
    PersistenceTroubleContract,
    SharedPersistenceContract,
)

__all__ = ["PersistenceContract", "PersistenceScaleContract", "PersistenceTroubleContract", "SharedPersistenceContract"]
