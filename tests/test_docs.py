"""The pages' code and the examples run as they stand."""

import re
import runpy
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]


def blocks(page):
    """The Python of a page, with lines where they stand in it."""
    text = (TOP / "docs" / page).read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [("\n" * text[: one.start(1)].count("\n")) + one.group(1) for one in found]


@pytest.mark.parametrize("page", ["models.md"])
def test_the_code_of_a_page_runs_from_top_to_bottom(page):
    space = {}
    for block in blocks(page):
        exec(compile(block, page, "exec"), space)
    assert space["result"].rounds == 3


@pytest.mark.parametrize("script", ["equinox_module.py", "flax_module.py"])
def test_an_example_runs_as_it_stands(script, capsys):
    runpy.run_path(str(TOP / "examples" / script), run_name="__main__")
    assert "average" in capsys.readouterr().out
