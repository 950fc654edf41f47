"""A run that is kept while it is trained goes on to the same bytes, or says why it cannot."""

import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import fairfl
from fairfl.algorithms import rules
from fairfl.algorithms.algorithm import assemble
from fairfl.algorithms.rules import Needs, Rule
from fairfl.algorithms.work import Work
from fairfl.runs import atomic, keeping
from fairfl.runs.keeping import Keeper
from fairfl.simulation import engine
from fairfl.simulation.interruption import Interrupted

OPTIONS = {"rounds": 11, "cohort": 3, "seed": [0, 1], "evaluate_every": 4}


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    """A checkpoint after every chunk, and chunks of a round."""
    monkeypatch.setattr(keeping, "SECONDS", 0)
    monkeypatch.setattr(keeping, "SHARE", 1e9)
    monkeypatch.setattr(engine, "SECONDS", 0)


@pytest.fixture(scope="module")
def family():
    return fairfl.q_fedavg(q=[0, 1, 5])


@pytest.fixture(scope="module")
def whole(data, model, family, tmp_path_factory):
    """The folder of the uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    fairfl.train(data, model, family, out=folder, **OPTIONS)
    return folder


class StopError(Exception):
    pass


def stopped(data, model, algorithm, out, after, **options):
    """Trained for so many chunks, and then stopped by an error."""
    chunks = []

    def stop(progress):
        chunks.append(progress)
        if len(chunks) == after:
            raise StopError

    with pytest.raises(StopError):
        fairfl.train(data, model, algorithm, out=out, on_chunk=stop, **{**OPTIONS, **options})


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


def assert_same(one, two):
    one, two = files(one), files(two)
    assert one.keys() == two.keys()
    for name in one.keys() - {"timings.json"}:
        assert one[name] == two[name], name


def refused(data, model, algorithm, out, **options):
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"\A[^\n]+; [^\n]+\Z") as caught:
        fairfl.train(data, model, algorithm, out=out, **{**OPTIONS, **options})
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    return str(caught.value)


# It goes on exactly -------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 5, 13, 22])
def test_a_stopped_run_goes_on_to_the_same_bytes(data, model, family, whole, tmp_path, after):
    stopped(data, model, family, tmp_path / "run", after)
    assert (tmp_path / "run" / "checkpoints").is_dir()
    fairfl.train(data, model, family, out=tmp_path / "run", resume=True, **OPTIONS)
    assert_same(whole, tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_stopped_again_and_again(data, model, family, whole, tmp_path):
    for _ in range(4):
        stopped(data, model, family, tmp_path / "run", 4, resume=True)
    fairfl.train(data, model, family, out=tmp_path / "run", resume=True, **OPTIONS)
    assert_same(whole, tmp_path / "run")


def visits():
    """A rule with state by client id, updates of past rounds, and coefficients that show both."""

    def coefficients(hyper, state, cohort):
        seen = state.at[cohort.ids].add(1)
        past = jnp.where(cohort.past_ages > 0, 1 / (seen.max() + cohort.past_ages), 0)
        now = cohort.weights / seen[cohort.ids]
        return jnp.concatenate([now, past]) / 4, seen, {"visits": seen.max()}

    return Rule(
        "visits",
        lambda hyper, clients: jnp.zeros(clients, jnp.int32),
        coefficients,
        Needs(gram=True, history=2),
    )


def own():
    """A work with a model of every client's own, v_k <- v_k - .1, reported through D_k."""
    return Work(
        "own",
        start=lambda hyper, model, w, v: v,
        step=lambda hyper, model, w, local, batch: local,
        finish=lambda hyper, model, w, local, n: (
            jax.tree.map(lambda leaf: leaf * 0 + local["bias"].mean(), w),
            jax.tree.map(lambda leaf: leaf - 0.1, local),
        ),
        epochs=1,
        batch_size=8,
        personal=lambda w: w,
    )


def one(work, rule, server=None):
    return assemble("one", work, rule, {"learning_rate": 0.1, "L": 10.0}, "by-size", "size", server)


STATEFUL = {
    "server": lambda: one(fairfl.fedavg().work, rules.mean(), optax.adam(0.01)),
    "rule and memory": lambda: one(fairfl.fedavg().work, visits()),
    "personal models": lambda: one(own(), rules.mean()),
    "fedfv": lambda: fairfl.fedfv(alpha=[0, 0.5], tau=[0, 2]),
    "aaggff": lambda: fairfl.aaggff(eta=[1, 9]),
}


