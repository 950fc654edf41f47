"""Every rule as its paper has it, in plain float64 NumPy on whole updates, with no code of ours.

A rule here takes one round (losses F, updates D with a client per row, weights u, client ids) and
answers with the step g, so that w <- w - g. What it remembers is its own.
"""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np


class Round(NamedTuple):
    """What a server hears in one round."""

    F: np.ndarray
    D: np.ndarray
    u: np.ndarray
    ids: list[int]

    @property
    def p(self):
        return self.u / self.u.sum()


Step = Callable[[Round], np.ndarray]


def mean() -> Step:
    """McMahan et al., 2017."""
    return lambda t: t.p @ t.D


def q_ffl(q, L) -> Step:
    """Li et al., 2020, Algorithm 2: sum Delta_k / sum h_k."""

    def step(t):
        Delta_w = L * t.D
        Delta = (t.u * t.F**q) @ Delta_w
        h = t.u @ (q * t.F ** (q - 1) * (Delta_w**2).sum(axis=1) + L * t.F**q)
        return Delta / h

    return step


def fixed_step(q) -> Step:
    """The gradient of sum p F^(q + 1) / (q + 1)."""
    return lambda t: sum(p * F**q * D for p, F, D in zip(t.p, t.F, t.D, strict=True))


def projected(v):
    """Euclidean projection on the simplex, by bisection on what is taken off."""
    low, high = v.min() - 1, v.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(v - low, 0)


def afl(gamma, ascent) -> Step:
    """Mohri et al., 2019, Algorithm 1; the exponentiated gradient of their remark."""
    mixture = {}

    def step(t):
        for k, p in zip(t.ids, t.p, strict=True):
            mixture.setdefault(k, p)
        before = np.array([mixture[k] for k in t.ids])
        if ascent == "projected":
            after = projected(before + gamma * t.F)
        else:
            after = before * np.exp(gamma * t.F)
            after /= after.sum()
        mixture.update(zip(t.ids, after, strict=True))
        return before @ t.D

    return step


def term(t) -> Step:
    """Li et al., 2021, Lemma 1: weights p exp(t F) / sum p exp(t F)."""

    def step(round):
        tilted = round.p * np.exp(t * round.F)
        return tilted / tilted.sum() @ round.D

    return step


def superquantile(theta) -> Step:
    """Laguel et al., 2021: the tail is filled from the worst client on."""

    def step(t):
        g, left = np.zeros(t.D.shape[1]), theta
        for k in np.argsort(-t.F):
            share = min(t.p[k], left)
            g, left = g + share / theta * t.D[k], left - share
        return g

    return step


def gifair(c) -> Step:
    """Yue et al., 2021: p_k + lambda r_k, ranks from -(K - 1) to K - 1 in steps of 2."""

    def step(t):
        K = len(t.F)
        ranks = np.empty(K)
        ranks[np.argsort(t.F)] = np.arange(-(K - 1), K, 2)
        return (t.p + c * t.p.min() / (K - 1) * ranks) @ t.D

    return step


def semi_vred(beta) -> Step:
    """Malekmohammadi and Yu, 2024: sum p F + beta sum p (F - mean)_+^2, by the chain rule."""

    def step(t):
        average, descent = t.p @ t.F, t.p @ t.D
        penalty = sum(
            p * 2 * max(F - average, 0) * (D - descent)
            for p, F, D in zip(t.p, t.F, t.D, strict=True)
        )
        return descent + beta * penalty

    return step


def least_quadratic(H, c, least, most):
    """argmin x.Hx / 2 + c.x on the simplex within bounds, by trying who sits at which bound."""
    K, best = len(c), (np.inf, None)
    for where in product((-1, 0, 1), repeat=K):
        at = np.array(where)
        free = np.flatnonzero(at == 0)
        x = np.where(at < 0, least, np.where(at > 0, most, 0.0))
        if len(free):
            n = len(free)
            system = np.zeros((n + 1, n + 1))
            system[:n, :n], system[:n, n], system[n, :n] = H[np.ix_(free, free)], 1, 1
            right = np.append(-(c + H @ x)[free], 1 - x.sum())
            try:
                x[free] = np.linalg.solve(system, right)[:n]
            except np.linalg.LinAlgError:
                continue
        inside = (x >= least - 1e-12).all() and (x <= most + 1e-12).all()
        value = x @ H @ x / 2 + c @ x
        if inside and abs(x.sum() - 1) < 1e-12 and value < best[0]:
            best = value, x
    return best[1]


