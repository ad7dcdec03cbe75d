"""The suites: every case for every store, and the races of processes for stores that processes share."""

from persistence.testing.exactness import ExactnessCases
from persistence.testing.index import IndexCases
from persistence.testing.logs import LogCases
from persistence.testing.model import ModelCases
from persistence.testing.races import ProcessRaceCases, ThreadRaceCases
from persistence.testing.records import RecordCases
from persistence.testing.scale import ScaleCases
from persistence.testing.sizes import SizeCases
from persistence.testing.trouble import TroubleCases

__all__ = ["PersistenceContract", "PersistenceScaleContract", "PersistenceTroubleContract", "SharedPersistenceContract"]


class PersistenceContract(RecordCases, ExactnessCases, SizeCases, IndexCases, LogCases, ThreadRaceCases, ModelCases):
    """What every store keeps. Override the fixture ``store``: an empty one for each test."""


class SharedPersistenceContract(PersistenceContract, ProcessRaceCases):
    """What a store shared by processes keeps. Override ``opener`` too: a picklable callable that opens the same store."""


class PersistenceTroubleContract(TroubleCases):
    """What a store says that cannot answer. Override ``broken``: a store whose server or disk fails, whatever it is asked."""


class PersistenceScaleContract(ScaleCases):
    """What a store keeps whose index is to carry a large mesh. Override ``store``; ``few`` and ``many`` are the two sizes.

    Takes minutes where each write waits for a disk. Stores in memory and in files read every entry, and are exempt.
    """
