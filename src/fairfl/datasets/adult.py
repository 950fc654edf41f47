"""Adult (UCI): does a person earn more than 50,000 dollars a year? Two clients, PhD and non-PhD.

The data and the split of AFL (Mohri et al., 2019) and of the q-FFL paper's comparison with it: the
99 categories of the eight categorical columns as inputs of 0 and 1, the numeric columns left out,
an unknown value (`?`) all zeros; adult.data trains, adult.test tests.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Int8

from fairfl.clients.federated import FederatedData
from fairfl.clients.partition import dealt
from fairfl.datasets.files import File, Paths, contents
from fairfl.datasets.stored import Arrays

WEB = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
FILES = (
    File(
        "adult",
        "adult.data",
        f"{WEB}/adult.data",
        "sha256:5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    File(
        "adult",
        "adult.test",
        f"{WEB}/adult.test",
        "sha256:a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
)

COLUMNS = 15
CATEGORIES = {
    1: "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay, "
    "Never-worked",
    3: "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, 7th-8th, "
    "12th, Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool",
    5: "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, "
    "Married-AF-spouse",
    6: "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, "
    "Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, "
    "Priv-house-serv, Protective-serv, Armed-Forces",
    7: "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    8: "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    9: "Female, Male",
    13: "United-States, Cambodia, England, Puerto-Rico, Canada, Germany, "
    "Outlying-US(Guam-USVI-etc), India, Japan, Greece, South, China, Cuba, Iran, Honduras, "
    "Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, Portugal, Ireland, France, "
    "Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, Hungary, Guatemala, Nicaragua, "
    "Scotland, Thailand, Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, Hong, Holand-Netherlands",
}
"""The values of each categorical column, in the order of adult.names."""

PLACES = {
    column: {name: place for place, name in enumerate(names.split(", "))}
    for column, names in CATEGORIES.items()
}
UNKNOWN = -1
EDUCATION, INCOME = 3, 14
INCOMES = ("<=50K", ">50K")


def read(paths: Paths) -> Arrays:
    """Both files as numbers: `codes` has a column per categorical one, and the income as the last.

    >>> import pathlib, tempfile
    >>> from fairfl.datasets.adult import read
    >>> row = "39, State-gov, 77516, Doctorate, 16, Divorced, Sales, Wife, Black, Female, 0, 0, 40"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "adult.data")
    ...     _ = path.write_text(f"{row}, Peru, >50K\\n{row}, ?, <=50K\\n")
    ...     read({"adult.data": path, "adult.test": path})["codes"][:2].tolist()
    [[5, 13, 1, 3, 0, 4, 0, 38, 1], [5, 13, 1, 3, 0, 4, 0, -1, 0]]
    """
    tables = [_codes(paths[name]) for name in ("adult.data", "adult.test")]
    return {
        "codes": np.concatenate(tables),
        "roles": np.repeat(np.array([0, 2], np.int8), [len(table) for table in tables]),
    }


def build(arrays: Arrays, seed: int) -> FederatedData:  # noqa: ARG001  nothing is drawn
    """Two clients, PhD first, with the published split.

    >>> import numpy as np
    >>> from fairfl.datasets.adult import build
    >>> codes = np.array([[5, 13, 1, 3, 0, 4, 0, 38, 1], [5, 0, 1, 3, 0, 4, 0, -1, 0]], np.int8)
    >>> data = build({"codes": codes, "roles": np.zeros(2, np.int8)}, seed=0)
    >>> data.ids, data.x.shape, data.x.sum(axis=1).tolist(), data.y.tolist()
    (('PhD', 'non-PhD'), (2, 99), [8.0, 7.0], [1, 0])
    """
    codes = arrays["codes"]
    doctorate = PLACES[EDUCATION]["Doctorate"]
    not_phd = codes[:, list(PLACES).index(EDUCATION)] != doctorate
    whole = FederatedData(
        x=_one_hot(codes[:, :-1]),
        y=codes[:, -1].astype(np.int32),
        offsets=np.array([0, len(codes)]),
        ids=("all",),
        task="binary",
        classes=np.array(INCOMES),
        roles=arrays["roles"],
    )
    return dealt(whole, not_phd.astype(np.int64), ("PhD", "non-PhD"))


def _one_hot(codes: Int8[np.ndarray, "rows columns"]) -> np.ndarray:
    widths = [len(places) for places in PLACES.values()]
    x = np.zeros((len(codes), sum(widths)), np.float32)
    starts = np.cumsum([0, *widths[:-1]])
    rows, columns = np.nonzero(codes != UNKNOWN)
    x[rows, starts[columns] + codes[rows, columns]] = 1
    return x


def _codes(path: Path) -> Int8[np.ndarray, "rows columns"]:
    lines = contents(path).decode("utf-8").splitlines()
    # adult.test begins with a remark, |1x3 Cross validator, and both files end in a blank line.
    numbered = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and line[0] != "|"]
    # The labels of adult.test end in a full stop.
    rows = [[cell.strip() for cell in line.rstrip(".").split(",")] for _, line in numbered]
    if not rows:
        raise ValueError(f"{str(path)!r} has no rows; copy or download it again")
    for (number, _), row in zip(numbered, rows, strict=True):
        if len(row) != COLUMNS:
            raise ValueError(
                f"{str(path)!r} has {len(row)} cells in line {number:,} and not {COLUMNS}; copy "
                "or download it again"
            )
    numbers = [number for number, _ in numbered]
    columns = {**PLACES, INCOME: dict(zip(INCOMES, (0, 1), strict=True))}
    coded = [
        _column([row[column] for row in rows], places, numbers, path)
        for column, places in columns.items()
    ]
    return np.stack(coded, axis=1)


def _column(
    names: list[str], places: dict[str, int], numbers: list[int], path: Path
) -> Int8[np.ndarray, " rows"]:
    known = places if INCOMES[0] in places else {**places, "?": UNKNOWN}
    for number, name in zip(numbers, names, strict=True):
        if name not in known:
            raise ValueError(
                f"{str(path)!r} holds {name!r} in line {number:,}, which is none of "
                f"{', '.join(places)}; copy or download it again"
            )
    return np.array([known[name] for name in names], np.int8)