@pytest.mark.parametrize("kind", STATEFUL)
@pytest.mark.parametrize("x64", [False, True])
def test_every_state_is_kept(data, model, tmp_path, kind, x64):
    algorithm, options = STATEFUL[kind](), {"x64": x64, "seed": 0}
    fairfl.train(data, model, algorithm, out=tmp_path / "whole", **{**OPTIONS, **options})
    stopped(data, model, algorithm, tmp_path / "run", 6, **options)
    with ThreadPoolExecutor(1) as pool:
        fairfl.train(
            data, model, algorithm, out=tmp_path / "run", resume=True, executor=pool,
            **{**OPTIONS, **options},
        )  # fmt: skip
    assert_same(tmp_path / "whole", tmp_path / "run")


def test_a_run_that_dies_goes_on_to_the_same_bytes(data, model, tmp_path, monkeypatch):
    algorithm = fairfl.fedavg(learning_rate=[0.1, 1e30])
    options = {**OPTIONS, "width": 1, "rounds": 30}
    for at in (1, 2):
        stopped(data, model, algorithm, tmp_path / "run", at, resume=True, **options)
    fairfl.train(data, model, algorithm, out=tmp_path / "run", resume=True, **options)
    monkeypatch.setattr(engine, "SECONDS", 9)
    result = fairfl.train(data, model, algorithm, out=tmp_path / "whole", **options)
    assert any(member.stopped for member in result.members)
    assert_same(tmp_path / "whole", tmp_path / "run")


def test_above_ten_thousand_clients_only_the_last_evaluation_keeps_them(
    data, model, family, tmp_path, monkeypatch
):
    monkeypatch.setattr(engine, "CLIENTS_IN_HISTORY", 5)
    fairfl.train(data, model, family, out=tmp_path / "whole", **OPTIONS)
    stopped(data, model, family, tmp_path / "run", 15)
    fairfl.train(data, model, family, out=tmp_path / "run", resume=True, **OPTIONS)
    assert_same(tmp_path / "whole", tmp_path / "run")


def test_a_regression_without_a_test_split(tmp_path):
    draw = np.random.default_rng(0)
    clients = {k: (draw.normal(size=(9, 2)), draw.normal(size=9)) for k in range(3)}
    data = fairfl.from_arrays(clients, split=None)
    model = fairfl.models.mlp(data)
    fairfl.train(data, model, fairfl.fedavg(), out=tmp_path / "whole", **OPTIONS)
    stopped(data, model, fairfl.fedavg(), tmp_path / "run", 9)
    fairfl.train(data, model, fairfl.fedavg(), out=tmp_path / "run", resume=True, **OPTIONS)
    assert_same(tmp_path / "whole", tmp_path / "run")


# The folder ---------------------------------------------------------------------------------------


def test_the_configuration_is_there_from_the_start(data, model, family, tmp_path):
    seen = {}

    def look(_):
        seen.setdefault("files", files(tmp_path / "run"))

    fairfl.train(data, model, family, out=tmp_path / "run", on_chunk=look, **OPTIONS)
    assert seen["files"].keys() == {"configuration.json", "data.json"}
    after = files(tmp_path / "run")
    assert all(after[name] == content for name, content in seen["files"].items())


def test_what_is_kept_is_what_write_writes(data, model, family, whole, tmp_path):
    result = fairfl.train(data, model, family, **OPTIONS)
    assert_same(whole, fairfl.runs.folder.write(result, tmp_path / "run"))


