"""FedFV: updates that work neither against each other nor against absent clients (Wang, 2021)."""

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairfl.algorithms.rules.rule import (
    Cohort,
    Hyper,
    Info,
    Needs,
    Parameter,
    Rule,
    State,
    losses,
    present,
    required,
    shares,
)


@lru_cache
def fedfv(history: int = 1) -> Rule:
    """The mean of updates whose conflicts are projected away, as long as the mean was:

        D_i <- D_i - (D_i . D_j) D_j / |D_j|^2   where D_i . D_j < 0, for j in ascending order of F
        g   <- sum_i p_i D_i
        g   <- g - (g . c) c / |c|^2             for tau, ..., 1 rounds ago, where g . c < 0
        g   <- g |sum_i p_i D_i as they came| / |g|

    which are the paper's Algorithms 1 to 3. The worst share alpha of the clients keep their update.
    c adds up the updates of those who took part so many rounds ago, not since, and whom g hurts; it
    waits until tau rounds have passed. alpha = 1 with tau = 0 is the mean, bit for bit, and so is
    any setting where nobody hurts anybody.

    `history` is the largest tau. Checked against the authors' code, whose rounding of alpha K is
    kept, but not that its memory begins with the present round, whose clients are not absent, nor
    that it divides by a |g| of 0. Equal losses go by client id.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, fedfv
    >>> gram = jnp.array([[1.0, -1.0], [-1.0, 2.0]])
    >>> F = jnp.array([1.0, 2.0])
    >>> cohort = Cohort(jnp.arange(2), jnp.ones(2), jnp.ones(2), losses=F, gram=gram)
    >>> rule, hyper = fedfv(history=0), {"alpha": jnp.array(0.5), "tau": jnp.array(0.0)}
    >>> a, _, info = rule.coefficients(hyper, rule.init(hyper, 2), cohort)
    >>> [round(float(a_k), 4) for a_k in a], info["conflicts"].item()
    ([0.3162, 0.4743], 1)
    """
    parameters = (Parameter("alpha", most=1.0), Parameter("tau", most=history))
    needs = Needs(losses=True, gram=True, history=history)
    return Rule("FedFV", _no_rounds, partial(_coefficients, history), needs, parameters)


class Updates(NamedTuple):
    """D_i = length_i e_i in units of the longest, this round's by ascending loss, then past ones;
    and the cosines <e_i, e_j>. What is absent or 0 has neither."""

    length: Float[Array, " updates"]
    cosine: Float[Array, "updates updates"]


class Mixture(NamedTuple):
    """g = sum_i a_i D_i = sum_i b_i e_i."""

    a: Float[Array, " updates"]
    b: Float[Array, " updates"]


def _no_rounds(hyper: Hyper, clients: int) -> State:
    del hyper, clients
    return jnp.zeros((), jnp.int32)


def _coefficients(
    history: int, hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " updates"], State, Info]:
    here, k = present(cohort), len(cohort.ids)
    ascending = jnp.lexsort((jnp.asarray(cohort.ids), jnp.where(here, losses(cohort), jnp.inf)))
    updates = _updates(cohort, ascending)
    p = shares(cohort)[ascending]
    parts = _projected(updates.cosine[:k, :k], _kept(hyper["alpha"], here))
    g = _added_up(parts, p, updates.length)
    if history:
        g = _sparing_the_absent(history, hyper["tau"], state, cohort, updates, g)
    plain = _padded(p * updates.length[:k], len(updates.length))
    a = g.a * _as_long_as(plain, g.b, updates.cosine)
    conflicts = jnp.sum((parts != 0) & ~jnp.eye(k, dtype=bool))
    by_place = jnp.concatenate([a[:k][jnp.argsort(ascending)], a[k:]])
    return by_place, state + 1, {"conflicts": conflicts}


def _updates(cohort: Cohort, ascending: Int[Array, " cohort"]) -> Updates:
    gram, there = jnp.asarray(required(cohort.gram)), present(cohort)
    past = jnp.arange(len(there), len(gram))
    if len(past):
        there = jnp.concatenate([there, required(cohort.past_ids) >= 0])
    order = jnp.concatenate([ascending, past])
    square = jnp.where(there, jnp.diag(gram), 0)[order]
    moves = square > 0
    root = jnp.sqrt(jnp.where(moves, square, 1))
    both = moves[:, None] & moves[None, :]
    cosine = jnp.where(both, gram[order][:, order] / root[:, None] / root[None, :], 0)
    longest = jnp.max(jnp.where(moves, root, 0))
    return Updates(jnp.where(moves, root / jnp.where(longest > 0, longest, 1), 0), cosine)


