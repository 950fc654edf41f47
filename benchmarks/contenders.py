"""What the engine is measured against: q-FedAvg in plain NumPy, in tuned NumPy and in PyTorch.

All train one client after another, as most people would write it; a client's rows are gathered once
and batches are views of them. The plain loop reads like the formulas. The tuned one and PyTorch are
as fast as the style allows, with buffers reused and a column of ones in x for the bias. They share
only the server's arithmetic.

Run the file itself to see that they agree, and how long a step of each takes here.
"""
# pyright: reportMissingImports=false
# PyTorch is installed by who wants to be compared with it.

import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int, Int32

if TYPE_CHECKING:
    import torch

Weights = dict[str, np.ndarray]
Contender = Callable[["Workload"], Weights]

# What the usual BLAS libraries read when they are loaded: OpenBLAS, MKL, any with OpenMP, Apple's.
THREAD_LIMITS = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


class Workload(NamedTuple):
    """The rounds of one experiment, every random choice already made.

    `cohorts[t][k]` are the training rows of the k-th client of round t, in the order in which its
    single local epoch visits them; every client of a cohort counts alike (u_k = 1). The softmax
    model's F_k is a mean over rows; the support vector machine's is the paper's sum of hinge
    losses plus 0.5 |w|^2, once per batch and once per F_k, with class 0 as -1 and class 1 as +1.
    Neither penalises the bias.
    """

    x: Float32[np.ndarray, "rows features"]
    y: Int32[np.ndarray, " rows"]
    cohorts: Sequence[Sequence[Int[np.ndarray, " rows_of_client"]]]
    batch_size: int
    learning_rate: float
    q: float
    kind: Literal["softmax", "svm"]
    classes: int


def numpy_rounds(workload: Workload) -> Weights:
    """q-FedAvg (Algorithm 2) from zero weights: a tuned NumPy loop per client.

    Set `THREAD_LIMITS` to 1 in the environment before Python starts: products this small gain
    nothing from a second thread, and where another program has the second core they wait for it
    (8 microseconds per step became 50).

    >>> x, y = np.full((1, 1), 2, np.float32), np.zeros(1, np.int32)
    >>> answer = numpy_rounds(Workload(x, y, [[np.array([0])]], 10, 0.1, 0.0, "softmax", 2))
    >>> [round(float(value), 3) for value in [*answer["weights"][0], *answer["bias"]]]
    [0.1, -0.1, 0.05, -0.05]
    """
    x, y, w = _with_ones(workload.x), _targets(workload), _zeros(workload)
    client = _numpy_softmax if workload.kind == "softmax" else _numpy_svm
    for cohort in workload.cohorts:
        losses, updates = [], []
        for rows in cohort:
            F_k, w_k = client(w, x.take(rows, axis=0), y.take(rows), workload)
            losses.append(F_k)
            updates.append(w - w_k)
        a = _coefficients(losses, [np.vdot(D_k, D_k) for D_k in updates], workload)
        w -= np.tensordot(a, np.stack(updates), axes=1)
    return _named(w)


def plain_numpy_rounds(workload: Workload) -> Weights:
    """The same loop as a textbook writes it: one line a formula, no buffers, a bias of its own.

    >>> x, y = np.full((1, 1), 2, np.float32), np.zeros(1, np.int32)
    >>> answer = plain_numpy_rounds(Workload(x, y, [[np.array([0])]], 10, 0.1, 0.0, "softmax", 2))
    >>> [round(float(value), 3) for value in [*answer["weights"][0], *answer["bias"]]]
    [0.1, -0.1, 0.05, -0.05]
    """
    x, y, w = workload.x, _targets(workload), _named(_zeros(workload))
    client = _plain_softmax if workload.kind == "softmax" else _plain_svm
    for cohort in workload.cohorts:
        losses, updates = [], []
        for rows in cohort:
            F_k, w_k = client(w, x[rows], y[rows], workload)
            losses.append(F_k)
            updates.append({name: w[name] - w_k[name] for name in w})
        squares = [float(sum(np.sum(D**2) for D in update.values())) for update in updates]
        a = _coefficients(losses, squares, workload)
        w = {
            name: w[name] - sum(a_k * D_k[name] for a_k, D_k in zip(a, updates, strict=True))
            for name in w
        }
    return w


