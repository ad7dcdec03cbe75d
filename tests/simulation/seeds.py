"""Schedules that ever broke a rule. They stay, so that what they found stays found.

A random schedule is its scenario and its seed. A walked one is its scenario and who went on wherever there was a choice, as a
failure prints it.
"""

import os

__all__ = ["SCHEDULES", "SEEDS", "asked_for"]

SEEDS: list[tuple[str, int]] = [
    ("a slow reader is taken over", 14),  # a closed stream's segment went on from failed to completed
]
SCHEDULES: list[tuple[str, str]] = [
    ("a slow reader is taken over", "b > clock > b > clock > a > a+ > a+ > a+ > a+ > a > a+ > a+"),  # the same
]


def asked_for() -> list[tuple[str, int]]:
    """The seed in ``EXPLORE_SEED`` ("scenario/17"), if there is one."""
    scenario, _, seed = os.environ.get("EXPLORE_SEED", "").rpartition("/")
    return [(scenario, int(seed))] if scenario else []