def _kept(alpha: Array, here: Bool[Array, " cohort"]) -> Bool[Array, " cohort"]:
    """Who keeps theirs: the worst 1 + floor(alpha (K - 1)), nobody at alpha = 0; best first."""
    rivals = jnp.sum(here) - 1
    better_than = rivals - jnp.arange(len(here))
    return (better_than <= alpha * rivals + ROUNDING) & (alpha > 0)


def _projected(cosine: Float[Array, "k k"], kept: Bool[Array, " k"]) -> Float[Array, "k k"]:
    """Row i holds what is left of e_i, in terms of all e_j."""
    place = jnp.arange(len(kept))

    def against(j: Array, parts: Array) -> Array:
        dot = jnp.sum(parts * cosine[j], axis=1)
        clash = (dot < 0) & ~kept & (place != j)
        return parts - jnp.where(clash, dot, 0)[:, None] * (place == j)

    return jax.lax.fori_loop(0, len(kept), against, jnp.eye(len(kept), dtype=cosine.dtype))


def _added_up(
    parts: Float[Array, "k k"], p: Float[Array, " k"], length: Float[Array, " updates"]
) -> Mixture:
    """sum_i p_i D_i of what is left of each."""
    own = length[: len(p)]
    ratio = jnp.where(own > 0, own[:, None] / jnp.where(own > 0, own, 1), 0)
    ratio = jnp.where(jnp.eye(len(p), dtype=bool), 1, ratio)
    a = jnp.sum(p[:, None] * parts * ratio, axis=0)
    b = jnp.sum((p * own)[:, None] * parts, axis=0)
    return Mixture(_padded(a, len(length)), _padded(b, len(length)))


def _sparing_the_absent(
    history: int, tau: Array, rounds: Array, cohort: Cohort, updates: Updates, g: Mixture
) -> Mixture:
    """g without what it does to those who took part up to tau rounds ago, the longest ago first."""
    ages = jnp.concatenate([jnp.zeros(len(cohort.ids)), _ages_of_the_absent(cohort)])

    def spare(n: Array, g: Mixture) -> Mixture:
        age = history - n
        hurt = (ages == age) & (jnp.sum(updates.cosine * g.b, axis=1) < 0)
        c = jnp.where(hurt, updates.length, 0)
        along, square = _inner(g.b, updates.cosine, c), _inner(c, updates.cosine, c)
        counts = (along < 0) & (square > 0) & (age <= tau) & (rounds >= tau)
        step = jnp.where(counts, along / jnp.where(square > 0, square, 1), 0)
        return Mixture(g.a - step * hurt, g.b - step * c)

    return jax.lax.fori_loop(0, history, spare, g)


def _ages_of_the_absent(cohort: Cohort) -> Int[Array, " past"]:
    """How many rounds ago a client's last update came; 0 where a newer one of the same exists."""
    ids, age = jnp.asarray(required(cohort.past_ids)), jnp.asarray(required(cohort.past_ages))
    here = present(cohort)[None, :] & (ids[:, None] == jnp.asarray(cohort.ids)[None, :])
    place = jnp.arange(len(ids))
    nearer = (age[None, :] < age[:, None]) | (
        (age[None, :] == age[:, None]) & (place[None, :] < place[:, None])
    )
    since = (ids[:, None] == ids[None, :]) & nearer
    return jnp.where((ids < 0) | here.any(axis=1) | since.any(axis=1), 0, age)


def _as_long_as(
    plain: Float[Array, " updates"], b: Float[Array, " updates"], cosine: Array
) -> Float[Array, ""]:
    """|plain| / |b|; a sum whose parts cancel but for rounding has no direction to lengthen."""
    squares = _inner(plain, cosine, plain), _inner(b, cosine, b)
    noise = 16 * jnp.finfo(b.dtype).eps * jnp.sum(jnp.abs(b)) ** 2
    points = (squares[1] > noise) & (squares[0] > 0)
    return jnp.where(points, jnp.sqrt(squares[0] / jnp.where(points, squares[1], 1)), 1)


def _inner(x: Array, cosine: Array, y: Array) -> Float[Array, ""]:
    """<x, y> of two mixtures of directions; summed in order, so that zeros change no bit."""
    return jnp.sum(x * jnp.sum(cosine * y, axis=1))


def _padded(values: Float[Array, " k"], length: int) -> Float[Array, " updates"]:
    return jnp.concatenate([values, jnp.zeros(length - len(values), values.dtype)])


ROUNDING = 1e-4
"""What float32 may get wrong of a whole number of clients."""
