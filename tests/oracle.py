"""The paper's algorithms as printed, in plain float64 NumPy: what the engine has to agree with.

It is slow and literal on purpose and shares no code with fairfl. Models are flat vectors: the
weights, row by row, then the bias. Who takes part, and in which order a client's rows come, are
inputs: see `Visit`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

Vector = np.ndarray
Matrix = np.ndarray


class Objective(NamedTuple):
    """F(w; x, y) of some rows, and its gradient in w."""

    value: Callable[[Vector, Matrix, Vector], float]
    gradient: Callable[[Vector, Matrix, Vector], Vector]


class Visit(NamedTuple):
    """One client in one round: its rows, their order in each local epoch, and its weight u_k."""

    rows: Vector
    shuffles: Sequence[Vector]
    weight: float


class Problem(NamedTuple):
    """What is minimised, over which rows, by which cohorts: one list of visits for each round."""

    objective: Objective
    x: Matrix
    y: Vector
    rounds: Sequence[Sequence[Visit]]


class Meta(NamedTuple):
    """One task in one round of q-MAML: mini-batches of support rows, query rows, weight u_k."""

    support: Sequence[Vector]
    query: Vector
    weight: float


# --- losses ---------------------------------------------------------------------------------------


def softmax_cross_entropy(features: int, classes: int) -> Objective:
    """F = mean over rows of log sum_c exp(z_c) - z_y, where z = W^T x + b."""

    def scores(w, x):
        weights, bias = w[: features * classes].reshape(features, classes), w[features * classes :]
        return x @ weights + bias

    def value(w, x, y):
        z = scores(w, x)
        top = z.max(axis=1)
        total = top + np.log(np.exp(z - top[:, None]).sum(axis=1))
        return float(np.mean(total - z[np.arange(len(y)), y]))

    def gradient(w, x, y):
        z = scores(w, x)
        e = np.exp(z - z.max(axis=1)[:, None])
        slope = e / e.sum(axis=1)[:, None]
        slope[np.arange(len(y)), y] -= 1
        slope /= len(y)
        return np.concatenate([(x.T @ slope).ravel(), slope.sum(axis=0)])

    return Objective(value, gradient)


def hinge(reduction: str) -> Objective:
    """F = sum or mean over rows of max(0, 1 - s (w.x + b)), plus |w|^2 / 2.

    The sign s is -1 for class 0 and 1 for class 1. At the kink, where s (w.x + b) = 1, the
    subgradient is that of the flat side: 0.
    """

    def share(y):
        return 1.0 if reduction == "sum" else 1.0 / len(y)

    def slack(w, x, y):
        return 1 - np.where(y == 0, -1.0, 1.0) * (x @ w[:-1] + w[-1])

    def value(w, x, y):
        rows = np.maximum(0.0, slack(w, x, y)).sum() * share(y)
        return float(rows + 0.5 * w[:-1] @ w[:-1])

    def gradient(w, x, y):
        slope = -np.where(y == 0, -1.0, 1.0) * (slack(w, x, y) > 0) * share(y)
        return np.concatenate([x.T @ slope + w[:-1], [slope.sum()]])

    return Objective(value, gradient)


# --- algorithms -----------------------------------------------------------------------------------


def lipschitz_bound(F: float, squared_norm: float, q: float, L: float) -> float:
    """Lemma 3: h = q F^(q-1) |gradient|^2 + L F^q."""
    return q * F ** (q - 1) * squared_norm + L * F**q


def q_fedsgd(problem: Problem, w: Vector, q: float, L: float) -> Vector:
    """Algorithm 1."""
    for cohort in problem.rounds:
        Delta, h = np.zeros_like(w), 0.0
        for visit in cohort:
            x, y = problem.x[visit.rows], problem.y[visit.rows]
            F = problem.objective.value(w, x, y)
            gradient = problem.objective.gradient(w, x, y)
            Delta = Delta + visit.weight * (F**q * gradient)
            h = h + visit.weight * lipschitz_bound(F, float(gradient @ gradient), q, L)
        w = w - Delta / h
    return w


def q_fedavg(
    problem: Problem, w: Vector, q: float, L: float, learning_rate: float, batch_size: int
) -> Vector:
    """Algorithm 2."""
    for cohort in problem.rounds:
        Delta, h = np.zeros_like(w), 0.0
        for visit in cohort:
            F = problem.objective.value(w, problem.x[visit.rows], problem.y[visit.rows])
            w_bar = local_sgd(problem, w, visit.shuffles, learning_rate, batch_size)
            Delta_w = L * (w - w_bar)
            Delta = Delta + visit.weight * (F**q * Delta_w)
            h = h + visit.weight * lipschitz_bound(F, float(Delta_w @ Delta_w), q, L)
        w = w - Delta / h
    return w


def q_maml(
    problem: Problem,
    tasks: Sequence[Sequence[Meta]],
    w: Vector,
    q: float,
    L: float,
    inner: float,
    hessian_times: Callable | None = None,
) -> Vector:
    """Algorithm 4; with Hessian-vector products the exact gradient in w, by the chain rule."""
    value, gradient = problem.objective
    for cohort in tasks:
        Delta, h = np.zeros_like(w), 0.0
        for task in cohort:
            path = adapted(problem, w, task.support, inner)
            x, y = problem.x[task.query], problem.y[task.query]
            F, slope = value(path[-1], x, y), gradient(path[-1], x, y)
            if hessian_times is not None:
                for w_j, rows in zip(path[-2::-1], task.support[::-1], strict=True):
                    bend = hessian_times(w_j, problem.x[rows], problem.y[rows], slope)
                    slope = slope - inner * bend
            Delta = Delta + task.weight * (F**q * slope)
            h = h + task.weight * lipschitz_bound(F, float(slope @ slope), q, L)
        w = w - Delta / h
    return w


def adapted(problem: Problem, w: Vector, support: Sequence[Vector], inner: float) -> list[Vector]:
    """w and where each inner step leads."""
    path = [w]
    for rows in support:
        slope = problem.objective.gradient(path[-1], problem.x[rows], problem.y[rows])
        path.append(path[-1] - inner * slope)
    return path


def softmax_hessian_times(features: int, classes: int) -> Callable[..., Vector]:
    """H v of the softmax cross entropy: X^T (S * (z' - sum S z')) / n with z' the scores of v."""

    def split(w):
        return w[: features * classes].reshape(features, classes), w[features * classes :]

    def times(w, x, y, v):
        weights, bias = split(w)
        e = np.exp(x @ weights + bias)
        S = e / e.sum(axis=1)[:, None]
        moved, shifted = split(v)
        z = x @ moved + shifted
        slope = S * (z - (S * z).sum(axis=1)[:, None]) / len(y)
        return np.concatenate([(x.T @ slope).ravel(), slope.sum(axis=0)])

    return times


