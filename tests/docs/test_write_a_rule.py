"""docs/write-a-rule.md is run as it stands, and holds what it says."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from cohorts import cohort

PAGE = Path(__file__).parents[2] / "docs" / "write-a-rule.md"


@pytest.fixture(scope="module")
def blocks():
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def run(blocks):
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_the_rule_takes_ten_lines(blocks):
    lines = [line for line in blocks[0].splitlines() if line and "import" not in line]
    assert len(lines) <= 10


def test_the_page_runs_and_compares_the_rule(blocks, capsys):
    names = run(blocks)
    assert "largest" in names["ours"].history
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [name, metric] for name in names["rivals"] for metric in ("average", "worst10", "variance")
    ]


def test_its_rule_is_its_formula_by_hand(blocks):
    """F = (1, 3) with equal shares, mean 2: (1/2)(1 - c/2) and (1/2)(1 + c/2)."""
    rule = run(blocks[:1])["in_proportion"]
    a = rule.coefficients({"c": jnp.array(0.5)}, (), cohort([1.0, 3.0]))[0]
    np.testing.assert_allclose(a, [0.375, 0.625])
