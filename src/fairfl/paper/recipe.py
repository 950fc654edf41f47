"""What a recipe is made of: plain data that says what is trained and what is compared with what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from fairfl.clients.federated import SplitName

Number = float | int
BudgetName = Literal["quick", "paper"]

Quantity = Literal["objective", "average", "worst"]
"""What a curve shows after so many rounds: the q-objective on the training rows, the test accuracy
over data points, or that of the client served worst."""

Tuned = Literal["plain", "own"]
"""How a learning rate is picked from a grid: on q = 0 and reused for every q, as the paper's
Lemma 3 allows, or for the curve's own objective."""


class Size(NamedTuple):
    """How long a training is: rounds, and one run for each of the seeds 1, 2, 3 ..."""

    rounds: int
    seeds: int = 5


@dataclass(frozen=True)
class Training:
    """One sweep, in the words of the command line, at three sizes: the paper's, and what the two
    budgets afford (`paper` None: all of it).

    `instead` is the data set that stands in where the files of `data` are not there; `standing`
    says what that does to the numbers, and `shorter` what fewer rounds than the paper's do.
    `reference` are the words that replay the reference code, and `because` says where the paper and
    its reference code differ, which of them this follows and why.
    """

    name: str
    data: str
    algorithm: str
    full: Size
    quick: Size
    paper: Size | None = None
    words: Mapping[str, Any] = field(default_factory=dict)
    instead: str | None = None
    instead_words: Mapping[str, Any] = field(default_factory=dict)
    reference: Mapping[str, Any] = field(default_factory=dict)
    evaluations: int = 20
    because: str = ""
    standing: str = ""
    shorter: str = ""

    def size(self, budget: BudgetName) -> Size:
        """Rounds and seeds of a budget."""
        return self.quick if budget == "quick" else self.paper or self.full


class Pick(NamedTuple):
    """Whose numbers these are: the experiments of a training with these hyper-parameters, at the
    end or after so many rounds; or every client's own best q of the family."""

    training: str
    hyper: tuple[tuple[str, float], ...] = ()
    after: int | None = None
    own_q: bool = False


def q_of(training: str, q: Number, after: int | None = None) -> Pick:
    """The experiments of one q.

    >>> from fairfl.paper.recipe import q_of
    >>> q_of("synthetic-family", 1.0).hyper
    (('q', 1.0),)
    """
    return Pick(training, (("q", float(q)),), after)


class Panel(NamedTuple):
    """One data set of a table: what stands beside each published row, the first being the row that
    the others are compared with. `reason` is why cells differ, where that was found."""

    dataset: str
    rows: Mapping[str, Pick]
    label: str = ""
    reason: str = ""


class Curve(NamedTuple):
    """One line of a figure: a quantity over rounds."""

    label: str
    pick: Pick
    quantity: Quantity
    tuned: Tuned | None = None


class Race(NamedTuple):
    """The lines of one data set, and what the paper says of them: the first is there no later than
    the second. `slack` is how much longer still counts as comparable."""

    dataset: str
    curves: tuple[Curve, ...]
    claim: str
    slack: float = 1.0


class Spread(NamedTuple):
    """The accuracies over clients of one data set, line by line, and what the paper says of them:
    the last is more even than the first."""

    dataset: str
    rows: Mapping[str, Pick]
    split: SplitName


@dataclass(frozen=True)
class Recipe:
    """A table or a figure of the paper: its panels, races or spreads, and what to know about it."""

    name: str
    title: str
    panels: tuple[Panel, ...] = ()
    races: tuple[Race, ...] = ()
    spreads: tuple[Spread, ...] = ()
    note: str = ""

    @property
    def picks(self) -> tuple[Pick, ...]:
        """Everything that it reads."""
        return (
            *(pick for panel in self.panels for pick in panel.rows.values()),
            *(curve.pick for race in self.races for curve in race.curves),
            *(pick for spread in self.spreads for pick in spread.rows.values()),
        )

    @property
    def trainings(self) -> tuple[str, ...]:
        """The names of the trainings that it needs, each once.

        >>> from fairfl.paper.recipe import Panel, Recipe, q_of
        >>> rows = {"q=0": q_of("family", 0), "q=1": q_of("family", 1)}
        >>> Recipe("table-1", "Fairness", (Panel("synthetic", rows),)).trainings
        ('family',)
        """
        return tuple(dict.fromkeys(pick.training for pick in self.picks if pick.training))
