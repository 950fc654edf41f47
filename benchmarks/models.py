"""Deep models side by side with PyTorch: a q-FedAvg round of ten clients, repeats interleaved.

    pip install torch                          only for this comparison
    python benchmarks/models.py                the three models of the paper
    python benchmarks/models.py char           one of them: char, sentiment or cnn

Both sides train on two cores, each in the better of two arrangements: two experiments with a
worker each, or one experiment with two threads. Every contender runs in processes of its own, is
asked for one timed repeat at a time, and takes turns with the others. Rows, batch sizes and shapes
are the same; a client's round is F_k(w^t) over its rows and one epoch of SGD on batches of ten.
"""
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# PyTorch is installed by who wants to be compared with it.

import dataclasses
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

import fairfl
from contenders import THREAD_LIMITS
from fairfl.simulation.engine import groups_of, settings
from fairfl.simulation.worker import Advanced, advance

REPEATS = 3
CLIENTS, BATCH, RATE, Q = 10, 10, 0.1, 1.0
CORES = 2


class Case(NamedTuple):
    """Rows of a client, rounds of a repeat, and the share of PyTorch's speed that is required."""

    rows: int
    rounds: int
    required: float


CASES = {
    "char": Case(rows=40, rounds=1, required=0.85),
    "sentiment": Case(rows=40, rounds=6, required=0.85),
    "cnn": Case(rows=25, rounds=1, required=0.7),
}
CHARACTERS, LENGTH, HIDDEN = 80, 80, 256
WORDS, TWEET, DIMENSIONS, NARROW = 2000, 25, 50, 100
SIDE, WAYS = 28, 5


class Contender(NamedTuple):
    """A side, in how many processes, and in each how many experiments and threads."""

    side: str
    processes: int
    experiments: int
    threads: int


CONTENDERS = {
    "fairfl, two workers": Contender("fairfl", 1, 2, CORES),
    "fairfl, one model": Contender("fairfl", 1, 1, CORES),
    "PyTorch, two workers": Contender("torch", CORES, 1, 1),
    "PyTorch, one model": Contender("torch", 1, 1, CORES),
}


def data_of(name: str, rows: int) -> fairfl.FederatedData:
    """Made-up rows of the shapes of the paper's data, all of them for training."""
    draw = np.random.default_rng(0)

    def client() -> tuple[np.ndarray, np.ndarray]:
        if name == "char":
            return draw.integers(CHARACTERS, size=(rows, LENGTH)), draw.integers(
                CHARACTERS, size=rows
            )
        if name == "sentiment":
            return draw.integers(WORDS, size=(rows, TWEET)), draw.integers(2, size=rows)
        image = draw.random(size=(rows, SIDE, SIDE), dtype=np.float32)
        return image, np.arange(rows) % WAYS

    clients: dict[Any, Any] = {k: client() for k in range(CLIENTS)}
    if name == "char":
        # Every character is somewhere a label, so that the model has a class for each.
        labels = np.arange(CLIENTS * rows).reshape(CLIENTS, rows) % CHARACTERS
        clients = {k: (x, labels[k]) for k, (x, _) in clients.items()}
    data = fairfl.from_arrays(clients, split=None)
    vectors = draw.normal(size=(WORDS, DIMENSIONS)).astype(np.float32)
    return dataclasses.replace(data, embeddings=vectors) if name == "sentiment" else data


MODELS = {
    "char": fairfl.models.char_lstm,
    "sentiment": fairfl.models.sentiment_lstm,
    "cnn": fairfl.models.omniglot_cnn,
}


def fairfl_repeat(name: str, rounds: int, experiments: int) -> Callable[[], Any]:
    """Rounds of training and nothing else: the engine's own unit of work, on a thread each."""
    data = data_of(name, CASES[name].rows)
    model = MODELS[name](data)
    algorithm = fairfl.q_fedavg(q=Q, learning_rate=RATE, batch_size=BATCH)
    seeds = range(experiments)
    chosen = settings(
        data, model, algorithm, rounds, CLIENTS, seeds, None, rounds, None, None, False
    )
    groups = groups_of(data, model, algorithm, chosen)
    pool = ThreadPoolExecutor(experiments)
    begun = [advance(group.task, None, 0, 1, False, data) for group in groups]
    carries = [answer.carry for answer in begun if isinstance(answer, Advanced)]

    def run() -> None:
        for done in [
            pool.submit(advance, group.task, carry, 0, rounds, False, data)
            for group, carry in zip(groups, carries, strict=True)
        ]:
            done.result()

    return run


