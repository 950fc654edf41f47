"""How much memory a large table takes to load: ten million rows, a hundred thousand clients.

    python benchmarks/tables.py [ROWS [CLIENTS]]      10,000,000 and 100,000 unless given

Writes a Parquet file with eight columns (six numbers, a category, the label) and loads it in a
process of its own, whose peak memory it prints beside that of the data when they are loaded.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import fairfl


def write(file: Path, rows: int, clients: int) -> None:
    numbers = ", ".join(f"random() AS x{n}" for n in range(6))
    query = (
        f"SELECT CAST(floor({clients} * random() * random()) AS INTEGER) AS client, {numbers}, "
        f"['red', 'green', 'blue'][1 + i % 3] AS colour, i % 2 AS label FROM range({rows}) t(i)"
    )
    duckdb.execute("SELECT setseed(0.5)")
    duckdb.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet)")


def peak() -> float:
    """Megabytes at the most so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def load(file: str) -> None:
    before, began = peak(), time.perf_counter()
    data = fairfl.from_table(file, client="client", label="label")
    seconds, most = time.perf_counter() - began, peak()
    held = sum(array.nbytes for array in (data.x, data.y, data.offsets)) / 1e6
    print(
        f"{len(data.y):,} rows, {data.clients:,} clients, {data.x.shape[1]} features in "
        f"{seconds:.1f} s: {held:,.0f} MB in memory, {most - before:,.0f} MB at the peak "
        f"({(most - before) / held:.2f} times), {before:,.0f} MB before"
    )


def main(rows: int, clients: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "table.parquet")
        write(file, rows, clients)
        print(f"{file.stat().st_size / 1e6:,.0f} MB of Parquet")
        subprocess.run([sys.executable, __file__, "load", str(file)], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["load"]:
        load(sys.argv[2])
    else:
        given = [int(word) for word in sys.argv[1:]]
        main(*given, *(10_000_000, 100_000)[len(given) :])
