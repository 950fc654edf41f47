"""Omniglot (Lake et al., 2015): 1,623 characters of 50 alphabets, each drawn by 20 people.

The q-FFL paper's meta-learning tasks: a client tells five characters apart. 300 clients to
meta-train on have characters of the first 1,200 in sorted order, 100 to meta-test on have others of
the last 423. Of each character ten drawings are for support, on which a client adapts, and ten are
the query. As in its reference code, images shrink to 28 x 28 pixels, the nearest one each, and
every pixel is (v - mean) / (deviation + .001) over all images; unlike there, the five characters
of a task differ (it draws them with replacement).
"""

import re
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt8

from fairfl.clients.federated import FederatedData
from fairfl.clients.randomness import Stream, generator
from fairfl.datasets.files import File, Paths
from fairfl.datasets.stored import Arrays

WEB = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
FILES = (
    File(
        "omniglot",
        "images_background.zip",
        f"{WEB}/images_background.zip",
        "md5:68d2efa1b9178cc56df9314c21c6e718",
    ),
    File(
        "omniglot",
        "images_evaluation.zip",
        f"{WEB}/images_evaluation.zip",
        "md5:6b91aef0f799c5bb55b94e3f2daec811",
    ),
)

DRAWINGS, DRAWN_SIDE, SIDE = 20, 105, 28
WAYS, SHOTS = 5, 10
FIRST = 1_200
TASKS, HELD_OUT = 300, 100

IMAGE = re.compile(r"[^/]+/([^/]+/character\d+)/\d+_(\d+)\.png")
"""images_background/Alphabet/character01/0709_01.png: the character and the number of the drawing.
Whatever else a zip holds is passed over."""

TRAIN, TEST, SUPPORT = 0, 2, 3


def read(paths: Paths) -> Arrays:
    """Every drawing of every character, in sorted order, a bit per pixel: 1 is paper, 0 is ink."""
    found: dict[str, dict[int, np.ndarray]] = {}
    for path in paths.values():
        for character, drawing, pixels in _drawings(path):
            found.setdefault(character, {})[drawing] = pixels
    for character, drawings in found.items():
        if len(drawings) != DRAWINGS:
            raise ValueError(
                f"the character {character} has {len(drawings)} drawings and not {DRAWINGS} in "
                f"{', '.join(str(path) for path in paths.values())}; copy or download them again"
            )
    names = sorted(found)
    images = [[found[name][drawing] for drawing in sorted(found[name])] for name in names]
    return {"characters": np.array(names), "images": np.packbits(images, axis=-1)}


def whole(arrays: Arrays) -> dict[str, int | float]:
    """What the zips hold, of which `build` draws tasks."""
    characters, drawings = arrays["images"].shape[:2]
    return {"characters": characters, "images": characters * drawings}


def build(arrays: Arrays, seed: int) -> FederatedData:
    """300 tasks to train on and 100 for evaluation only; `seed` draws the characters of each."""
    images = np.unpackbits(arrays["images"], axis=-1, count=SIDE * SIDE)
    if len(images) < FIRST + WAYS:
        raise ValueError(
            f"the zips of Omniglot hold {len(images)} characters, but more than {FIRST + WAYS} are "
            "needed; copy or download them again"
        )
    of = np.stack([_characters(seed, task, len(images)) for task in range(TASKS + HELD_OUT)])
    rows = 2 * WAYS * SHOTS
    roles = np.repeat(np.array([SUPPORT, TRAIN, SUPPORT, TEST], np.int8), WAYS * SHOTS).reshape(
        2, rows
    )
    return FederatedData(
        x=_normalised(images)[of][:, :, : 2 * SHOTS].swapaxes(1, 2).reshape(-1, SIDE * SIDE),
        y=np.tile(np.arange(WAYS, dtype=np.int32), len(of) * 2 * SHOTS),
        offsets=np.arange(len(of) + 1) * rows,
        ids=(
            *(f"task-{task:03d}" for task in range(TASKS)),
            *(f"held-out-{task:03d}" for task in range(HELD_OUT)),
        ),
        task="multiclass",
        classes=np.arange(WAYS),
        roles=np.repeat(roles, [TASKS, HELD_OUT], axis=0).ravel(),
    )


def _characters(seed: int, task: int, characters: int) -> np.ndarray:
    """Five different ones, each task from a stream of its own."""
    first, last = (0, FIRST) if task < TASKS else (FIRST, characters)
    draw = generator(seed, Stream.DATA, client=task)
    return draw.choice(np.arange(first, last), WAYS, replace=False)


def _normalised(images: UInt8[np.ndarray, "characters drawings pixels"]) -> np.ndarray:
    """(v - mean) / (deviation + .001) of 255 for paper and 0 for ink, over all images."""
    mean = images.mean(axis=(0, 1))
    deviation = np.sqrt(mean * (1 - mean))
    values = (np.array([[0.0], [255.0]]) - 255 * mean) / (255 * deviation + 0.001)
    return np.where(images == 1, values[1], values[0]).astype(np.float32)


# ---- zips and images ----


def _drawings(path: Path) -> list[tuple[str, int, Bool[np.ndarray, " pixels"]]]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [(name, IMAGE.fullmatch(name)) for name in archive.namelist()]
            found = [
                (match[1], int(match[2]), _shrunk(archive.read(name), name))
                for name, match in names
                if match
            ]
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error, struct.error) as error:
        raise ValueError(
            f"{str(path)!r} is damaged or no zip of Omniglot ({error}); delete it, and it is "
            "downloaded again or can be copied again"
        ) from error
    if not found:
        raise ValueError(
            f"{str(path)!r} holds no image such as {path.stem}/Latin/character01/0709_01.png; it "
            "is another zip, so copy or download it again"
        )
    return found


def _shrunk(content: bytes, name: str) -> Bool[np.ndarray, " pixels"]:
    """The pixel nearest to the middle of each of 28 x 28 fields."""
    middle = (np.arange(SIDE) + 0.5) * DRAWN_SIDE / SIDE
    nearest = middle.astype(int)
    return one_bit(content, name)[np.ix_(nearest, nearest)].ravel()


def one_bit(content: bytes, name: str) -> Bool[np.ndarray, "rows columns"]:
    """A PNG file of 105 x 105 pixels of one bit, as Omniglot has them: no filter, not interlaced.

    >>> from fairfl.datasets.omniglot import one_bit
    >>> one_bit(b"GIF89a", "a.png")
    Traceback (most recent call last):
    ValueError: a.png is no PNG file of 105 x 105 pixels of one bit
    """
    size = (DRAWN_SIDE, DRAWN_SIDE, 1, 0, 0, 0, 0)
    if content[:8] != b"\x89PNG\r\n\x1a\n" or struct.unpack_from(">IIBBBBB", content, 16) != size:
        raise ValueError(f"{name} is no PNG file of 105 x 105 pixels of one bit")
    packed, at = [], 8
    while at < len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        if kind == b"IDAT":
            packed.append(content[at + 8 : at + 8 + length])
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(b"".join(packed)), np.uint8).reshape(DRAWN_SIDE, -1)
    if rows[:, 0].any():
        raise ValueError(f"{name} has filtered rows, which Omniglot's images do not have")
    return np.unpackbits(rows[:, 1:], axis=1, count=DRAWN_SIDE).astype(bool)
