"""What every rule promises the engine, as a check for a rule of your own."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from fairfl.algorithms.rules.rule import Cohort, Hyper, Rule

CLIENTS, COHORT, WIDTH, ROUNDS = 30, 6, 12, 3


class Answers(NamedTuple):
    """The coefficients of every round, and the state after the last."""

    a: Float[np.ndarray, "rounds updates"]
    state: Any


def checked(rule: Rule, **values: float | int) -> Rule:
    """The rule, if it keeps what the engine relies on with these values; a sentence if it does not.

    There is one coefficient per update and a state that keeps its shapes; an absent client, whose
    weight is 0 and whose numbers are NaN, changes no bit; the order of the cohort does not matter;
    and losses of 0 or 1e30 leave every number finite.

    >>> import fairfl
    >>> fairfl.rules.checked(fairfl.rules.term(), t=2).name
    'TERM'
    >>> def first(hyper, state, cohort):
    ...     return (cohort.weights > 0).astype(float) / len(cohort.ids), state, {}
    >>> careless = fairfl.rules.Rule("one over K", fairfl.rules.stateless, first)
    >>> fairfl.rules.checked(careless)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: the rule 'one over K' counts others differently where a client is absent; read ...
    """
    hyper = {name: jnp.asarray(value, jnp.result_type(float)) for name, value in values.items()}
    cohorts = [_drawn(rule, seed) for seed in range(ROUNDS)]
    plain = _answers(rule, hyper, cohorts)
    _check_shapes(rule, hyper, plain)
    _check_absent(rule, hyper, cohorts, plain)
    _check_order(rule, hyper, cohorts, plain)
    _check_hostile(rule, hyper, cohorts[0])
    return rule


def _drawn(rule: Rule, seed: int) -> Cohort:
    """A cohort with as much as the rule declares that it needs."""
    draw, needs, past = np.random.default_rng(seed), rule.needs, rule.needs.history * COHORT
    D = draw.normal(size=(COHORT + past, WIDTH)).astype(np.float32)
    gram = jnp.asarray(D @ D.T)
    return Cohort(
        ids=jnp.asarray(draw.permutation(CLIENTS)[:COHORT]),
        sizes=jnp.asarray(draw.integers(1, 99, COHORT), jnp.result_type(float)),
        weights=jnp.asarray(draw.uniform(0.5, 2, COHORT), jnp.result_type(float)),
        losses=jnp.asarray(draw.gamma(1, 1, COHORT), jnp.result_type(float))
        if needs.losses
        else None,
        norms=jnp.diag(gram)[:COHORT] if needs.norms else None,
        gram=gram if needs.gram else None,
        past_ids=jnp.asarray(draw.permutation(CLIENTS)[:past], jnp.int32) if past else None,
        past_ages=jnp.asarray(1 + np.arange(past) // COHORT, jnp.int32) if past else None,
    )


def _answers(rule: Rule, hyper: Hyper, cohorts: list[Cohort]) -> Answers:
    state, answers = rule.init(hyper, CLIENTS), []
    for cohort in cohorts:
        a, state, _ = rule.coefficients(hyper, state, cohort)
        answers.append(np.asarray(a))
    return Answers(np.stack(answers), state)


def _check_shapes(rule: Rule, hyper: Hyper, plain: Answers) -> None:
    updates = COHORT * (1 + rule.needs.history)
    if plain.a.shape != (ROUNDS, updates):
        raise ValueError(
            f"the rule {rule.name!r} gives coefficients of shape {plain.a.shape[1:]} to {updates} "
            "updates; give each one"
        )
    if _shapes(plain.state) != _shapes(rule.init(hyper, CLIENTS)):
        raise ValueError(
            f"the rule {rule.name!r} changes the shapes or types of its state, which a loop "
            "carries; keep those of init"
        )


def _shapes(state: Any) -> Any:
    return jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.asarray(leaf).dtype), state)


def _check_absent(rule: Rule, hyper: Hyper, cohorts: list[Cohort], plain: Answers) -> None:
    having = _answers(rule, hyper, [_with_absent(cohort) for cohort in cohorts])
    same = np.array_equal(np.delete(having.a, 1, axis=1), plain.a) and not having.a[:, 1].any()
    states = zip(jax.tree.leaves(having.state), jax.tree.leaves(plain.state), strict=True)
    if not same or not all(np.array_equal(x, y) for x, y in states):
        raise ValueError(
            f"the rule {rule.name!r} counts others differently where a client is absent; read "
            "losses(cohort), shares(cohort) and present(cohort), and write with remember"
        )


def _with_absent(cohort: Cohort) -> Cohort:
    """One more client, in second place, of weight 0 and with no number of its own."""
    more = {"ids": cohort.ids[0], "sizes": np.nan, "weights": 0, "losses": np.nan, "norms": np.nan}
    wider = {
        name: jnp.insert(getattr(cohort, name), 1, value)
        for name, value in more.items()
        if getattr(cohort, name) is not None
    }
    if cohort.gram is not None:
        rows = jnp.insert(cohort.gram, 1, jnp.nan, axis=0)
        wider["gram"] = jnp.insert(rows, 1, jnp.nan, axis=1)
    return cohort._replace(**wider)


def _check_order(rule: Rule, hyper: Hyper, cohorts: list[Cohort], plain: Answers) -> None:
    turned = _answers(rule, hyper, [_turned(cohort) for cohort in cohorts])
    back = np.concatenate([turned.a[:, :COHORT][:, ::-1], turned.a[:, COHORT:]], axis=1)
    if not np.allclose(back, plain.a, rtol=1e-3, atol=1e-5):
        raise ValueError(
            f"the rule {rule.name!r} counts clients by their place in the cohort, which means "
            "nothing; let losses or ids decide"
        )


def _turned(cohort: Cohort) -> Cohort:
    """The cohort from its last client to its first; past rounds stay in place."""
    own = {name: getattr(cohort, name) for name in ("ids", "sizes", "weights", "losses", "norms")}
    turned = {name: value[::-1] for name, value in own.items() if value is not None}
    if cohort.gram is not None:
        past = jnp.arange(COHORT, len(cohort.gram))
        order = jnp.concatenate([jnp.arange(COHORT)[::-1], past])
        turned["gram"] = cohort.gram[order][:, order]
    return cohort._replace(**turned)


def _check_hostile(rule: Rule, hyper: Hyper, cohort: Cohort) -> None:
    if not rule.needs.losses:
        return
    for losses in ([0.0] * COHORT, [1e30, 0, 1, 1e-30, 1e30, 2]):
        hostile = cohort._replace(losses=jnp.asarray(losses))
        found = _answers(rule, hyper, [hostile] * ROUNDS)
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found)):
            raise ValueError(
                f"the rule {rule.name!r} is not finite where losses are {losses}; divide only by "
                "what cannot be 0, and let exponents fall from the largest loss"
            )
