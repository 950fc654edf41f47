"""Compiled programs kept between commands: the second start takes less than half the time."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

import jax

from fairfl.datasets.places import user_cache

SOUND = (0, 10, 2)
"""The first jaxlib whose kept programs load quietly everywhere (jax issue 38445)."""


def keep(place: Path | None = None) -> Path | None:
    """Keep them in the user's cache from now on, and say where.

    None where that cannot be: the folder cannot be written, FAIRFL_CACHE is 0, or jaxlib is too old
    to load what it wrote. A start without it is only slower.

    >>> import os, pathlib
    >>> from fairfl.runs.compiled import keep
    >>> keep(pathlib.Path(os.devnull)) is None
    True
    """
    jaxlib = version("jaxlib")
    if os.environ.get("FAIRFL_CACHE") == "0" or _numbers(jaxlib) < SOUND:
        return None
    try:
        # A machine's own folder, because the programs use what its processor has.
        machine = f"{jaxlib}-{platform.machine()}-{platform.node()}"
        kept = (place or user_cache()) / "xla" / machine
        kept.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    if not os.access(kept, os.W_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(kept))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    return kept


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdigit())
