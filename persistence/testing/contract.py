"""The suites: every case for every store, and the races of processes for stores that processes share."""

from persistence.testing.exactness import ExactnessCases
from persistence.testing.index import IndexCases
from persistence.testing.logs import LogCases
from persistence.testing.model import ModelCases
from persistence.testing.races import ProcessRaceCases, ThreadRaceCases
from persistence.testing.records import RecordCases
from persistence.testing.sizes import SizeCases

__all__ = ["PersistenceContract", "SharedPersistenceContract"]


class PersistenceContract(RecordCases, ExactnessCases, SizeCases, IndexCases, LogCases, ThreadRaceCases, ModelCases):
    """What every store keeps. Override the fixture ``store``: an empty one for each test."""


class SharedPersistenceContract(PersistenceContract, ProcessRaceCases):
    """What a store shared by processes keeps. Override ``opener`` too: a picklable callable that opens the same store."""
