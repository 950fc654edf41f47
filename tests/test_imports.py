"""Imports go one way, as the house is drawn."""

import ast
from pathlib import Path

import pytest

import fairfl

ROOMS = [
    "metrics",
    "clients",
    "datasets",
    "models",
    "algorithms",
    "simulation",
    "runs",
    "choice",
    "comparison",
    "report",
    "paper",
    "cli",
]
"""From the ground up: a room imports itself and rooms below it."""

BESIDE = {
    "flower": {"flower", "metrics", "clients", "models", "algorithms", "runs", "choice", "report"}
}
"""Rooms beside the tower: a Flower server compiles no training, so it never simulates."""

SOURCE = Path(fairfl.__file__).parent
DOORS = {"__init__", "__main__"}
FILES = [
    path
    for path in SOURCE.rglob("*.py")
    if path.relative_to(SOURCE).with_suffix("").parts[0] not in DOORS
]


def room(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_rooms(path: Path) -> set[str]:
    modules = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            modules += [f"{node.module}.{alias.name}" for alias in node.names]
    parts = [module.split(".") for module in modules]
    return {part[1] for part in parts if part[0] == "fairfl" and part[1] in {*ROOMS, *BESIDE}}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_itself_and_rooms_below(path):
    here = room(path)
    allowed = BESIDE.get(here) or set(ROOMS[: ROOMS.index(here) + 1])
    assert imported_rooms(path) <= allowed


def test_every_file_stands_in_a_drawn_room():
    assert {room(path) for path in FILES} <= {*ROOMS, *BESIDE}


def test_the_check_would_notice_an_upward_import(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text("import fairfl.cli\nfrom fairfl.runs import train\n")
    assert imported_rooms(path) == {"cli", "runs"}


def test_every_public_name_exists():
    assert all(hasattr(fairfl, name) for name in fairfl.__all__)
