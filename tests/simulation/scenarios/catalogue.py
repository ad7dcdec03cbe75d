"""All scenarios, by name."""

from tests.simulation.scenarios import answering, asynchronous, deploying, ending, fleet, owning, starting, streaming

__all__ = ["CONTENDED", "FLEETS", "SCENARIOS"]

CONTENDED = [
    *starting.SCENARIOS,
    *answering.SCENARIOS,
    *owning.SCENARIOS,
    *ending.SCENARIOS,
    *streaming.SCENARIOS,
    *asynchronous.SCENARIOS,
    *deploying.SCENARIOS,
]
"""Short ones, whose interleavings can be walked."""
FLEETS = fleet.SCENARIOS
"""Long ones, for random schedules."""
SCENARIOS = {scenario.name: scenario for scenario in (*CONTENDED, *FLEETS)}
