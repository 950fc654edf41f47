"""Downloads, from a server of the tests' own: ranges, breaks, checksums, zips, full disks."""

import hashlib
import http.server
import io
import os
import shutil
import threading
import zipfile
from collections import namedtuple

import numpy as np
import pytest

import fairfl
from fairfl.datasets import downloads, registry
from fairfl.datasets.downloads import download
from fairfl.datasets.files import File
from fairfl.datasets.places import folders

CONTENT = np.random.default_rng(0).bytes(300_000)


def sha(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Server(http.server.ThreadingHTTPServer):
    """Serves `content`, at most `most` bytes an answer, and keeps which ranges were asked for."""

    content, most, ranges, knows_ranges, kind = CONTENT, None, (), True, "text/plain"

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/data.bin"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        asked = self.headers.get("Range")
        server.ranges = (*server.ranges, asked)
        if "missing" in self.path:
            self.send_error(404)
            return
        begin = int(asked[len("bytes=") : -1]) if asked and server.knows_ranges else 0
        if asked and begin >= len(server.content):
            self.send_error(416)
            return
        rest = server.content[begin:]
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.send_header("Content-Type", server.kind)
        self.end_headers()
        self.wfile.write(rest[: server.most])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


DIGEST = sha(CONTENT)


def published(server, digest=DIGEST, **options):
    return File("some", "data.bin", server.url, digest, **options)


def names(folder):
    return sorted(path.name for path in (folder / "some").iterdir())


def test_a_file_comes_to_its_place_and_only_it_is_left(server, tmp_path, capsys):
    place = download(published(server), tmp_path)
    assert place == tmp_path / "some" / "data.bin"
    assert place.read_bytes() == CONTENT
    assert names(tmp_path) == ["data.bin"]
    assert capsys.readouterr().err == f"Downloading some/data.bin from {server.url}\n"


def test_a_transfer_that_breaks_off_goes_on_where_it_stopped(server, tmp_path):
    server.most = 100_000
    assert download(published(server), tmp_path).read_bytes() == CONTENT
    assert server.ranges == (None, "bytes=100000-", "bytes=200000-")


def test_a_server_that_brings_nothing_more_is_given_up_and_what_came_is_gone_on_with(
    server, tmp_path
):
    server.content, whole = CONTENT[:1000], CONTENT

    with pytest.raises(ValueError, match=r"cannot be downloaded from http.* \(what came has anoth"):
        download(published(server), tmp_path)
    server.content, server.most = whole, 0
    (tmp_path / "some" / "data.bin.part").write_bytes(CONTENT[:70_000])
    with pytest.raises(ValueError, match=r"the transfer broke off\); try again, which goes on whe"):
        download(published(server), tmp_path)
    assert names(tmp_path) == ["data.bin.part"]
    server.most, server.ranges = None, ()
    assert download(published(server), tmp_path).read_bytes() == CONTENT
    assert server.ranges == ("bytes=70000-",)


def test_ctrl_c_keeps_what_has_arrived(server, tmp_path, monkeypatch):
    def interrupted(answer, part, begun, total, meter):
        part.write_bytes(answer.read(5_000))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(downloads, "_pour", interrupted)
        with pytest.raises(KeyboardInterrupt):
            download(published(server), tmp_path)
    assert download(published(server), tmp_path).read_bytes() == CONTENT
    assert server.ranges == (None, "bytes=5000-")


def test_a_server_without_ranges_sends_everything_again(server, tmp_path):
    server.knows_ranges = False
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "data.bin.part").write_bytes(CONTENT[:7])
    assert download(published(server), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("rest", [b"of another file", CONTENT, CONTENT + b"and more"])
def test_the_rest_of_another_file_is_not_gone_on_with(server, tmp_path, rest):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "data.bin.part").write_bytes(rest)
    assert download(published(server), tmp_path).read_bytes() == CONTENT


def test_a_file_without_a_digest_begins_anew(server, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "data.bin.part").write_bytes(b"of another file")
    assert download(published(server, digest=None), tmp_path).read_bytes() == CONTENT
    assert server.ranges == (None,)


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(ValueError, match=r"\(what came has another checksum than md5:00\); try"):
        download(published(server, digest="md5:00"), tmp_path)
    assert names(tmp_path) == []


def test_what_is_not_there_hears_the_servers_answer(server, tmp_path):
    file = File("some", "data.bin", server.url.replace("data", "missing"), DIGEST)
    with pytest.raises(
        ValueError, match=r"\(the server answers 404 Not Found\); try .* put it into"
    ):
        download(file, tmp_path)


