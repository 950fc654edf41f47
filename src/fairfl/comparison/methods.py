"""The methods of a comparison, from words or from algorithms of your own."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fairfl.algorithms import NAMED, Algorithm
from fairfl.algorithms.algorithm import with_hyper
from fairfl.comparison.grids import GRIDS, OF_THEIR_OWN, rates
from fairfl.runs import request

Method = str | Algorithm
"""A method in words (`"q-fedavg:q=1"`), or an algorithm, whose lists are what is tried."""

Methods = dict[str, Algorithm]
"""By the name that tables and folders have for them."""


def split(words: str) -> list[str]:
    """Methods with commas between; what begins with a number is a value of the method before it.

    >>> from fairfl.comparison.methods import split
    >>> split("fedavg,q-fedavg:q=0.1,1,5:weights=equal,afl")
    ['fedavg', 'q-fedavg:q=0.1,1,5:weights=equal', 'afl']
    """
    found: list[str] = []
    for part in words.split(","):
        if found and _is_number(part.split(":")[0]):
            found[-1] += f",{part}"
        else:
            found.append(part.strip())
    return found


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def methods(
    asked: Sequence[Method] | Mapping[str, Method] | None,
    usual: Mapping[str, Any],
    said: Mapping[str, Any],
) -> Methods:
    """What is compared, by name; every named algorithm of one model for all where
    nothing was asked for.

    `usual` are the data set's settings, and `said` what holds for all methods that have it.

    >>> from fairfl.comparison.methods import methods
    >>> found = methods(["fedavg", "afl:gamma=0.1"], {"learning_rate": 0.1}, {})
    >>> {name: len(method.experiments) for name, method in found.items()}
    {'fedavg': 9, 'afl:gamma=0.1': 9}
    """
    named = _named(alike() if asked is None else asked)
    if not named:
        raise ValueError("there is nothing to compare; name at least one method, such as fedavg")
    _check_names([name for name, _ in named])
    return {
        name: tried(method, usual, said) if isinstance(method, str) else method
        for name, method in named
    }


def alike() -> list[str]:
    """Every named algorithm that serves all clients with one model.

    >>> from fairfl.comparison.methods import alike
    >>> alike()[:2]
    ['fedavg', 'fedsgd']
    """
    return [name for name in NAMED if name not in OF_THEIR_OWN]


def _named(asked: Sequence[Method] | Mapping[str, Method]) -> list[tuple[str, Method]]:
    if isinstance(asked, Mapping):
        return list(asked.items())
    return [(one if isinstance(one, str) else one.name, one) for one in asked]


def _check_names(names: Sequence[str]) -> None:
    folders: dict[str, str] = {}
    for name in names:
        if slug(name) in folders:
            raise ValueError(
                f"two methods are called {name!r}; name each method once, or in Python give them "
                "names: {'mine': fairfl.with_rule(...)}"
            )
        folders[slug(name)] = name


def slug(name: str) -> str:
    """A method's name as the name of a folder.

    >>> from fairfl.comparison.methods import slug
    >>> slug("q-fedavg:q=0.1,1"), slug("Mine")
    ('q-fedavg-q-0.1-1', 'mine')
    """
    return re.sub(r"[^a-z0-9.]", "-", name.lower())


def tried(words: str, usual: Mapping[str, Any], said: Mapping[str, Any]) -> Algorithm:
    """A method in words, with everything that it is to be tried with.

    What is said is fixed, one value or a list; own parameters and learning rates that are not said
    are taken from `grids`.

    >>> from fairfl.comparison.methods import tried
    >>> len(tried("q-fedavg", {"learning_rate": 0.1}, {}).experiments)
    9
    >>> tried("q-fedavg:q=1", {"learning_rate": 0.1}, {"learning_rate": ".3"}).hyper
    {'q': (1.0,), 'learning_rate': (0.3,)}
    """
    given = {name: value for name, value in said.items() if value is not None}
    own = GRIDS.get(words.split(":", maxsplit=1)[0], {})
    found = request.algorithm(words, {}, {**usual, **own, **given})
    if "learning_rate" in given or ":learning_rate=" in words.replace("-", "_"):
        return found
    rate = found.hyper["learning_rate"][0]
    return with_hyper(found, learning_rate=rates(rate, len(found.experiments)))