def test_a_finished_run_is_read_and_left_as_it_is(data, model, family, whole):
    before = files(whole)
    again = fairfl.train(data, model, family, out=whole, resume=True, **OPTIONS)
    assert files(whole) == before
    result = fairfl.train(data, model, family, **OPTIONS)
    for a, b in zip(jax.tree.leaves(again.params), jax.tree.leaves(result.params), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_finished_run_comes_back_in_the_models_own_tree(data, tmp_path):
    model = fairfl.models.mlp(data, hidden=(3,))
    for _ in range(2):
        result = fairfl.train(
            data, model, fairfl.fedavg(), out=tmp_path / "run", resume=True, **OPTIONS
        )
        form = jax.tree.structure(model.init(jax.random.key(0)))
        assert jax.tree.structure(result.params) == form


def test_resume_begins_where_there_is_nothing(data, model, family, whole, tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        fairfl.train(data, model, family, out=tmp_path / name, resume=True, **OPTIONS)
        assert_same(whole, tmp_path / name)


def test_an_unfinished_run_can_be_begun_anew(data, model, family, whole, tmp_path):
    stopped(data, model, fairfl.fedavg(), tmp_path / "run", 3)
    fairfl.train(data, model, family, out=tmp_path / "run", overwrite=True, **OPTIONS)
    assert_same(whole, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_unfinished_run_says_how_to_go_on(data, model, family, tmp_path):
    stopped(data, model, family, tmp_path / "run", 3)
    with pytest.raises(ValueError, match=r"is unfinished; go on with .*run', resume=True\)"):
        fairfl.load_run(tmp_path / "run")
    with Keeper(tmp_path / "two", command="fairfl sweep x") as keeper, pytest.raises(StopError):
        fairfl.train(data, model, family, out=keeper, on_chunk=stop_at_once, **OPTIONS)
    with pytest.raises(ValueError, match=r"go on with fairfl sweep x --out .*two --resume"):
        fairfl.load_run(tmp_path / "two")


def stop_at_once(_):
    raise StopError


def test_a_run_that_fails_before_its_first_checkpoint_leaves_nothing(
    data, model, family, tmp_path, monkeypatch
):
    monkeypatch.setattr(keeping, "SECONDS", 99)
    stopped(data, model, family, tmp_path / "run", 3)
    assert list(tmp_path.iterdir()) == []


def test_seconds_are_counted_over_interruptions(data, model, family, tmp_path):
    stopped(data, model, family, tmp_path / "run", 6)
    manifest = max((tmp_path / "run" / "checkpoints").glob("*.json"))
    found = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(found | {"seconds": 1000.0}))
    result = fairfl.train(data, model, family, out=tmp_path / "run", resume=True, **OPTIONS)
    assert 1000 < result.seconds < 1100


def test_resume_and_overwrite_are_for_a_folder(data, model, family, tmp_path):
    with pytest.raises(ValueError, match="add out=FOLDER"):
        fairfl.train(data, model, family, resume=True, **OPTIONS)
    with pytest.raises(ValueError, match="choose one of them"):
        fairfl.train(
            data, model, family, out=tmp_path / "run", resume=True, overwrite=True, **OPTIONS
        )


# What is refused ----------------------------------------------------------------------------------


def test_what_is_there_is_not_begun_over_unasked(data, model, family, whole, tmp_path):
    assert "add --resume to go on with it" in refused(data, model, family, whole)
    stopped(data, model, family, tmp_path / "run", 3)
    assert "add --resume to go on with it" in refused(data, model, family, tmp_path / "run")


OTHERS = {
    "rounds": ({"rounds": 12}, "it has rounds 11, but this one 12;"),
    "seeds": ({"seed": [0, 2]}, "it has seeds.1 1, but this one 2;"),
    "fewer seeds": ({"seed": 0}, "it has seeds.count 2, but this one 1;"),
    "cohort": ({"cohort": 4}, "it has cohort 3, but this one 4;"),
    "precision": ({"x64": True}, "it has x64 False, but this one True;"),
    "evaluations": ({"evaluate_every": 5}, "it has evaluate every 4, but this one 5;"),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("finished", [False, True])
def test_another_configuration(data, model, family, whole, tmp_path, what, finished):
    options, sentence = OTHERS[what]
    if not finished:
        stopped(data, model, family, tmp_path / "run", 3)
    place = whole if finished else tmp_path / "run"
    assert sentence in refused(data, model, family, place, resume=True, **options)


def test_another_algorithm(data, model, family, whole):
    other = fairfl.q_fedavg(q=[0, 1, 4])
    assert "it has experiments.2.q 5.0, but this one 4.0" in refused(
        data, model, other, whole, resume=True
    )


def test_other_data(two_classes, model, family, whole):
    other = fairfl.models.softmax_regression(two_classes)
    said = refused(two_classes, other, family, whole, resume=True)
    assert "it was begun on other data, arrays with 10 clients and 359 rows (fingerprint" in said


def test_another_version(data, model, family, tmp_path):
    stopped(data, model, family, tmp_path / "run", 3)
    file = tmp_path / "run" / "configuration.json"
    found = json.loads(file.read_text())
    file.write_text(json.dumps(found | {"versions": found["versions"] | {"jax": "0.1"}}))
    said = refused(data, model, family, tmp_path / "run", resume=True)
    assert f"it has jax 0.1, but this one {jax.__version__};" in said
    file.write_text(json.dumps(found | {"schema": 99}))
    assert "has schema 99 but this fairfl reads" in refused(
        data, model, family, tmp_path / "run", resume=True
    )


def test_checkpoints_of_another_version(data, model, family, tmp_path):
    stopped(data, model, family, tmp_path / "run", 3)
    for manifest in (tmp_path / "run" / "checkpoints").glob("*.json"):
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"schema": 99}))
    said = refused(data, model, family, tmp_path / "run", resume=True)
    assert "the checkpoints have schema 99 but this fairfl reads" in said