def test_a_web_page_is_not_the_file(server, tmp_path):
    server.kind = "text/html; charset=utf-8"
    with pytest.raises(ValueError, match=r"\(the server sends a web page instead\)"):
        download(published(server, digest=None), tmp_path)


def test_no_network_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    file = File("some", "data.bin", "http://127.0.0.1:1/data.bin", DIGEST)
    with pytest.raises(ValueError, match=r"\(there is no connection: .*refused.*put it into"):
        download(file, tmp_path)


def test_a_disk_that_is_too_small_is_known_before_anything_is_written(
    server, tmp_path, monkeypatch
):
    usage = namedtuple("usage", "total used free")(10**9, 10**9, 1_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(
        ValueError, match=r"cannot be written \(0 MB are to come but 0 MB are free\)"
    ):
        download(published(server), tmp_path)
    assert names(tmp_path) == []


def test_a_disk_that_fills_up_keeps_what_has_arrived(server, tmp_path, monkeypatch):
    def full(answer, part, *_):
        part.write_bytes(answer.read(9))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(downloads, "_pour", full)
    with pytest.raises(ValueError, match=r"cannot be written \(No space left on device\); make ro"):
        download(published(server), tmp_path)
    assert names(tmp_path) == ["data.bin.part"]


# ---- zips ----


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return stream.getvalue()


def test_one_member_of_a_zip_is_unpacked_and_the_zip_goes(server, tmp_path):
    server.content = zipped(a_txt=b"other things", b_txt=CONTENT)
    file = published(server, sha(server.content), member="b.txt")
    assert download(file, tmp_path).read_bytes() == CONTENT
    assert names(tmp_path) == ["data.bin"]


@pytest.mark.parametrize("content", [zipped(a_txt=b"other things"), CONTENT])
def test_a_zip_with_other_things_in_it_hears_a_sentence(server, tmp_path, content):
    server.content = content
    file = published(server, sha(content), member="b.txt")
    with pytest.raises(ValueError, match=r"cannot be downloaded .*what came is no zip with b.txt"):
        download(file, tmp_path)
    assert names(tmp_path) == []


# ---- through loading ----


@pytest.fixture
def known(server, monkeypatch):
    """A data set whose one file is on the server."""

    def read(paths):
        return {"bytes": np.frombuffer(paths["data.bin"].read_bytes(), np.uint8)}

    def build(arrays, seed):
        return fairfl.from_arrays({"a": (arrays["bytes"][:4, None] * 1.0, [0, 1, 0, 1])})

    made_up = registry.published("made-up", "", "", "", (published(server),), read, build)
    monkeypatch.setitem(registry._BY_NAME, "made-up", made_up)
    monkeypatch.delenv("FAIRFL_OFFLINE")
    return server


def test_loading_downloads_what_is_not_there_once(known, tmp_path):
    for _ in range(2):
        data = fairfl.datasets.load("made-up", data_dir=tmp_path / "new")
        assert data.x[:, 0].tolist() == list(CONTENT[:4])
    assert known.ranges == (None,)
    assert fairfl.datasets.present("made-up", tmp_path / "new")


def test_a_folder_that_cannot_be_written_is_read_only_and_the_cache_has_the_rest(
    known, tmp_path, monkeypatch, cache
):
    monkeypatch.setattr(os, "access", lambda place, _: place != tmp_path)
    assert folders(tmp_path) == (tmp_path, cache / "fairfl" / "data")
    for _ in range(2):
        fairfl.datasets.load("made-up", data_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert (cache / "fairfl" / "data" / "some" / "data.bin").read_bytes() == CONTENT
    assert known.ranges == (None,)


def test_offline_the_sentence_says_which_file_to_put_where(known, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRFL_OFFLINE", "1")
    with pytest.raises(
        ValueError, match=r"'made-up' needs some/data.bin, which is not in .* put it"
    ):
        fairfl.datasets.load("made-up", data_dir=tmp_path)
    assert known.ranges == ()


def test_a_data_folder_that_is_a_file_hears_a_sentence(known, tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(ValueError, match=r"data' is a file; name the folder above those of the da"):
        fairfl.datasets.load("made-up", data_dir=tmp_path / "data")
    assert known.ranges == ()


def test_a_cache_that_cannot_be_written_hears_a_sentence(known, tmp_path, monkeypatch, cache):
    monkeypatch.setattr(os, "access", lambda place, _: place != tmp_path)
    (cache / "fairfl").write_text("")
    with pytest.raises(
        ValueError, match=r"data.bin' cannot be written \((Not a dir|File exi).*; ma"
    ):
        fairfl.datasets.load("made-up", data_dir=tmp_path)
