"""``python -m benchmarks``: print all figures."""

from benchmarks import branches, bus, engine, runtime, stores
from benchmarks.measuring import private_server

if __name__ == "__main__":
    with private_server() as client:
        engine.measure(client)
        branches.measure(client)
        bus.measure(client)
    stores.measure()
    runtime.measure()
