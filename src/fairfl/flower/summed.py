"""q-FedAvg from sums alone: what a client sends where the server may see only totals.

The step of Algorithm 2 is a ratio of two sums over the cohort,

    w' = w - sum_k s_k D_k / sum_k s_k (1 + q L |D_k|^2 / F_k),    s_k = u_k (F_k / scale)^q,

so a secure aggregation that reveals sums reveals all that is needed. The scale cancels; it keeps
the numbers near 1, and the server announces it each round from the sums of the round before.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32

from fairfl.algorithms.rules.q_ffl import BOUND, SMALL

Leaves = Sequence[Float[np.ndarray, "..."]]


class Announced(NamedTuple):
    """What the server tells every client of the cohort before a round.

    scale            the loss at which a client counts 1
    rows             0 where u_k = 1; else u_k is the client's rows over this number
    most             s_k is clipped here, on the client
    most_curvature   L |D_k|^2 / F_k is clipped here; 2 bounds it for one gradient step, and local
                     steps lengthen D_k
    """

    q: float
    L: float
    scale: float
    rows: float = 0.0
    most: float = 4.0
    most_curvature: float = 50.0

    @property
    def most_share(self) -> float:
        """The largest s_k (1 + q L |D_k|^2 / F_k) that a client may send."""
        return self.most * (1 + self.q * self.most_curvature)


class Summands(NamedTuple):
    """What a client adds to the totals: s_k D_k, s_k (1 + q L |D_k|^2 / F_k), s_k and s_k F_k."""

    update: list[Float[np.ndarray, "..."]]
    share: float
    weight: float
    loss: float


def summands(update: Leaves, loss: float, rows: int, announced: Announced) -> Summands:
    """A client's part of the two sums, and of the next scale; both clips are the client's own.

    >>> import numpy as np
    >>> from fairfl.flower.summed import Announced, summands
    >>> part = summands([np.array([1.0, 0.0])], 2.0, 30, Announced(q=1.0, L=1.0, scale=4.0))
    >>> part.update[0].tolist(), part.share, part.weight, part.loss
    ([0.5, 0.0], 0.75, 0.5, 1.0)
    """
    if not math.isfinite(loss) or loss < 0:
        raise ValueError(f"a client's loss is {loss}; measure one that is finite and not negative")
    s = weight(loss, rows, announced)
    squares = sum(float(np.vdot(leaf, leaf)) for leaf in update)
    share = s * (1 + announced.q * _curvature(squares, loss, announced))
    return Summands([leaf * s for leaf in update], share, s, s * loss)


def weight(loss: float, rows: int, announced: Announced) -> float:
    """s_k = u_k (F_k / scale)^q, at most `most`; u_k at q = 0, whatever the loss."""
    u = rows / announced.rows if announced.rows else 1.0
    if announced.q == 0:
        return min(u, announced.most)
    if loss == 0:
        return 0.0
    exponent = announced.q * (math.log(loss) - math.log(announced.scale))
    return u * math.exp(exponent) if exponent < math.log(announced.most / u) else announced.most


def _curvature(squares: float, loss: float, announced: Announced) -> float:
    """L |D|^2 / F, capped for a client near zero loss as in the plain form; there the cohort's
    largest loss takes the place of the announced scale."""
    if announced.q == 0 or squares == 0:
        return 0.0
    ratio = announced.L * squares / loss if loss > 0 else math.inf
    most = BOUND if loss <= SMALL * announced.scale else announced.most_curvature
    return min(ratio, most)


def total(parts: Sequence[Summands]) -> Summands:
    """The sums over a cohort."""
    return Summands(
        [np.sum(leaves, axis=0) for leaves in zip(*(part.update for part in parts), strict=True)],
        sum(part.share for part in parts),
        sum(part.weight for part in parts),
        sum(part.loss for part in parts),
    )


def direction(sums: Summands) -> list[Float[np.ndarray, "..."]]:
    """sum_k s_k D_k / sum_k s_k (1 + q L |D_k|^2 / F_k); a mean over clients in place of both sums
    gives the same."""
    if not sums.share > 0:
        raise ValueError(
            "the clients' weights sum to nothing: every loss is far below the announced scale; "
            "announce a smaller loss scale"
        )
    return [leaf / sums.share for leaf in sums.update]


def next_scale(sums: Summands, before: float) -> float:
    """sum_k s_k F_k / sum_k s_k: near the largest loss for a large q, the mean loss at q = 0.

    >>> from fairfl.flower.summed import Summands, next_scale
    >>> next_scale(Summands([], share=1.0, weight=2.0, loss=3.0), before=9.0)
    1.5
    """
    found = sums.loss / sums.weight if sums.weight > 0 else 0.0
    return found if found > 0 and math.isfinite(found) else before


# ---- one vector for a secure sum ----


def packed(part: Summands, announced: Announced) -> Float32[np.ndarray, " numbers"]:
    """The summands as one vector whose entries, but for the update's, are at most `most`."""
    scalars = [
        part.share * announced.most / announced.most_share,
        part.weight,
        part.loss / announced.scale,
    ]
    return np.concatenate([*(leaf.ravel() for leaf in part.update), scalars]).astype(np.float32)


def unpacked(vector: Float[np.ndarray, " numbers"], like: Leaves, announced: Announced) -> Summands:
    """Back from a sum, or a mean, of packed vectors."""
    ends = np.cumsum([leaf.size for leaf in like])
    if len(vector) != ends[-1] + 3:
        raise ValueError(
            f"the sum has {len(vector):,} numbers but the model needs {ends[-1] + 3:,}; "
            "give clients and server the same model"
        )
    flat = np.split(vector[: ends[-1]], ends[:-1])
    share, s, loss = (float(number) for number in vector[ends[-1] :])
    return Summands(
        [part.reshape(leaf.shape) for part, leaf in zip(flat, like, strict=True)],
        share * announced.most_share / announced.most,
        s,
        loss * announced.scale,
    )