def torch_repeat(name: str, rounds: int, threads: int) -> Callable[[], Any]:
    """The same rounds in PyTorch: its own layers, batches as views, one pass for F_k(w^t)."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(threads)
    data = data_of(name, CASES[name].rows)
    x, y = torch.from_numpy(data.x.astype(np.float32 if name == "cnn" else np.int64)), data.y
    y = torch.from_numpy(y.astype(np.int64))
    model = torch_model(
        name, None if data.embeddings is None else torch.from_numpy(data.embeddings)
    )
    w = [p.detach().clone() for p in model.parameters()]
    bounds = list(zip(data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True))
    draw = np.random.default_rng(0)

    def run() -> None:
        for _ in range(rounds):
            losses, updates = [], []
            for first, last in bounds:
                rows = torch.from_numpy(first + draw.permutation(last - first))
                F_k, D_k = torch_client(model, w, x[rows], y[rows])
                losses.append(F_k)
                updates.append(D_k)
            torch_server(w, losses, updates)

    return run


def torch_client(model: Any, w: list[Any], x: Any, y: Any) -> tuple[float, list[Any]]:
    """F_k(w) and D_k = w - w_k after one epoch of SGD."""
    import torch  # noqa: PLC0415
    from torch.nn.functional import cross_entropy  # noqa: PLC0415

    own = list(model.parameters())
    with torch.no_grad():
        torch._foreach_copy_(own, w)
        F_k = float(cross_entropy(model(x), y))
    for batch, labels in zip(x.split(BATCH), y.split(BATCH), strict=True):
        gradient = torch.autograd.grad(cross_entropy(model(batch), labels), own)
        with torch.no_grad():
            torch._foreach_add_(own, gradient, alpha=-RATE)
    with torch.no_grad():
        return F_k, list(torch._foreach_sub(w, own))


def torch_server(w: list[Any], losses: list[float], updates: list[list[Any]]) -> None:
    """w - sum_k a_k D_k with a_k = F_k^q / sum_j F_j^q (1 + q L |D_j|^2 / F_j), in place."""
    import torch  # noqa: PLC0415

    squares = [sum(float(leaf.square().sum()) for leaf in D_k) for D_k in updates]
    F = np.asarray(losses)
    power = F**Q
    a = power / (power * (1 + Q / RATE * np.asarray(squares) / F)).sum()
    for a_k, D_k in zip(a.tolist(), updates, strict=True):
        torch._foreach_add_(w, D_k, alpha=-a_k)


def torch_model(name: str, vectors: Any) -> Any:
    """The paper's layers as PyTorch has them."""
    from torch import nn  # noqa: PLC0415

    class Text(nn.Module):
        def __init__(self, embedding: Any, features: int, hidden: int, classes: int) -> None:
            super().__init__()
            self.embedding = embedding
            self.lstm = nn.LSTM(features, hidden, num_layers=2)
            self.dense = nn.Linear(hidden, classes)

        def forward(self, x: Any) -> Any:
            return self.dense(self.lstm(self.embedding(x.T))[0][-1])

    if name == "char":
        return Text(nn.Embedding(CHARACTERS, 8), 8, HIDDEN, CHARACTERS)
    if name == "sentiment":
        # A frozen embedding is no parameter here: only what is trained is listed.
        return Text(lambda x: nn.functional.embedding(x, vectors), DIMENSIONS, NARROW, 2)
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE)),
        *(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * 7 * 7, 2048), nn.ReLU(), nn.Linear(2048, WAYS)),
    )


def serve(contender: str, name: str) -> None:
    """The contender's process: one repeat for every line that is read."""
    chosen, rounds = CONTENDERS[contender], CASES[name].rounds
    if chosen.side == "torch":
        run = torch_repeat(name, rounds, chosen.threads)
    else:
        run = fairfl_repeat(name, rounds, chosen.experiments)
    run()
    print("ready", flush=True)
    for _ in sys.stdin:
        run()
        print("done", flush=True)


class Team:
    """The processes of a contender, which begin a repeat together."""

    def __init__(self, contender: str, name: str) -> None:
        chosen = CONTENDERS[contender]
        threads = str(chosen.threads)
        self.processes = [
            subprocess.Popen(
                [sys.executable, __file__, "serve", contender, name],
                env=os.environ | dict.fromkeys(THREAD_LIMITS, threads),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(chosen.processes)
        ]
        self._wait("ready")

    def seconds(self) -> float:
        """How long a repeat takes until the last process is done."""
        began = time.perf_counter()
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        self._wait("done")
        return time.perf_counter() - began

    def stop(self) -> None:
        """End the processes."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()

    def _wait(self, word: str) -> None:
        for process in self.processes:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == word


def measure(name: str, repeats: int) -> dict[str, float]:
    """Median milliseconds of an experiment's round, for every contender."""
    teams = {contender: Team(contender, name) for contender in CONTENDERS}
    taken: dict[str, list[float]] = {contender: [] for contender in CONTENDERS}
    for _ in range(repeats):
        for contender, team in teams.items():
            taken[contender].append(team.seconds())
    for team in teams.values():
        team.stop()
    rounds = CASES[name].rounds
    return {
        contender: 1e3 * statistics.median(seconds) / rounds / _experiments(contender)
        for contender, seconds in taken.items()
    }


def _experiments(contender: str) -> int:
    return CONTENDERS[contender].processes * CONTENDERS[contender].experiments


def speed(names: list[str], repeats: int = REPEATS) -> None:
    """Print the table: milliseconds a round, and fairfl's best against PyTorch's best."""
    for name in names:
        case, found = CASES[name], measure(name, repeats)
        print(f"\n{name}: {CLIENTS} clients of {case.rows} rows, batches of {BATCH}")
        for contender, milliseconds in found.items():
            print(f"{contender:24} {milliseconds:8.1f} ms a round of an experiment")
        ours, theirs = (
            min(ms for contender, ms in found.items() if contender.startswith(side))
            for side in ("fairfl", "PyTorch")
        )
        print(f"fairfl at {theirs / ours:.2f} x PyTorch; required {case.required}", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", contender, name]:
            serve(contender, name)
        case names:
            speed(names or list(CASES))