def fedavg(problem: Problem, w: Vector, learning_rate: float, batch_size: int) -> Vector:
    """Algorithm FedAvg: the mean of the local models, each counting u_k times."""
    for cohort in problem.rounds:
        models = [
            local_sgd(problem, w, visit.shuffles, learning_rate, batch_size) for visit in cohort
        ]
        w = np.average(models, axis=0, weights=[visit.weight for visit in cohort])
    return w


def local_sgd(
    problem: Problem,
    w: Vector,
    shuffles: Iterable[Vector],
    learning_rate: float,
    batch_size: int,
) -> Vector:
    """One pass over each shuffle, in steps of at most `batch_size` rows."""
    for order in shuffles:
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            step = problem.objective.gradient(w, problem.x[batch], problem.y[batch])
            w = w - learning_rate * step
    return w


# --- weights --------------------------------------------------------------------------------------


def objective_weight(sampler: str, weights: str, p: Vector, complete: bool) -> Vector:
    """u_k: what the draw leaves to add so that client k counts p_k = n_k / n, or all count equally.

    A client that is drawn with probability p_k already counts p_k. `complete` says that the cohort
    is the whole population, which is no draw at all, unless clients are put back.
    """
    ones = np.ones_like(p)
    drawn_by_size = sampler == "by-size-with-replacement" or (sampler == "by-size" and not complete)
    if weights == "size":
        return ones if drawn_by_size else p
    return 1 / p if drawn_by_size else ones
