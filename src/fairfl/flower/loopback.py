"""A real deployment on one machine: a SuperLink and SuperNodes as processes, over loopback.

For trying an app before it leaves the machine, and for tests; with keys, it is set up as a
deployment over hosts would be: TLS, and a registered key for every node.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START = 60.0
"""Seconds that a process may take until it listens."""

CONNECTION = "loopback"
"""The name by which `flwr` knows the SuperLink."""


@dataclass
class Loopback:
    """Processes in a folder that keeps their logs, certificates, keys and database.

    `secure` makes a certificate authority, a server certificate and a key per node. Leaving the
    block ends every process that it started.

    >>> from pathlib import Path
    >>> from fairfl.flower.loopback import Loopback
    >>> Loopback(Path("deployment"), secure=True).nodes
    {}
    """

    folder: Path
    secure: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    link: subprocess.Popen[bytes] | None = None
    nodes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> "Loopback":
        self.folder = self.folder.resolve()
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        if self.secure:
            certify(self.folder)
        self._write_connection()
        self.start_link()
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self.nodes.values(), *([self.link] if self.link else [])]:
            end(process)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start_link(self) -> None:
        """The SuperLink, on the database that an earlier one left."""
        own = ["--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.pem"]
        secure = [*own, "--ssl-keyfile", "server.key", "--enable-supernode-auth"]
        tls = secure if self.secure else ["--insecure"]
        database = ["--database", "state.db", "--disable-runtime-dependency-installation"]
        place = ["--host", "127.0.0.1", "--port", str(self.port)]
        self.link = self.start("flower-superlink", *place, *database, *tls)
        listening(self.port, self.link)

    def start_node(self, k: int, *options: str) -> subprocess.Popen[bytes]:
        """SuperNode k, with its key registered as site-k where there are keys."""
        if self.secure and not (self.folder / f"node-{k}").exists():
            key(self.folder / f"node-{k}")
            public = str(self.folder / f"node-{k}.pub")
            self.flwr("supernode", "register", public, CONNECTION, "--name", f"site-{k}")
        own = ["--root-certificates", "ca.crt", "--auth-supernode-private-key", f"node-{k}"]
        self.nodes[k] = self.start(
            "flower-supernode",
            *(own if self.secure else ["--insecure"]),
            *("--superlink", self.address, "--host", "127.0.0.1", "--port", str(free_port())),
            *("--node-config", f"partition-id={k}"),
            *options,
            log=f"node-{k}.log",
        )
        return self.nodes[k]

    def run(self, app: Path, **config: bool | int | float | str) -> int:
        """Submit the app with this run configuration; the number of the run."""
        told = ["--run-config", " ".join(f"{n}={json.dumps(v)}" for n, v in config.items())]
        said = self.flwr("run", str(app), CONNECTION, "--format", "json", *(told if config else []))
        return int(json.loads(said[said.index("{") :])["run-id"])

    def status(self, run: int) -> str:
        """What Flower says of the run: pending, running, finished:completed, finished:failed."""
        listed = self.flwr("ls", CONNECTION, "--format", "json")
        runs = json.loads(listed[listed.index("{") :])["runs"]
        return next(one["status"] for one in runs if int(one["run-id"]) == run)

    def finished(self, run: int, seconds: float | int) -> str:
        """The status of the run when it has finished; TimeoutError when it has not."""

        def found() -> str | None:
            status = self.status(run)
            return status if status.startswith("finished") else None

        return until(found, seconds, f"run {run} did not finish (its logs: {self.folder})", every=4)

    def log(self, run: int) -> str:
        """What the ServerApp of the run has said."""
        return self.flwr("log", str(run), CONNECTION, "--show")

    def flwr(self, *arguments: str) -> str:
        """A command of Flower's, with this deployment as its home."""
        done = subprocess.run(
            [command("flwr"), *arguments], cwd=self.folder, env=self._environment(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"flwr {' '.join(arguments)} failed: {done.stdout.strip()[-500:]}")
        return done.stdout

    def start(self, name: str, *arguments: str, log: str | None = None) -> subprocess.Popen[bytes]:
        """A process in a group of its own, so that what it starts ends with it."""
        with (self.folder / (log or f"{name}.log")).open("ab") as stream:
            return subprocess.Popen(
                [command(name), *arguments], cwd=self.folder, env=self._environment(),
                stdout=stream, stderr=stream, start_new_session=True,
            )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        own = {
            "FLWR_HOME": str(self.folder / "home"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.05",
        }
        return {**os.environ, **own, **self.environment}

    def _write_connection(self) -> None:
        certificate = self.folder / "ca.crt"
        trust = f'root-certificates = "{certificate}"' if self.secure else "insecure = true"
        (self.folder / "home" / "config.toml").write_text(
            f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
            f'address = "{self.address}"\n{trust}\n',
            encoding="utf-8",
        )


def command(name: str) -> str:
    """A program beside this Python, which is where pip puts it."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else name


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the process listens, or say that it does not."""
    ends = time.monotonic() + START
    while time.monotonic() < ends and process.poll() is None:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"{process.args!r} does not listen on port {port}; its log says why")


def end(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGKILL) -> None:
    """End a process and what it has started."""
    try:
        os.killpg(process.pid, how)
    except ProcessLookupError:
        return
    process.wait()


def certify(folder: Path) -> None:
    """A certificate authority, and a server certificate for this machine that it has signed."""
    (folder / "san.ext").write_text(
        "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n"
        "extendedKeyUsage=serverAuth\n",
        encoding="utf-8",
    )
    _openssl(
        folder, "req -x509 -newkey rsa:2048 -nodes -days 365 -keyout ca.key -out ca.crt"
        " -subj /CN=fairfl-loopback -addext basicConstraints=critical,CA:TRUE"
        " -addext keyUsage=critical,keyCertSign,cRLSign",
    )  # fmt: skip
    _openssl(folder, "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr"
                     " -subj /CN=localhost")  # fmt: skip
    _openssl(folder, "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 365"
                     " -extfile san.ext -out server.pem")  # fmt: skip


def key(file: Path) -> None:
    """A node's private key, and its public one beside it."""
    arguments = ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-C", "", "-f"]
    _called(file.parent, [*arguments, str(file)])


def _openssl(folder: Path, arguments: str) -> None:
    _called(folder, ["openssl", *arguments.split()])


def _called(folder: Path, arguments: Sequence[str]) -> None:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed: {done.stderr.strip()[-500:]}")


def until(
    found: Callable[[], Any], seconds: float | int, what: str, every: float | int = 0.5
) -> Any:
    """What `found` gives once it is true; TimeoutError when that takes longer.

    >>> from fairfl.flower.loopback import until
    >>> until(lambda: "here", 1, "nobody came")
    'here'
    """
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        value = found()
        if value:
            return value
        time.sleep(every)
    raise TimeoutError(f"{what} within {seconds:g} seconds")
