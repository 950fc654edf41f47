"""How to get a result again: the command, the versions, the seeds, the data."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairfl.report.folders import Kept
from fairfl.report.page import Block, Code, Facts

WORDS = {
    "rule": "rule",
    "work": "local work",
    "epochs": "epochs",
    "batch_size": "batch size",
    "server": "server",
    "evaluate_every": "evaluated every",
}
"""The settings that are told as they are kept."""


def reproducing(kept: Kept) -> list[Block]:
    """The command where there was one, and everything that decides the numbers."""
    command = kept.configuration.get("command")
    again = (
        [Code(command), "The same versions and data give the same numbers, bit for bit."]
        if command
        else ["Trained from Python; the same settings, versions and data give the same numbers."]
    )
    return [*again, Facts(facts(kept)), *_table(kept)]


def facts(kept: Kept) -> list[tuple[str, str]]:
    """Everything that decides the numbers, in words."""
    result, settings = kept.result, kept.result.settings
    data = result.data
    drawn = "all clients" if result.sampler == "everyone" else f"{settings['cohort']:,} clients"
    return [
        ("data", f"{data.name}: {data.clients:,} clients, {data.rows:,} rows"),
        ("fingerprint of the data", data.fingerprint),
        ("model", settings["model"]),
        ("algorithm", result.algorithm),
        ("hyper-parameters", _hyper(result.members)),
        ("sampler", f"{result.sampler}, {drawn} a round"),
        ("weights of clients", result.weights),
        ("rounds", f"{result.rounds:,}"),
        ("seeds", ", ".join(map(str, settings["seeds"]))),
        ("seed of the split", _split_seed(settings)),
        *((word, str(settings[name])) for name, word in WORDS.items()),
        ("numbers", "float64" if settings["x64"] else "float32"),
        ("versions", _versions(kept.configuration["versions"])),
    ]


def _hyper(members: Sequence[Any]) -> str:
    """Each hyper-parameter with all its values."""
    return "; ".join(
        f"{name.replace('_', ' ')} {', '.join(f'{v:g}' for v in _values(members, name))}"
        for name in members[0].hyper
    )


def _values(members: Sequence[Any], name: str) -> list[float]:
    return list(dict.fromkeys(member.hyper[name] for member in members))


def _split_seed(settings: Mapping[str, Any]) -> str:
    seed = settings["split_seed"]
    return "the run's own" if seed is None else str(seed)


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _table(kept: Kept) -> list[Block]:
    """How the columns of a table were read."""
    if kept.preprocessing is None:
        return []
    lines = "\n".join(kept.preprocessing.describe())
    return ["The columns of the table were read so:", Code(lines)]