def test_a_state_that_does_not_fit(data, model, tmp_path):
    """What a configuration cannot tell, because functions have no fingerprint."""
    stopped(data, model, one(fairfl.fedavg().work, rules.mean(), optax.adam(0.1)),
            tmp_path / "run", 3, seed=0)  # fmt: skip
    other = one(fairfl.fedavg().work, rules.mean(), optax.sgd(0.1))
    said = refused(data, model, other, tmp_path / "run", resume=True, seed=0)
    assert "does not fit this run (the file holds server/" in said


def test_two_at_a_time(data, model, family, tmp_path):
    tried = []

    def intrude(_):
        for option in ("resume", "overwrite"):
            with pytest.raises(ValueError, match="another process trains in the folder") as caught:
                fairfl.train(data, model, family, out=tmp_path / "run", **{option: True}, **OPTIONS)
            tried.append(str(caught.value))

    fairfl.train(data, model, family, out=tmp_path / "run", on_chunk=intrude, **OPTIONS)
    assert tried
    assert "wait for it, or name another with --out" in tried[0]


# Damage -------------------------------------------------------------------------------------------


def damaged(folder, suffix, harm, which=-1):
    file = sorted((folder / "checkpoints").glob(f"*{suffix}"))[which]
    content = file.read_bytes()
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(content[:-9] if harm == "cut" else content[:-9] + b"\0" * 9)
    return file.name


@pytest.mark.parametrize("harm", ["cut", "changed", "gone"])
@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_the_checkpoint_before_a_damaged_one_is_used(
    data, model, family, whole, tmp_path, suffix, harm
):
    if (suffix, harm) == (".json", "gone"):
        pytest.skip("a manifest that is gone is one that was never written")
    stopped(data, model, family, tmp_path / "run", 9)
    name = damaged(tmp_path / "run", suffix, harm)
    with pytest.warns(UserWarning, match=rf"{name} is .* goes on from the newest whole checkpoint"):
        fairfl.train(data, model, family, out=tmp_path / "run", resume=True, **OPTIONS)
    assert_same(whole, tmp_path / "run")


def test_nothing_is_begun_over_where_no_checkpoint_is_whole(data, model, family, tmp_path):
    stopped(data, model, family, tmp_path / "run", 9)
    for file in (tmp_path / "run" / "checkpoints").glob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:-1])
    said = refused(data, model, family, tmp_path / "run", resume=True)
    assert "no checkpoint in " in said
    assert "put back a copy of it, or add --overwrite to begin anew" in said


def test_a_full_disk_names_the_newest_checkpoint(data, model, family, whole, tmp_path, monkeypatch):
    real, written = atomic.os.fsync, []

    def fsync(descriptor):
        written.append(descriptor)
        if len(written) > 30:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    with pytest.raises(ValueError, match=r"No space left on device\); the newest checkpoint holds"):
        fairfl.train(data, model, family, out=tmp_path / "run", **OPTIONS)
    assert not list((tmp_path / "run" / "checkpoints").glob(f"{atomic.UNFINISHED}*"))
    monkeypatch.setattr(atomic.os, "fsync", real)
    fairfl.train(data, model, family, out=tmp_path / "run", resume=True, **OPTIONS)
    assert_same(whole, tmp_path / "run")


# Ctrl-C -------------------------------------------------------------------------------------------


def interrupting(after):
    chunks = []

    def on_chunk(progress):
        chunks.append(progress)
        if len(chunks) == after:
            signal.raise_signal(signal.SIGINT)

    return on_chunk


@pytest.fixture
def _listening():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_listening")
@pytest.mark.parametrize("after", [1, 8])
def test_ctrl_c_finishes_the_chunk_and_saves(
    data, model, family, whole, tmp_path, monkeypatch, after
):
    monkeypatch.setattr(keeping, "SECONDS", 99)
    with pytest.raises(Interrupted):
        fairfl.train(
            data, model, family, out=tmp_path / "run", on_chunk=interrupting(after), **OPTIONS
        )
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    fairfl.train(data, model, family, out=tmp_path / "run", resume=True, **OPTIONS)
    assert_same(whole, tmp_path / "run")


@pytest.mark.usefixtures("_listening")
def test_a_second_ctrl_c_does_not_wait(data, model, family, tmp_path):
    with pytest.raises(KeyboardInterrupt) as caught:
        fairfl.train(data, model, family, on_chunk=lambda _: twice(), **OPTIONS)
    assert not isinstance(caught.value, Interrupted)


def twice():
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)


def test_another_thread_trains_without_listening(data, model, family, tmp_path):
    found = []
    thread = threading.Thread(
        target=lambda: found.append(fairfl.train(data, model, family, **OPTIONS))
    )
    thread.start()
    thread.join()
    assert len(found[0]) == 6
