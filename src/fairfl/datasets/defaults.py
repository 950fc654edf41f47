"""The paper's settings for each data set, as plain data, and settings to begin with for your own.

Appendix "Hyperparameters" of the q-FFL paper: learning rate and batch size tuned on FedAvg, ten
clients a round, one local epoch, and the q that its protocol chose. Adult and the three classes of
Fashion-MNIST are its comparison with AFL: full gradients of all clients. The rounds are those that
its reference code suggests, as are the settings of Omniglot, which the paper does not give.
"""

from dataclasses import dataclass

PAPER_Q = (0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0)


@dataclass(frozen=True)
class Defaults:
    """Settings of one data set. The values written here are those for your own data.

    They are the paper's for its synthetic data, which suit a linear classifier on features of
    about unit scale, with fewer rounds: enough to see a trend, to be raised where the loss of the
    larger q still falls.

    >>> from fairfl.datasets import Defaults
    >>> Defaults(learning_rate=0.01).cohort
    10
    """

    algorithm: str = "q-fedavg"
    model: str = "softmax"
    learning_rate: float = 0.1
    inner_learning_rate: float = 0.1
    batch_size: int = 10
    cohort: int = 10
    epochs: int = 1
    rounds: int = 2_000
    q: float = 1.0


# A thousand rounds are too few here: q > 0 looks no fairer than q = 0 before several thousand.
_SYNTHETIC = Defaults(rounds=10_000)

# The loss is the sum over the rows of a batch, as in the reference; so are the rounds.
_VEHICLE = Defaults(model="svm", learning_rate=0.01, batch_size=64, rounds=20, q=5.0)

# Full gradients have no batches and no epochs. Of the two q that the paper shows, the first that
# changes the model when clients count by their size, as in its objective.
_ADULT = Defaults(algorithm="q-fedsgd", cohort=2, rounds=600, q=2.0)
_FASHION_MNIST_AFL = Defaults(
    algorithm="q-fedsgd", learning_rate=0.001, cohort=3, rounds=6_000, q=5.0
)

# An epoch on one of the roles is hundreds of steps of a deep model: 80 rounds take hours on a CPU.
_SHAKESPEARE = Defaults(model="char-lstm", learning_rate=0.8, rounds=80, q=0.001)
_SENT140 = Defaults(model="sentiment-lstm", learning_rate=0.03, batch_size=32, rounds=200, q=1.0)

# Not in the paper: the usual federated setting for these images, and enough rounds to see a trend.
_IMAGES = Defaults(model="mlp", learning_rate=0.03, batch_size=10, rounds=500)

# One step on ten support drawings, and as many of query: what the reference code reads in a round.
_OMNIGLOT = Defaults(
    algorithm="q-maml", model="omniglot-cnn", learning_rate=0.01, inner_learning_rate=0.01,
    batch_size=10, rounds=10_000, q=0.1,
)  # fmt: skip

_OF = {
    "synthetic": _SYNTHETIC,
    "synthetic-iid": _SYNTHETIC,
    "synthetic-hybrid": _SYNTHETIC,
    "vehicle": _VEHICLE,
    "vehicle-subset": _VEHICLE,
    "adult": _ADULT,
    "fashion-mnist-afl": _FASHION_MNIST_AFL,
    "shakespeare": _SHAKESPEARE,
    "sent140": _SENT140,
    "sent140-subset": _SENT140,
    "fashion-mnist": _IMAGES,
    "mnist": _IMAGES,
    "omniglot": _OMNIGLOT,
}


def defaults(name: str) -> Defaults:
    """The paper's settings for a data set; `Defaults()` for any other name, that is your own data.

    >>> from fairfl.datasets import defaults
    >>> defaults("synthetic").rounds, defaults("visits.parquet").rounds
    (10000, 2000)
    """
    return _OF.get(name, Defaults())