def fedmgda(eps, eta) -> Step:
    """Hu et al., 2022, Algorithm 1, without clipping."""

    def step(t):
        d = t.D / np.linalg.norm(t.D, axis=1, keepdims=True)
        least, most = np.maximum(t.p - eps, 0), np.minimum(t.p + eps, 1)
        return eta * least_quadratic(2 * d @ d.T, np.zeros(len(d)), least, most) @ d

    return step


def fedfv(alpha, tau) -> Step:
    """Wang et al., 2021, Algorithms 1 to 3, with p_k in place of 1 / m."""
    seen: dict[int, tuple[int, np.ndarray]] = {}
    clock = [0]

    def step(t):
        order = sorted(range(len(t.F)), key=lambda i: (t.F[i], t.ids[i]))
        K = len(order)
        kept = order[int(np.ceil((K - 1) * (1 - alpha) - 1e-9)) :] if alpha > 0 else []
        D = [d.copy() for d in t.D]
        for i in range(K):
            if i in kept:
                continue
            for j in order:
                if j != i and D[i] @ t.D[j] < 0:
                    D[i] = D[i] - (D[i] @ t.D[j]) / (t.D[j] @ t.D[j]) * t.D[j]
        g = sum(p * d for p, d in zip(t.p, D, strict=True))
        if clock[0] >= tau:
            for ago in range(tau, 0, -1):
                hurt = [
                    d
                    for k, (when, d) in seen.items()
                    if when == clock[0] - ago and k not in t.ids and g @ d < 0
                ]
                if hurt:
                    c = sum(hurt)
                    if g @ c < 0:
                        g = g - (g @ c) / (c @ c) * c
        for k, d in zip(t.ids, t.D, strict=True):
            seen[k] = clock[0], d
        clock[0] += 1
        return g / np.linalg.norm(g) * np.linalg.norm(t.p @ t.D)

    return step


CDF = {
    "weibull": lambda x: 1 - np.exp(-(x**2)),
    "exponential": lambda x: 1 - np.exp(-x),
    "frechet": lambda x: np.exp(-1 / x),
    "gumbel": lambda x: np.exp(-np.exp(-(x - 1))),
    "logistic": lambda x: 1 / (1 + np.exp(-(x - 1))),
}


def aaggff_device(eta, clients, response="weibull") -> Step:
    """Hahn et al., 2024, Algorithm 3: linearised regret, doubly robust responses, entropy."""
    gradients, decision = np.zeros(clients), np.full(clients, 1 / clients)
    clock = [0]

    def step(t):
        nonlocal gradients, decision
        clock[0] += 1
        C = len(t.ids) / clients
        r = C * CDF[response](t.F / t.F.mean())
        average = r.mean()
        robust = np.full(clients, average)
        robust[t.ids] += (r - average) / C
        below = 1 + decision.sum() * average
        linear = -robust / below
        linear += average * (decision @ (robust - average)) / below**2
        gradients = gradients + linear
        rate = eta * np.sqrt(np.log(clients)) / (2 + C) / np.sqrt(clock[0] + 1)
        decision = np.exp(-rate * gradients)
        decision /= decision.sum()
        a = t.u * decision[t.ids]
        return a / a.sum() @ t.D

    return step


def aaggff_silo(eta, response="weibull") -> Step:
    """Hahn et al., 2024, Algorithm 2: an online Newton step, every client in every round."""
    past, last = [], None

    def step(t):
        nonlocal last
        m = len(t.F)
        order = np.argsort(t.ids)
        p = t.p[order]
        decision = p if last is None else last
        r = CDF[response](t.F / t.F.mean())[order] / m
        past.append((-r / (1 + decision @ r), decision))
        alpha, beta = 4.0, m / 4
        H, c = alpha * np.eye(m), -alpha * p
        for g, before in past:
            H = H + eta * beta * np.outer(g, g)
            c = c + eta * (g - beta * (g @ before) * g)
        last = least_quadratic(H, c, np.zeros(m), np.ones(m))
        return last @ t.D[order]

    return step
