"""The named algorithms: choices of the four parts, under the names that people know."""

from fairfl.algorithms.named.agnostic import afl
from fairfl.algorithms.named.directions import fedmgda
from fairfl.algorithms.named.fair import gifair, semi_vred, superquantile, term
from fairfl.algorithms.named.local import with_rule
from fairfl.algorithms.named.paper import fedavg, fedsgd, fixed_step, q_fedavg, q_fedsgd
from fairfl.algorithms.named.proximal import fedprox

NAMED = {
    "fedavg": fedavg,
    "fedsgd": fedsgd,
    "fixed-step": fixed_step,
    "q-fedavg": q_fedavg,
    "q-fedsgd": q_fedsgd,
    "afl": afl,
    "fedprox": fedprox,
    "term": term,
    "superquantile": superquantile,
    "gifair": gifair,
    "semi-vred": semi_vred,
    "fedmgda": fedmgda,
}
"""Every algorithm by the name that the command line takes."""

__all__ = [
    "NAMED",
    "afl",
    "fedavg",
    "fedmgda",
    "fedprox",
    "fedsgd",
    "fixed_step",
    "gifair",
    "q_fedavg",
    "q_fedsgd",
    "semi_vred",
    "superquantile",
    "term",
    "with_rule",
]
