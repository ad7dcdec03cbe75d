"""Brokers that go, freeze, move or are of another kind: workers take messages again within seconds, and no run is lost.

There is no sweeper in these tests: a run that ends was hinted at by a message.
"""

import secrets
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from workflow import WorkflowStatus

pytestmark = pytest.mark.processes

POOLS = ["prefork", "threads", "solo"]
SECONDS = 12
"""Within these a worker takes messages again."""


def takes_messages(work: Any, until: Any, worker: Any, patience: float = SECONDS) -> float:
    """Start a run every second until one is executed. Returns the seconds that it took."""
    began = time.monotonic()
    handles: list[Any] = []

    def executes() -> bool:
        if not handles or time.monotonic() - began > len(handles):
            handles.append(work.start(f"again-{secrets.token_hex(4)}"))
        return any(handle.snapshot().status is WorkflowStatus.COMPLETED for handle in handles)

    until(executes, worker.output, patience)
    return time.monotonic() - began


def test_a_broker_that_restarts_is_found_again_by_idle_and_busy_workers(make_work: Any, make_server: Any, until: Any) -> None:
    brokers = {pool: make_server() for pool in POOLS}
    works = {pool: make_work(broker.url) for pool, broker in brokers.items()}
    workers = {pool: work.spawn_worker(pool) for pool, work in works.items()}
    for pool, work in works.items():
        work.ready(workers[pool])

    for broker in brokers.values():
        broker.kill()
        broker.start()
    for pool, work in works.items():
        print(f"{pool}, idle: {takes_messages(work, until, workers[pool]):.1f} s")

    works[POOLS[0]].hold()
    held = {pool: work.start(f"busy-{pool}") for pool, work in works.items()}
    for pool, handle in held.items():
        until(lambda handle=handle: handle.step() == "wait", workers[pool].output)
    for broker in brokers.values():
        broker.kill()
        broker.start()
    works[POOLS[0]].release()
    for pool, work in works.items():
        assert held[pool].wait(SECONDS).result == "done"
        print(f"{pool}, busy: {takes_messages(work, until, workers[pool]):.1f} s")
        assert workers[pool].popen.poll() is None


def test_connections_that_freeze_are_given_up(make_work: Any, make_server: Any, make_proxy: Any, until: Any) -> None:
    brokers = {pool: make_server() for pool in POOLS}
    proxies = {pool: make_proxy(broker.port) for pool, broker in brokers.items()}
    works = {pool: make_work(broker.url) for pool, broker in brokers.items()}
    workers = {
        pool: work.spawn_worker(pool, JARVIS_BROKER_URL=f"redis://127.0.0.1:{proxies[pool].port}/0")
        for pool, work in works.items()
    }
    for pool, work in works.items():
        work.ready(workers[pool])

    for proxy in proxies.values():
        proxy.freeze()

    for pool, work in works.items():
        print(f"{pool}: {takes_messages(work, until, workers[pool], 20):.1f} s")
        assert workers[pool].popen.poll() is None


@pytest.fixture
def sentinels(make_server: Any, until: Any) -> Any:
    """A primary, its replica and a Sentinel that moves the name within a second."""
    primary = make_server()
    replica = make_server("--replicaof", "127.0.0.1", str(primary.port))
    sentinel = make_server.sentinel(
        f"sentinel monitor mesh 127.0.0.1 {primary.port} 1\n"
        "sentinel down-after-milliseconds mesh 500\nsentinel failover-timeout mesh 3000\n"
    )
    until(lambda: sentinel.client().sentinel_master("mesh")["num-slaves"] == 1, "the replica is known")
    until(lambda: replica.client().info("replication")["master_link_status"] == "up", "the replica follows")
    return primary, sentinel


def test_a_failover_by_sentinel_is_followed(make_work: Any, sentinels: Any, until: Any) -> None:
    primary, sentinel = sentinels
    work = make_work(f"redis+sentinel://127.0.0.1:{sentinel.port}/mesh/0")
    worker = work.worker("threads")
    work.done("before")

    primary.kill()
    took = takes_messages(work, until, worker, 20)

    print(f"failover: {took:.1f} s")
    assert sentinel.client().sentinel_master("mesh")["port"] != primary.port
    assert worker.popen.poll() is None


def test_a_broker_behind_tls(make_work: Any, make_server: Any, certificates: Path) -> None:
    cert, key = str(certificates / "cert.pem"), str(certificates / "key.pem")
    files = ("--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
    port = make_server.free_port()
    make_server("--port", "0", "--tls-port", str(port), *files, port=port)
    work = make_work(f"rediss://127.0.0.1:{port}/1?ssl_ca_certs={cert}&ssl_cert_reqs=required")

    work.worker("threads")

    work.done("behind-tls")


@pytest.mark.parametrize("pool", POOLS)
def test_rabbitmq_is_a_broker_too(make_work: Any, rabbitmq_url: str, make_proxy: Any, until: Any, pool: str) -> None:
    work = make_work(rabbitmq_url)
    worker = work.worker(pool)
    work.done("through-rabbitmq")

    assert "only supported for Redis" not in worker.output()
    assert worker.popen.poll() is None


def test_a_rabbitmq_connection_that_is_cut_is_made_again(
    make_work: Any, rabbitmq_url: str, make_proxy: Any, until: Any
) -> None:
    parts = urlsplit(rabbitmq_url)
    proxy = make_proxy(parts.port or 5672)
    work = make_work(rabbitmq_url)
    through = parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{proxy.port}").geturl()
    worker = work.worker("prefork", JARVIS_BROKER_URL=through)
    work.done("before")

    proxy.cut()

    print(f"rabbitmq: {takes_messages(work, until, worker):.1f} s")


@pytest.mark.parametrize("kind", ["refusing", "frozen"])
@pytest.mark.parametrize("broker", ["redis", "rabbitmq"])
def test_publishing_gives_up_in_time_and_names_the_broker(
    make_work: Any, make_server: Any, make_proxy: Any, caplog: Any, request: Any, kind: str, broker: str, capsys: Any
) -> None:
    port = make_server().port
    proxy = make_proxy(port)
    proxy.freeze_all()
    at = proxy.port if kind == "frozen" else 1
    url = f"redis://:hunter2@127.0.0.1:{at}/0" if broker == "redis" else f"amqp://mara:hunter2@127.0.0.1:{at}//"
    work = make_work(url)

    began = time.monotonic()
    handle = work.start("unhinted")
    took = time.monotonic() - began

    said = capsys.readouterr().out
    print(f"{broker} {kind}: {took:.1f} s")
    assert handle.created
    assert took < 15
    assert f"127.0.0.1:{at}" in said
    assert "hunter2" not in said
