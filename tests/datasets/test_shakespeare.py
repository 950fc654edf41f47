"""Shakespeare: who says what by LEAF's rules, samples of 80 characters, 31 roles drawn."""

import gzip

import numpy as np
import pytest

import fairfl
from fairfl.clients.characters import ALPHABET
from fairfl.datasets.shakespeare import BY, _plays, _text, roles

LONG = "and so it is with every word that he or she has ever said upon this narrow stage of ours"
PLAY = f"""eBook 100
THE FIRST PLAY

{BY}

DRAMATIS PERSONAE
  HAMLET, a prince
ACT I.
  HAMLET. First,
    second   and
    third; {LONG}
                        Enter GHOST
  Ghost. One {LONG}
    two {LONG}
  GHOST. three {LONG}
  CLOWN. {LONG}
    {LONG}
  MUTE. a
    b
    c
"""


def said(text):
    return roles(text.replace("\n", "\r\n"))


# ---- LEAF's rules ----


def test_a_role_says_its_indented_lines_and_everything_indented_deeper_until_another_speaks():
    direction = " Enter GHOST"
    assert said(PLAY)["THE_FIRST_PLAY_HAMLET"] == f"First, second and third; {LONG}{direction} "


def test_a_role_is_one_whatever_the_case_of_its_name():
    found = said(PLAY)["THE_FIRST_PLAY_GHOST"]
    assert found == f"One {LONG} two {LONG} three {LONG} "


def test_who_has_two_lines_or_not_more_than_80_characters_is_left_out():
    assert list(said(PLAY)) == ["THE_FIRST_PLAY_HAMLET", "THE_FIRST_PLAY_GHOST"]


def test_every_work_of_the_author_is_a_play_unless_fewer_than_two_speak():
    sonnets = f"THE SONNETS\n\n1609\n\n{BY}\n\n  POET. {LONG}\n    {LONG}\n    {LONG}\n"
    second = PLAY.replace("THE FIRST PLAY\n", "1599\n\nTHE SECOND: PLAY\n\n\n\n")
    found = said(PLAY + sonnets + second)
    assert list(found) == [
        "THE_FIRST_PLAY_HAMLET",
        "THE_FIRST_PLAY_GHOST",
        "THE_SECOND_PLAY_HAMLET",
        "THE_SECOND_PLAY_GHOST",
    ]


def test_the_comedy_of_errors_has_no_indentation():
    comedy = f"""eBook 100
THE COMEDY OF ERRORS

{BY}

ACT I. SCENE 1
Nobody speaks yet
DROMIO. One
two {LONG}
<<THIS EDITION IS COPYRIGHTED
and nobody says this
EGEON. Three
four
"""
    found = said(comedy + "\n  DUKE. five six\n" + LONG)
    assert found == {"THE_COMEDY_OF_ERRORS_EGEON": f"Three four DUKE. five six {LONG} "}
    twice = said(comedy + f"DROMIO. seven\neight\n{LONG}")
    assert twice["THE_COMEDY_OF_ERRORS_DROMIO"] == f"One two {LONG} seven eight {LONG} "


# ---- samples ----


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shakespeare").mkdir()
    content = ("\ufeff" + PLAY.replace("\n", "\r\n")).encode()
    (tmp_path / "shakespeare" / "pg100.txt.gz").write_bytes(gzip.compress(content))
    return tmp_path


def test_a_sample_is_80_characters_and_the_one_after_them_at_every_place(folder):
    data = fairfl.datasets.load("shakespeare", data_dir=folder, least=1)
    text = said(PLAY)["THE_FIRST_PLAY_HAMLET"]
    letters = np.array(list(ALPHABET))
    assert (data.ids[0], data.sizes[0]) == ("THE_FIRST_PLAY_HAMLET", len(text) - 80)
    assert ["".join(row) for row in letters[data.x[:3]]] == [text[k : k + 80] for k in range(3)]
    assert "".join(data.classes[data.y[: data.sizes[0]]]) == text[80:]
    assert data.x.dtype == np.uint8
    assert (data.task, len(data.classes), data.fractions) == ("multiclass", 80, (0.8, 0.1, 0.1))
    second = said(PLAY)["THE_FIRST_PLAY_GHOST"]
    assert "".join(letters[data.x[data.sizes[0]]]) == second[:80]
    assert data.offsets.tolist() == [0, len(text) - 80, len(text) + len(second) - 160]


def test_a_role_has_65_samples_unless_fewer_are_asked_for(folder):
    assert fairfl.datasets.load("shakespeare", data_dir=folder).clients == 1
    with pytest.raises(ValueError, match=r"clients=3 are more than the 2 roles with at least 1 sa"):
        fairfl.datasets.load("shakespeare", data_dir=folder, least=1, clients=3)
    with pytest.raises(ValueError, match=r"least=9,000, but the largest of 2 roles has \d+ samp"):
        fairfl.datasets.load("shakespeare", data_dir=folder, least=9_000)


def test_a_role_has_its_first_samples_where_a_most_is_asked_for(folder):
    whole, few = (
        fairfl.datasets.load("shakespeare", data_dir=folder, least=1, most=most)
        for most in (None, 5)
    )
    assert few.ids == whole.ids
    assert few.sizes.tolist() == [5, 5]
    for client in range(2):
        first, other = int(whole.offsets[client]), 5 * client
        np.testing.assert_array_equal(few.x[other : other + 5], whole.x[first : first + 5])
        np.testing.assert_array_equal(few.y[other : other + 5], whole.y[first : first + 5])
    with pytest.raises(ValueError, match=r"most=0 must be a whole number of at least 1"):
        fairfl.datasets.load("shakespeare", data_dir=folder, most=0)


def test_half_a_packed_text_hears_a_sentence(folder):
    place = folder / "shakespeare" / "pg100.txt.gz"
    place.write_bytes(place.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"pg100.txt.gz' is damaged \(Compressed file ended"):
        fairfl.datasets.load("shakespeare", data_dir=folder)


def test_another_edition_hears_a_sentence(folder):
    (folder / "shakespeare" / "pg100.txt.gz").unlink()
    (folder / "shakespeare" / "pg100.txt").write_text("HAMLET.\nTo be\n")
    with pytest.raises(ValueError, match=r"pg100.txt' holds no play that LEAF's rules find"):
        fairfl.datasets.load("shakespeare", data_dir=folder)


# ---- the real text ----


def test_the_real_text_has_leafs_plays_roles_and_samples(real):
    text = _text(real / "shakespeare" / "pg100.txt.gz")
    assert len(_plays(text)) == 36
    samples = np.array([len(said) - 80 for said in roles(text).values()])
    assert (len(samples), samples.sum()) == (1_129, 4_226_159)
    assert (round(samples.mean()), round(samples.std())) == (3_743, 6_212)
    assert (samples > 64).sum() == 1_056


def test_any_seed_draws_31_roles_with_the_papers_mean_and_deviation(real):
    first, second = (
        fairfl.datasets.load("shakespeare", seed=seed, data_dir=real) for seed in (0, 1)
    )
    for data in (first, second):
        assert data.clients == 31
        assert (round(data.sizes.mean()), round(data.sizes.std())) == (3_749, 6_912)
    assert first.ids != second.ids
    again = fairfl.datasets.load("shakespeare", seed=1, data_dir=real)
    assert again.fingerprint == second.fingerprint
