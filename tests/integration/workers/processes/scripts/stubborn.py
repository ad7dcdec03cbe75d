"""A process that does not end when asked: `stubborn.py <file>` writes there which signals it was sent."""

import signal
import sys
import time
from pathlib import Path


def note(number: int, _frame: object) -> None:
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{signal.Signals(number).name}\n")


for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, note)
Path(sys.argv[1]).touch()
while True:
    time.sleep(600)
