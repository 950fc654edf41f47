"""Made-up cohorts, as rules see them, and a rule applied to one."""

import jax
import jax.numpy as jnp
import numpy as np

from fairfl.algorithms.rules import Cohort

CLIENTS = 50
"""The population that the cohorts' ids come from."""

HYPER = {
    "q": 0.7,
    "L": 10.0,
    "learning_rate": 0.1,
    "gamma": 0.3,
    "t": 0.8,
    "theta": 0.4,
    "c": 0.5,
    "beta": 0.3,
    "spread": 1.5,
    "growth": 2.0,
    "eps": 0.1,
    "eta": 1.0,
    "alpha": 0.3,
    "tau": 1.0,
}


def cohort(losses, norms=None, weights=None, ids=None, dtype: type = np.float32, xp=jnp):
    """A cohort of these losses; ids count from 0, weights and sizes are 1, unless given."""
    k = len(losses)
    return Cohort(
        ids=xp.arange(k) if ids is None else xp.asarray(ids),
        sizes=xp.ones(k, dtype),
        weights=xp.ones(k, dtype) if weights is None else xp.asarray(weights, dtype),
        losses=xp.asarray(losses, dtype),
        norms=xp.zeros(k, dtype) if norms is None else xp.asarray(norms, dtype),
    )


def hyper_of(**changed):
    """The test's own value of every parameter, those given in their place."""
    return {
        name: jnp.asarray(value, jnp.result_type(float))
        for name, value in {**HYPER, **changed}.items()
    }


def coefficients(rule, people, **changed):
    """What a rule answers in its first round."""
    hyper = hyper_of(**changed)
    return jax.jit(rule.coefficients)(hyper, rule.init(hyper, CLIENTS), people)


def counted(rule, losses, weights=None, **changed):
    """The coefficients of the first round alone."""
    return np.asarray(coefficients(rule, cohort(losses, weights=weights), **changed)[0])


def drawn(seed, k=10, past=0, dtype=np.float32):
    """A cohort with losses, weights and updates of 16 parameters, and `past` updates before it."""
    draw = np.random.default_rng(seed)
    updates = draw.normal(size=(k + past, 16)) * draw.uniform(0.3, 3, size=(k + past, 1))
    gram = updates @ updates.T
    people = cohort(
        draw.gamma(1, 1, k),
        np.diag(gram)[:k],
        draw.uniform(0.5, 2, k),
        draw.permutation(CLIENTS)[:k],
        dtype,
    )
    return people._replace(
        gram=jnp.asarray(gram, dtype),
        past_ids=jnp.asarray(draw.permutation(CLIENTS)[:past], jnp.int32) if past else None,
        past_ages=jnp.asarray(1 + np.arange(past) * 2 // max(past, 1), jnp.int32) if past else None,
    )


def only_what(rule, people):
    """The cohort with what the rule declares that it needs, and nothing else."""
    needs = rule.needs
    return people._replace(
        losses=people.losses if needs.losses else None,
        norms=people.norms if needs.norms else None,
        gram=people.gram if needs.gram else None,
        past_ids=people.past_ids if needs.history else None,
        past_ages=people.past_ages if needs.history else None,
    )
