"""Has a run converged? The objective it minimises, at the evaluations it has passed."""

import numpy as np
from jaxtyping import Float

from fairfl.runs.result import Experiment
from fairfl.simulation.evaluation import Evaluation

STILL_FALLING = 0.02
"""A run whose objective fell by more than this share over its last third has not converged."""

EVALUATIONS = 6
"""Fewer evaluations than this say nothing."""


def objective(member: Experiment) -> Float[np.ndarray, " evaluations"]:
    """(sum_k p_k F_k^(q+1))^(1/(q+1)) over the training rows at every evaluation.

    The root makes q comparable with q: at q = 0 it is the mean loss, for large q the largest.
    """
    q = member.hyper.get("q", 0.0)
    found = [member.evaluations[done]["train"] for done in sorted(member.evaluations)]
    return np.array([_objective(evaluation, q) for evaluation in found])


def _objective(found: Evaluation, q: float) -> float:
    here = found.size > 0
    if not here.any():
        return np.nan
    share, F = found.size[here] / found.size.sum(), found.loss[here]
    if not np.isfinite(F).all():
        return np.nan
    top = max(float(F.max()), np.finfo(float).tiny)
    return top * float(share @ (F / top) ** (q + 1)) ** (1 / (q + 1))


def still_falling(member: Experiment) -> bool | None:
    """Whether the objective still falls; None where too few evaluations tell.

    The means of the last and of the middle third are compared, so that the noise of single rounds
    does not decide.
    """
    values = objective(member)
    if len(values) < EVALUATIONS or not np.isfinite(values).all():
        return None
    third = len(values) // 3
    middle, last = values[-2 * third : -third].mean(), values[-third:].mean()
    return bool(last < (1 - STILL_FALLING) * middle)
