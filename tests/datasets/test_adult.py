"""Adult: what the published files become, and what a damaged one hears."""

import numpy as np
import pytest

import fairfl
from fairfl.datasets import adult

ROW = "39, State-gov, 77516, {}, 13, Divorced, Sales, Wife, Black, Female, 2174, 0, 40, {}, {}\n"


@pytest.fixture
def folder(tmp_path):
    rows = [ROW.format("Bachelors", "Peru", "<=50K"), ROW.format("Doctorate", "?", ">50K")]
    tests = [ROW.format("Doctorate", "Hong", ">50K."), ROW.format("10th", "Peru", "<=50K.")]
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.data").write_text("".join(rows) + "\n")
    test = "|1x3 Cross validator\n" + "".join(tests) + "\n"
    (tmp_path / "adult" / "adult.test").write_text(test)
    return tmp_path


def test_doctorates_are_one_client_and_the_published_split_stays(folder):
    data = fairfl.datasets.load("adult", data_dir=folder)
    assert data.ids == ("PhD", "non-PhD")
    assert data.sizes.tolist() == [2, 2]
    assert data.roles.tolist() == [0, 2, 0, 2]
    assert data.classes[data.y].tolist() == [">50K", ">50K", "<=50K", "<=50K"]


def test_inputs_are_the_99_categories_and_an_unknown_one_is_all_zeros(folder):
    data = fairfl.datasets.load("adult", data_dir=folder)
    assert data.x.shape == (4, 99)
    assert data.x.sum(axis=1).tolist() == [7, 8, 8, 8]
    first = sum(len(names.split(", ")) for column, names in adult.CATEGORIES.items() if column < 13)
    country = adult.PLACES[13]["Peru"]
    assert data.x[:, first + country].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("1, 2, 3\n", r"adult.data' has 3 cells in line 3 and not 15; copy or download it again"),
        (ROW.format("PhD", "Peru", ">50K"), r"holds 'PhD' in line 3, which is none of Bachelors,"),
        (ROW.format("10th", "Peru", "rich"), r"holds 'rich' in line 3, which is none of <=50K"),
    ],
)
def test_a_damaged_file_hears_a_sentence(folder, line, sentence):
    with (folder / "adult" / "adult.data").open("r+") as file:
        text = file.read().rstrip() + "\n"
        file.seek(0)
        file.write(text + line)
    with pytest.raises(ValueError, match=sentence):
        fairfl.datasets.load("adult", data_dir=folder)


def test_an_empty_file_hears_a_sentence(folder):
    (folder / "adult" / "adult.test").write_text("|1x3 Cross validator\n")
    with pytest.raises(ValueError, match=r"adult.test' has no rows"):
        fairfl.datasets.load("adult", data_dir=folder)


def test_the_real_files(real):
    """The counts that the files are known by: rows, doctorates and incomes above 50,000."""
    data = fairfl.datasets.load("adult", data_dir=real)
    split = data.split(0)
    assert data.x.shape == (48_842, 99)
    assert split.train.sizes.tolist() == [413, 32_148]
    assert split.test.sizes.tolist() == [181, 16_100]
    assert data.y[split.train.places].mean() == pytest.approx(0.2408, abs=5e-5)
    assert data.y[split.test.places].mean() == pytest.approx(0.2362, abs=5e-5)
    assert np.unique(data.x).tolist() == [0, 1]
