"""Rules: how much each client counts. One file per rule; see rule.py for the contract."""

from fairfl.algorithms.rules.aaggff import aaggff
from fairfl.algorithms.rules.afl import afl
from fairfl.algorithms.rules.bounded import bounded
from fairfl.algorithms.rules.fedfv import fedfv
from fairfl.algorithms.rules.fedmgda import fedmgda
from fairfl.algorithms.rules.fixed_step import fixed_step
from fairfl.algorithms.rules.gifair import gifair
from fairfl.algorithms.rules.mean import mean
from fairfl.algorithms.rules.protocol import checked
from fairfl.algorithms.rules.q_ffl import q_ffl
from fairfl.algorithms.rules.rule import (
    Cohort,
    Needs,
    Parameter,
    Rule,
    losses,
    present,
    recall,
    remember,
    required,
    shares,
    stateless,
)
from fairfl.algorithms.rules.semi_vred import semi_vred
from fairfl.algorithms.rules.superquantile import superquantile
from fairfl.algorithms.rules.term import term

__all__ = [
    "Cohort",
    "Needs",
    "Parameter",
    "Rule",
    "aaggff",
    "afl",
    "bounded",
    "checked",
    "fedfv",
    "fedmgda",
    "fixed_step",
    "gifair",
    "losses",
    "mean",
    "present",
    "q_ffl",
    "recall",
    "remember",
    "required",
    "semi_vred",
    "shares",
    "stateless",
    "superquantile",
    "term",
]
