"""Shakespeare (McMahan et al., 2017): which character comes next in what a role of a play says?

A client is a speaking role of the complete works in Project Gutenberg's eBook 100, the edition of
the World Library, told apart by LEAF's rules (Caldas et al., 2018), which go by the edition's
indentation. A sample is 80 consecutive characters of everything that the role says, and the
character after them; there is one for every place in the text, so samples overlap.

LEAF finds 1,129 roles and 4,226,159 samples. The q-FFL paper has 31 of those roles, drawn without a
seed; here a seed draws 31 whose mean and deviation are those of the paper.
"""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from numpy.lib.stride_tricks import sliding_window_view

from fairfl.clients.characters import ALPHABET, numbers_of
from fairfl.clients.federated import FederatedData
from fairfl.datasets.files import File, Paths, contents
from fairfl.datasets.matched import Number, Published, chosen_clients, whole_number
from fairfl.datasets.stored import Arrays

FILES = (
    File(
        "shakespeare",
        "pg100.txt",
        "https://www.gutenberg.org/files/100/old/1994-01-100.zip",
        "md5:b8d60664a90939fa7b5d9f4dd064a1d5",
        member="100.txt",
    ),
)

STEPS = 80
PUBLISHED = Published(clients=31, samples=116_214, deviation=6_912)
LEAST = 65
"""Samples of the smallest role: the paper's draw is from those with more than 64."""

BY = "by William Shakespeare"
LAST_LINE = 124_196
"""What comes later in the file is no play; the number is LEAF's."""

ROLE, MORE = re.compile(r"  ([a-zA-Z][a-zA-Z ]*)\. (.*)"), re.compile(r"    (.*)")
UNINDENTED = "THE COMEDY OF ERRORS"
UNINDENTED_ROLE, UNINDENTED_MORE = re.compile(r"([a-zA-Z][a-zA-Z ]*)\. (.*)"), re.compile(r"(.*)")
"""How a speech begins and goes on; in one play without the spaces that tell it from directions."""

Speeches = dict[str, list[str]]


def read(paths: Paths) -> Arrays:
    """The text of every role as numbers of characters, back to back; `lengths` and `roles` say
    whose it is."""
    (path,) = paths.values()
    text = _text(path)
    texts = roles(text)
    if not texts:
        raise ValueError(
            f"{str(path)!r} holds no play that LEAF's rules find, which need the indentation of "
            f"eBook 100 before 2018; put that edition there, from {FILES[0].url}"
        )
    return {
        "text": np.concatenate([numbers_of(text) for text in texts.values()]),
        "lengths": np.array([len(text) for text in texts.values()]),
        "roles": np.array(list(texts)),
        "plays": np.array([title for title, _ in _plays(text)]),
    }


def whole(arrays: Arrays) -> dict[str, int | float]:
    """What LEAF finds in the file, of which `build` draws a part."""
    samples = arrays["lengths"] - STEPS
    return {
        "plays": len(arrays["plays"]),
        "roles": len(samples),
        "samples": int(samples.sum()),
        "mean": float(samples.mean()),
        "deviation": float(samples.std()),
        "roles with more than 64 samples": int((samples >= LEAST).sum()),
    }


def build(
    arrays: Arrays,
    seed: int,
    clients: Number | None = None,
    least: Number = LEAST,
    most: Number | None = None,
) -> FederatedData:
    """Roles with at least `least` samples: 31 of them as in the paper, or as many as `clients`.

    Of each role the first `most` samples where that is given, to try something soon. Every
    seed of a run splits each role's samples 80 / 10 / 10, as the paper does. Samples overlap, so a
    test sample shares most of its characters with samples that are trained on.
    """
    samples = arrays["lengths"] - STEPS
    chosen = chosen_clients(samples, clients, least, PUBLISHED, seed, "roles", "samples")
    samples = samples if most is None else np.minimum(samples, whole_number("most", most))
    starts = np.cumsum(arrays["lengths"]) - arrays["lengths"]
    texts = [arrays["text"][starts[k] :][: samples[k] + STEPS] for k in chosen]
    return FederatedData(
        x=np.concatenate([_windows(text) for text in texts]),
        y=np.concatenate([text[STEPS:] for text in texts]).astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(samples[chosen])]),
        ids=tuple(arrays["roles"][chosen].tolist()),
        task="multiclass",
        classes=np.array(list(ALPHABET)),
        fractions=(0.8, 0.1, 0.1),
    )


def roles(text: str) -> dict[str, str]:
    """What each role says, in the order of the plays, where that is more than 80 characters.

    >>> from fairfl.datasets.shakespeare import BY, roles
    >>> said = "  HAMLET. To be,\\n    or not\\n    to be:\\n  GHOST. Mark me.\\n"
    >>> found = roles(f"eBook 100\\nHAMLET\\n\\n{BY}\\n{said * 4}")
    >>> list(found), found["HAMLET_HAMLET"][:24]
    (['HAMLET_HAMLET'], 'To be, or not to be: To ')
    """
    found: Speeches = {}
    for title, speeches in _plays(text):
        for role, parts in speeches.items():
            # LEAF leaves out who has no more than two lines.
            if len(parts) > 2:
                found.setdefault(_name(title, role), []).extend(parts)
    texts = {name: re.sub("  +", " ", " ".join([*parts, ""])) for name, parts in found.items()}
    return {name: said for name, said in texts.items() if len(said) > STEPS}


def _plays(text: str) -> list[tuple[str, Speeches]]:
    """Title and speeches of what comes after each line with the author's name, where two speak."""
    lines = text.splitlines()[1 : LAST_LINE + 1]
    begins = [place for place, line in enumerate(lines) if BY in line]
    found = []
    for begin, end in pairwise([*begins, len(lines)]):
        title = _title(lines, begin)
        speeches = _speeches(lines[begin + 1 : end], title != UNINDENTED)
        found.append((title, speeches))
    return [(title, speeches) for title, speeches in found if len(speeches) > 1]


def _title(lines: list[str], begin: int) -> str:
    """The nearest line that is not blank, from the second above the author's to the seventh."""
    above = [lines[begin - back].strip() for back in range(2, min(begin, 7) + 1)]
    return next((line for line in above if line), "")


def _speeches(lines: list[str], indented: bool) -> Speeches:
    role, more = (ROLE, MORE) if indented else (UNINDENTED_ROLE, UNINDENTED_MORE)
    found: Speeches = {}
    speaker = None
    for line in lines:
        if begins := role.match(line):
            speaker = begins[1].upper()
            # Without indentation, the heading of an act looks like a role.
            if not indented and speaker.startswith("ACT "):
                speaker = None
            else:
                found.setdefault(speaker, []).append(begins[2])
        elif speaker and (goes_on := more.match(line)):
            # ... and so does the edition's remark about copyright, which is in angle brackets.
            if not indented and line.startswith("<"):
                speaker = None
            else:
                found[speaker].append(goes_on[1])
    return found


def _name(title: str, role: str) -> str:
    return re.sub(r"\W+", "_", f"{title}_{role}")


def _text(path: Path) -> str:
    return contents(path).decode("utf-8-sig", errors="replace")


def _windows(text: UInt8[np.ndarray, " characters"]) -> UInt8[np.ndarray, "samples steps"]:
    return sliding_window_view(text[:-1], STEPS)
