"""The page at the end of a command."""

import shlex
from pathlib import Path

from fairfl.cli.errors import note
from fairfl.report import writing


def drawn(kept: Path) -> list[str]:
    """Draw the report of what is kept, and say where it is.

    Whatever goes wrong in drawing is told and no more, because the run itself is safe by now.
    """
    try:
        return [f"Open {writing.write(kept)}"]
    except Exception as error:
        again = f"fairfl report {shlex.quote(str(kept))}"
        note(f"the run is kept, but not its report ({error}); draw it with: {again}")
        return []