def torch_rounds(workload: Workload, threads: int = 1) -> Weights:
    """q-FedAvg (Algorithm 2) from zero weights: a PyTorch autograd loop per client.

    The update is written out because a step of `torch.optim.SGD` took 1.6 to 1.8 times as long.

    >>> x, y = np.full((1, 1), 2, np.float32), np.zeros(1, np.int32)
    >>> answer = torch_rounds(Workload(x, y, [[np.array([0])]], 10, 0.1, 0.0, "softmax", 2))
    >>> [round(float(value), 3) for value in [*answer["weights"][0], *answer["bias"]]]
    [0.1, -0.1, 0.05, -0.05]
    """
    import torch  # noqa: PLC0415  (optional: only this contender needs it)

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return _named(_torch_loop(workload).numpy())
    finally:
        torch.set_num_threads(before)


def torch_available() -> bool:
    """Whether PyTorch, an optional dependency of the benchmarks, is installed.

    >>> isinstance(torch_available(), bool)
    True
    """
    return importlib.util.find_spec("torch") is not None


def flops(workload: Workload) -> int:
    """Floating point operations of all matrix products in the workload's rounds.

    F_k(w^t), the forward and the backward product of the epoch each take
    2 rows features outputs: 6 rows features outputs per client and round.

    >>> x, y = np.ones((4, 3), np.float32), np.zeros(4, np.int32)
    >>> flops(Workload(x, y, [[np.arange(4)]], 2, 0.1, 1.0, "softmax", 2))
    144
    """
    rows = sum(len(rows) for cohort in workload.cohorts for rows in cohort)
    return 6 * rows * workload.x.shape[1] * _outputs(workload)


