"""The learning rate, found on FedAvg and reused for every q."""

from fairfl.choice.means import Mean, best, means
from fairfl.clients.federated import SplitName
from fairfl.runs import Result


def choose_rate(result: Result, split: SplitName = "validation") -> float:
    """The learning rate whose q = 0 has the best average over data points on a split.

    As the paper's appendix "Hyperparameters" tunes it: on FedAvg alone, mean over the seeds. With
    L = 1 / learning rate it is the one estimate of L that Lemma 3 lets every q reuse. The smaller
    rate of two that are equally good; one that stopped early for any seed is out.

    >>> import fairfl
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> grid = fairfl.fedavg(learning_rate=[1e-9, 0.1])
    >>> fairfl.choose_rate(fairfl.train(data, model, grid, rounds=9, cohort=5))
    0.1
    """
    if not all("learning_rate" in member.hyper for member in result.members):
        raise ValueError(f"{result.algorithm} was trained without a learning_rate; give a list")
    plain = [mean for mean in means(result, split) if mean.hyper.get("q", 0.0) == 0]
    return best(sorted(plain, key=_rate), result.data.task).hyper["learning_rate"]


def _rate(mean: Mean) -> float:
    return mean.hyper["learning_rate"]
