"""The contract of a store as a pytest suite, so that a backend of anybody's proves itself in five lines::

    class TestMyStore(PersistenceContract):
        @pytest.fixture
        def store(self) -> Persistence:
            return MyStore(...)          # empty at the start of each test

A store that several processes can open derives from `SharedPersistenceContract` and gives ``opener`` as well. Needs pytest
and hypothesis.
"""

import pytest

_FILES = ("exactness", "index", "logs", "model", "races", "records", "sizes")
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _FILES))

from persistence.testing.contract import PersistenceContract, SharedPersistenceContract  # noqa: E402 - rewritten first

__all__ = ["PersistenceContract", "SharedPersistenceContract"]