def steps(workload: Workload) -> int:
    """Mini-batch steps in the workload's rounds; the last batch of a client may be smaller.

    >>> x, y = np.ones((5, 3), np.float32), np.zeros(5, np.int32)
    >>> steps(Workload(x, y, [[np.arange(5)]], 2, 0.1, 1.0, "softmax", 2))
    3
    """
    sizes = (len(rows) for cohort in workload.cohorts for rows in cohort)
    return sum(-(-size // workload.batch_size) for size in sizes)


class Roofline(NamedTuple):
    """Measured float32 GFLOP/s of large matrix products."""

    one_core: float
    all_cores: float


def roofline(seconds: float = 1.0) -> Roofline:
    """The best float32 GFLOP/s of NumPy's matrix product here, `seconds` for each of the two.

    A BLAS library reads its number of threads once, when it is loaded, so each is measured in a
    process of its own.

    >>> roofline(seconds=0.1).one_core > 0
    True
    """
    threads = 1, os.cpu_count() or 1
    return Roofline(*(float(_apart(count, "gflops", str(seconds))) for count in threads))


def gflops(seconds: float, size: int = 2048) -> float:
    """The best float32 GFLOP/s of repeated size x size products with this process's threads.

    >>> gflops(seconds=0.0, size=64) > 0
    True
    """
    a = np.ones((size, size), np.float32)
    out = a @ a  # the first product starts the threads and touches the memory
    best, end = np.inf, time.perf_counter() + seconds
    while best == np.inf or time.perf_counter() < end:
        start = time.perf_counter()
        np.matmul(a, a, out=out)
        best = min(best, time.perf_counter() - start)
    return float(2 * size**3 / best / 1e9)


def check() -> None:
    """Shows that the contenders agree to 1e-4, then how long a step of each takes here."""
    contenders: dict[str, Contender] = {"numpy": plain_numpy_rounds, "tuned": numpy_rounds}
    if torch_available():
        contenders["torch"] = torch_rounds
    else:
        print("torch is not installed: only NumPy runs, and there is nothing to agree with")
    for name, workload in {"synthetic": synthetic_shape(), "vehicle": vehicle_shape()}.items():
        print(f"{name}: {steps(workload)} steps in {len(workload.cohorts)} rounds")
        _check_agreement([run(workload) for run in contenders.values()])
        for contender, seconds in _interleaved(contenders, workload).items():
            _print_speed(contender, seconds, workload)
    print("GFLOP/s of one core {:.0f}, of all cores {:.0f}".format(*roofline()))


def synthetic_shape(rounds: int = 3) -> Workload:
    """Ten clients of heavy-tailed size, 60 features, 10 classes, batches of 10.

    >>> len(synthetic_shape(rounds=2).cohorts)
    2
    """
    sizes = np.random.default_rng(0).lognormal(6, 1, 10).astype(int) + 50
    return _made_up("softmax", sizes, rounds, features=60, classes=10, batch_size=10)


def vehicle_shape(rounds: int = 3) -> Workload:
    """Ten clients of about 1,500 rows, 100 features, a support vector machine, batches of 64.

    >>> vehicle_shape(rounds=1).kind
    'svm'
    """
    sizes = np.random.default_rng(0).integers(1000, 2000, 10)
    return _made_up("svm", sizes, rounds, features=100, classes=2, batch_size=64)


def _outputs(workload: Workload) -> int:
    return workload.classes if workload.kind == "softmax" else 1


def _with_ones(x: Float32[np.ndarray, "rows features"]) -> np.ndarray:
    return np.concatenate([x, np.ones((len(x), 1), np.float32)], axis=1)


def _targets(workload: Workload) -> np.ndarray:
    """Class numbers for the softmax model, signs for the support vector machine."""
    return workload.y if workload.kind == "softmax" else 2 * workload.y.astype(np.float32) - 1


def _zeros(workload: Workload) -> np.ndarray:
    inputs = workload.x.shape[1] + 1
    softmax = workload.kind == "softmax"
    return np.zeros((inputs, workload.classes) if softmax else inputs, np.float32)


def _decay(workload: Workload) -> np.ndarray:
    """A step on the penalty multiplies every weight by 1 - learning rate, the bias by 1."""
    decay = np.full(workload.x.shape[1] + 1, 1 - workload.learning_rate, np.float32)
    decay[-1] = 1
    return decay


def _named(w: np.ndarray) -> Weights:
    return {"weights": w[:-1], "bias": w[-1, ...]}


def _coefficients(
    losses: list[float], squared_norms: list[float], workload: Workload
) -> Float[np.ndarray, " clients"]:
    """a_k such that w - sum_k a_k (w - w_k) is the update of Algorithm 2:

    Delta w_k = L (w - w_k), Delta_k = F_k^q Delta w_k, h_k = q F_k^(q-1) |Delta w_k|^2 + L F_k^q
    and w - sum_k Delta_k / sum_k h_k. Dividing every F_k^q by the largest changes no quotient and
    cannot overflow; the 1e-10 that keeps the logarithm finite is the one in the paper's own code.
    """
    L, q = 1 / workload.learning_rate, workload.q
    F = np.asarray(losses, np.float64) + 1e-10
    F_q = np.exp(q * (np.log(F) - np.log(F.max())))
    h = q * F_q / F * L**2 * np.asarray(squared_norms, np.float64) + L * F_q
    return (L * F_q / h.sum()).astype(np.float32)


def _numpy_softmax(
    w: np.ndarray, x: np.ndarray, y: np.ndarray, workload: Workload
) -> tuple[float, np.ndarray]:
    """F_k(w), the mean cross entropy over all rows, and the weights after one epoch of SGD."""
    w_k, size, learning_rate = w.copy(), workload.batch_size, float(workload.learning_rate)
    one_hot = np.eye(workload.classes, dtype=np.float32).take(y, axis=0)
    F_k = _mean_cross_entropy(w, x, y)
    for start in range(0, len(x), size):
        batch = x[start : start + size]
        p = batch.dot(w_k)
        p -= np.maximum.reduce(p, axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= np.add.reduce(p, axis=1, keepdims=True)
        p -= one_hot[start : start + size]
        p *= learning_rate / len(batch)
        w_k -= batch.T.dot(p)
    return F_k, w_k


def _mean_cross_entropy(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    z = w.T.dot(x.T)  # classes first: over many rows NumPy reduces this axis several times faster
    z -= z.max(axis=0)
    chosen = z[y, np.arange(len(y))].sum()
    np.exp(z, out=z)
    return float(np.log(z.sum(axis=0)).sum() - chosen) / len(y)


def _numpy_svm(
    w: np.ndarray, x: np.ndarray, sign: np.ndarray, workload: Workload
) -> tuple[float, np.ndarray]:
    """F_k(w), the summed hinge losses and the penalty, and the weights after one epoch of SGD."""
    w_k, size, decay = w.copy(), workload.batch_size, _decay(workload)
    F_k = float(np.maximum(0, 1 - sign * x.dot(w)).sum() + 0.5 * np.vdot(w[:-1], w[:-1]))
    push = float(workload.learning_rate) * sign
    for start in range(0, len(x), size):
        stop = start + size
        batch = x[start:stop]
        margin = batch.dot(w_k)
        margin *= sign[start:stop]
        inside = (margin < 1) * push[start:stop]
        w_k *= decay
        w_k += inside.dot(batch)
    return F_k, w_k


def _plain_softmax(
    w: Weights, x: np.ndarray, y: np.ndarray, workload: Workload
) -> tuple[float, Weights]:
    weights, bias = w["weights"], w["bias"]
    p = _probabilities(x @ weights + bias)
    F_k = -float(np.mean(np.log(p[np.arange(len(y)), y])))
    for start in range(0, len(x), workload.batch_size):
        batch, labels = (part[start : start + workload.batch_size] for part in (x, y))
        error = _probabilities(batch @ weights + bias)
        error[np.arange(len(labels)), labels] -= 1
        error /= np.float32(len(labels))
        weights = weights - np.float32(workload.learning_rate) * (batch.T @ error)
        bias = bias - np.float32(workload.learning_rate) * error.sum(axis=0)
    return F_k, {"weights": weights, "bias": bias}


def _probabilities(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _plain_svm(
    w: Weights, x: np.ndarray, sign: np.ndarray, workload: Workload
) -> tuple[float, Weights]:
    weights, bias = w["weights"], w["bias"]
    rate = np.float32(workload.learning_rate)
    shortfall = np.maximum(0, 1 - sign * (x @ weights + bias))
    F_k = float(shortfall.sum() + 0.5 * np.sum(weights**2))
    for start in range(0, len(x), workload.batch_size):
        batch, signs = (part[start : start + workload.batch_size] for part in (x, sign))
        active = np.where(signs * (batch @ weights + bias) < 1, signs, 0)
        weights = weights - rate * (weights - batch.T @ active)
        bias = bias + rate * active.sum()
    return F_k, {"weights": weights, "bias": bias}


def _torch_loop(workload: Workload) -> "torch.Tensor":
    import torch  # noqa: PLC0415

    x, w = torch.from_numpy(_with_ones(workload.x)), torch.from_numpy(_zeros(workload))
    y = torch.tensor(_targets(workload))
    y = y.long() if workload.kind == "softmax" else y
    client = _torch_softmax if workload.kind == "softmax" else _torch_svm
    for cohort in workload.cohorts:
        losses, updates = [], []
        for rows in map(torch.tensor, cohort):
            F_k, w_k = client(w, x.index_select(0, rows), y.index_select(0, rows), workload)
            losses.append(F_k)
            updates.append(w - w_k)
        squared_norms = [float(D_k.square().sum()) for D_k in updates]
        a = torch.from_numpy(_coefficients(losses, squared_norms, workload))
        w -= torch.tensordot(a, torch.stack(updates), dims=1)
    return w


def _torch_softmax(
    w: "torch.Tensor", x: "torch.Tensor", y: "torch.Tensor", workload: Workload
) -> tuple[float, "torch.Tensor"]:
    import torch  # noqa: PLC0415
    from torch.nn.functional import cross_entropy  # noqa: PLC0415

    w_k, size = w.clone().requires_grad_(), workload.batch_size
    learning_rate = float(workload.learning_rate)
    F_k = float(cross_entropy(x @ w, y))
    for batch, labels in zip(x.split(size), y.split(size), strict=True):
        cross_entropy(batch @ w_k, labels).backward()
        with torch.no_grad():
            w_k.sub_(w_k.grad, alpha=learning_rate)  # pyright: ignore[reportArgumentType]
        w_k.grad = None
    return F_k, w_k.detach()


def _torch_svm(
    w: "torch.Tensor", x: "torch.Tensor", sign: "torch.Tensor", workload: Workload
) -> tuple[float, "torch.Tensor"]:
    import torch  # noqa: PLC0415
    from torch.nn.functional import relu  # noqa: PLC0415

    w_k, size = w.clone().requires_grad_(), workload.batch_size
    learning_rate = float(workload.learning_rate)
    decay = torch.from_numpy(_decay(workload))
    F_k = float(relu(1 - sign * (x @ w)).sum() + 0.5 * w[:-1].square().sum())
    for batch, signs in zip(x.split(size), sign.split(size), strict=True):
        relu(1 - signs * (batch @ w_k)).sum().backward()
        with torch.no_grad():
            # Weight decay, as in torch.optim: 1.5 times as fast as the penalty in autograd.
            w_k.mul_(decay)
            w_k.sub_(w_k.grad, alpha=learning_rate)  # pyright: ignore[reportArgumentType]
        w_k.grad = None
    return F_k, w_k.detach()


def _apart(threads: int, *arguments: str) -> str:
    """What this file prints when it is run with these arguments and that many BLAS threads."""
    environment = os.environ | dict.fromkeys(THREAD_LIMITS, str(threads))
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def _made_up(
    kind: Literal["softmax", "svm"],
    sizes: Int[np.ndarray, " clients"],
    rounds: int,
    *,
    features: int,
    classes: int,
    batch_size: int,
) -> Workload:
    """Gaussian rows with the labels of a random linear model; everyone takes part, reshuffled."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=(sizes.sum(), features)).astype(np.float32)
    y = (x @ draw.normal(size=(features, classes))).argmax(axis=1).astype(np.int32)
    clients = np.split(np.arange(len(x)), np.cumsum(sizes)[:-1])
    cohorts = [[draw.permutation(rows) for rows in clients] for _ in range(rounds)]
    return Workload(x, y, cohorts, batch_size, 0.01, 1.0, kind, classes)


def _check_agreement(answers: list[Weights]) -> None:
    for answer in answers[1:]:
        for name, expected in answers[0].items():
            np.testing.assert_allclose(answer[name], expected, rtol=0, atol=1e-4)


def _interleaved(
    contenders: dict[str, Contender], workload: Workload, repeats: int = 7
) -> dict[str, float]:
    """Median seconds of each contender; they take turns, so that a busy moment hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, run in contenders.items():
            start = time.perf_counter()
            run(workload)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def _print_speed(contender: str, seconds: float, workload: Workload) -> None:
    print(
        f"  {contender}: {seconds / steps(workload) * 1e6:.1f} microseconds per step, all told; "
        f"{len(workload.cohorts) / seconds:.1f} rounds/s; {flops(workload) / seconds / 1e9:.2f} "
        "GFLOP/s"
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["gflops", seconds]:
            print(gflops(float(seconds)))
        case ["check"]:
            check()
        case _:
            print(_apart(1, "check"), end="")
