"""q-FFL: Algorithms 1 and 2 of the paper, written so that no q and no loss overflows."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from fairfl.algorithms.rules.rule import (
    Cohort,
    Hyper,
    Info,
    Needs,
    Parameter,
    Rule,
    State,
    divide,
    present,
    required,
    stateless,
)

SMALL = 1e-6
"""Below this share of the cohort's largest loss a client's curvature term is capped ..."""
BOUND = 2.0
"""... at what smoothness allows: |grad F|^2 <= 2 L F for every non-negative L-smooth F."""


def q_ffl() -> Rule:
    """The paper's step, divided through by L max F^q:

        s_k = u_k exp(q (log F_k - max log F))
        a_k = s_k / sum_j s_j (1 + q L |D_j|^2 / F_j)

    so that w - sum_k a_k D_k is w - sum_k Delta_k / sum_k h_k as printed. At q = 0 it is the mean,
    bit for bit; as q grows it tends to the worst client's update and shrinks like 1 / q. Where
    F_j < 1e-6 max F, L |D_j|^2 / F_j is capped at 2, or one solved client would stall all others.

    >>> import jax.numpy as jnp
    >>> from fairfl.algorithms.rules import Cohort, q_ffl
    >>> cohort = Cohort(
    ...     ids=jnp.arange(2), sizes=jnp.ones(2), weights=jnp.ones(2),
    ...     losses=jnp.array([1.0, 2.0]), norms=jnp.array([0.5, 1.0]),
    ... )
    >>> a, _, info = q_ffl().coefficients({"q": jnp.array(1.0), "L": jnp.array(1.0)}, (), cohort)
    >>> [round(float(a_k), 4) for a_k in a], info["capped"].item()
    ([0.2222, 0.4444], 0)
    """
    return Q_FFL


def _coefficients(
    hyper: Hyper, state: State, cohort: Cohort
) -> tuple[Float[Array, " cohort"], State, Info]:
    q, here = hyper["q"], present(cohort)
    F = jnp.where(here, required(cohort.losses), 0)
    squares = jnp.where(here, required(cohort.norms), 0)
    worst = jnp.max(F)
    s = cohort.weights * jnp.exp(_times(q, _log_ratio(F, worst)))
    curvature, capped = _curvature(hyper["L"], squares, F, worst)
    share = s * (1 + _times(q, curvature))
    capped = here & capped & (q > 0)
    return divide(s, share), state, {"capped": jnp.sum(capped)}


def _times(q: Array, value: Array) -> Array:
    """q * value, and 0 at q = 0 even where the value is infinite."""
    return jnp.where(q == 0, 0, q * value)


def _log_ratio(F: Array, worst: Array) -> Array:
    """log F - log max F, 0 where both are 0."""
    return jnp.where(worst == F, 0, jnp.log(F) - jnp.log(worst))


def _curvature(L: Array, squares: Array, F: Array, worst: Array) -> tuple[Array, Array]:
    """L |D|^2 / F with its cap, and where the cap acted."""
    small = SMALL * worst >= F
    exceeds = L * squares > BOUND * F
    ratio = L * squares / jnp.where(F > 0, F, 1)
    capped = small & exceeds
    return jnp.where(capped, BOUND, jnp.where(F > 0, ratio, 0)), capped


LIPSCHITZ = Parameter("L", above=True)
Q_FFL = Rule(
    "q-FFL", stateless, _coefficients, Needs(losses=True, norms=True), (Parameter("q"), LIPSCHITZ)
)
