"""The named algorithms: choices of the four parts, under the names that people know."""

from fairfl.algorithms.named.agnostic import afl
from fairfl.algorithms.named.directions import fedfv, fedmgda
from fairfl.algorithms.named.fair import gifair, semi_vred, superquantile, term
from fairfl.algorithms.named.local import with_rule
from fairfl.algorithms.named.meta import maml, q_maml
from fairfl.algorithms.named.paper import fedavg, fedsgd, fixed_step, q_fedavg, q_fedsgd
from fairfl.algorithms.named.personal import ditto
from fairfl.algorithms.named.proportional import propfair
from fairfl.algorithms.named.proximal import fedprox
from fairfl.algorithms.named.sequential import aaggff

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
    "fedfv": fedfv,
    "propfair": propfair,
    "aaggff": aaggff,
    "maml": maml,
    "q-maml": q_maml,
    "ditto": ditto,
}
"""Every algorithm by the name that the command line takes."""

__all__ = [
    "NAMED",
    "aaggff",
    "afl",
    "ditto",
    "fedavg",
    "fedfv",
    "fedmgda",
    "fedprox",
    "fedsgd",
    "fixed_step",
    "gifair",
    "maml",
    "propfair",
    "q_fedavg",
    "q_fedsgd",
    "q_maml",
    "semi_vred",
    "superquantile",
    "term",
    "with_rule",
]
