"""Where a file comes from: the user's folder, the cache, a server that misbehaves."""

import gzip
import io
import shutil
import socket
import subprocess
import tarfile
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from convexboost.datasets import _files
from convexboost.datasets._files import File, cache_folder, digest, unlzw
from convexboost.datasets._loaders import _numbers

TEXT = "".join(f"{i},{i * i / 7:.3f}\n" for i in range(3000)).encode()


def parse(text):
    return (_numbers(text, delimiter=","),)


SHA = digest(parse(TEXT))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, no data folder, and no waiting."""
    monkeypatch.delenv("CONVEXBOOST_DATA", raising=False)
    monkeypatch.setenv("CONVEXBOOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(_files, "PAUSE", 0.001)
    monkeypatch.setattr(_files, "TIMEOUT", 0.3)
    return tmp_path / "cache"


@pytest.fixture
def data_folder(tmp_path, monkeypatch, cache):
    folder = tmp_path / "data"
    (folder / "set").mkdir(parents=True)
    monkeypatch.setenv("CONVEXBOOST_DATA", str(folder))
    return folder


@pytest.fixture
def serve():
    """Start a server that answers the n-th request with the n-th answer, and the last one for ever."""
    servers = []

    def start(*answers):
        seen = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(self.path)
                answers[min(len(seen), len(answers)) - 1](self)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.seen = seen
        servers.append((server, threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)))
        servers[-1][1].start()
        return server, f"http://127.0.0.1:{server.server_port}/table.csv"

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def send(body, promised=None):
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(promised or len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True

    return answer


good = send(TEXT)
broken_off = send(TEXT[:20_000], promised=len(TEXT))
wrong_bytes = send(b"<html>Please log in</html>")
wrong_value = send(TEXT.replace(b"\n7,", b"\n8,"))
empty = send(b"", promised=0)


def missing(handler):
    handler.send_error(404)


def busy(handler):
    handler.send_error(503)


def slow(handler):
    time.sleep(0.6)
    handler.close_connection = True


def hung_up(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def files_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_download_is_kept_and_not_repeated(cache, serve):
    server, url = serve(good)
    file = File("set/table.csv", parse, SHA, url)
    for _ in range(2):
        np.testing.assert_array_equal(file.load()[0], parse(TEXT)[0])
    assert len(server.seen) == 1
    assert files_below(cache) == ["set/table.csv"]
    assert (cache / "set/table.csv").read_bytes() == TEXT


@pytest.mark.parametrize("trouble", [broken_off, wrong_bytes, wrong_value, empty, busy, slow, hung_up])
def test_trouble_once_is_tried_again(cache, serve, trouble):
    server, url = serve(trouble, good)
    np.testing.assert_array_equal(File("set/table.csv", parse, SHA, url).load()[0], parse(TEXT)[0])
    assert len(server.seen) == 2
    assert files_below(cache) == ["set/table.csv"]


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (broken_off, "broke off after 20000 of"),
        (wrong_bytes, "html"),
        (wrong_value, "checksum"),
        (busy, "503"),
        (hung_up, "closed connection"),
    ],
)
def test_trouble_that_stays_is_a_clear_error_and_leaves_nothing(cache, serve, trouble, message):
    server, url = serve(trouble)
    with pytest.raises(FileNotFoundError, match=message) as caught:
        File("set/table.csv", parse, SHA, url).load()
    text = str(caught.value)
    assert url in text
    assert f"{_files.ATTEMPTS} attempts" in text
    assert str(cache / "set/table.csv") in text
    assert "$CONVEXBOOST_DATA/set/table.csv" in text
    assert len(server.seen) == _files.ATTEMPTS
    assert files_below(cache.parent) == []


def test_not_found_is_asked_once(cache, serve):
    server, url = serve(missing)
    with pytest.raises(FileNotFoundError, match="404"):
        File("set/table.csv", parse, SHA, url).load()
    assert len(server.seen) == 1
    assert files_below(cache.parent) == []


def test_offline_says_where_to_put_the_file(data_folder, cache):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/table.csv"
    with pytest.raises(FileNotFoundError) as caught:
        File("set/table.csv", parse, SHA, url).load()
    assert str(data_folder / "set/table.csv") in str(caught.value)
    assert str(cache / "set/table.csv") in str(caught.value)


def test_without_a_source_the_hint_is_shown(cache):
    with pytest.raises(FileNotFoundError, match="Ask Microsoft") as caught:
        File("set/table.csv", parse, SHA, hint="Ask Microsoft.").load()
    assert str(cache / "set/table.csv") in str(caught.value)


def test_waits_grow(cache, serve, monkeypatch):
    waits = []
    monkeypatch.setattr(_files.time, "sleep", waits.append)
    _, url = serve(busy)
    with pytest.raises(FileNotFoundError):
        File("set/table.csv", parse, SHA, url).load()
    assert waits == [_files.PAUSE * 2**i for i in range(_files.ATTEMPTS - 1)]


def packed_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme.txt", "no")
        archive.writestr("folder/table.csv", TEXT)
    return buffer.getvalue()


def packed_tgz():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("folder/table.csv")
        info.size = len(TEXT)
        archive.addfile(info, io.BytesIO(TEXT))
    return buffer.getvalue()


def packed_zip_of_z():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("table.csv.Z", compress(TEXT))
    return buffer.getvalue()


@pytest.mark.parametrize("pack", [packed_zip, packed_tgz, packed_zip_of_z])
def test_the_file_is_taken_out_of_an_archive(cache, serve, pack):
    _, url = serve(send(pack()))
    np.testing.assert_array_equal(File("set/table.csv", parse, SHA, url).load()[0], parse(TEXT)[0])
    assert (cache / "set/table.csv").read_bytes() == TEXT


def test_an_archive_without_the_file_says_what_it_holds(cache, serve):
    _, url = serve(send(packed_zip()))
    with pytest.raises(FileNotFoundError, match=r"holds no other\.csv, only readme\.txt"):
        File("set/other.csv", parse, SHA, url).load()


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_line_ends_and_gzip_do_not_matter(data_folder, name, ends):
    text = TEXT.replace(b"\n", ends)
    (data_folder / "set" / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    np.testing.assert_array_equal(File("set/table.csv", parse, SHA).load()[0], parse(TEXT)[0])


def test_the_users_folder_comes_before_the_cache(data_folder, cache):
    (cache / "set").mkdir(parents=True)
    (cache / "set/table.csv").write_bytes(b"1,2\n")
    (data_folder / "set/table.csv").write_bytes(TEXT)
    assert File("set/table.csv", parse, SHA).load()[0].shape == (3000, 2)


@pytest.mark.parametrize(
    "content", [TEXT[:-5], b"<html>", gzip.compress(TEXT)[:-20], b"PK\x03\x04 no archive"]
)
def test_another_file_in_the_users_folder_is_an_error(data_folder, content):
    path = data_folder / "set/table.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="unset CONVEXBOOST_DATA") as caught:
        File("set/table.csv", parse, SHA, "http://nowhere.invalid").load()
    assert str(path) in str(caught.value)


def test_another_file_in_the_cache_is_an_error(cache):
    (cache / "set").mkdir(parents=True)
    (cache / "set/table.csv").write_bytes(TEXT[:-5])
    with pytest.raises(ValueError, match=r"Delete it, and it will be downloaded again"):
        File("set/table.csv", parse, SHA, "http://nowhere.invalid").load()


def test_a_data_folder_that_is_none_is_an_error(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("CONVEXBOOST_DATA", str(tmp_path / "typo"))
    with pytest.raises(FileNotFoundError, match=r"`CONVEXBOOST_DATA` must be a folder, got .*typo"):
        File("set/table.csv", parse, SHA).load()


def test_a_cache_that_cannot_be_written_is_a_warning(cache, serve):
    cache.write_bytes(b"a file where the folder should be")
    _, url = serve(good)
    with pytest.warns(UserWarning, match="could not keep"):
        File("set/table.csv", parse, SHA, url).load()


def test_an_interrupted_write_leaves_nothing(cache, monkeypatch):
    def replace(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_files.os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        _files._keep(b"text", cache / "set/table.csv")
    assert files_below(cache) == []


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("CONVEXBOOST_CACHE", raising=False)
    monkeypatch.setattr(_files.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "convexboost"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "convexboost"
    monkeypatch.setenv("CONVEXBOOST_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


def test_a_terminal_sees_a_bar(cache, serve, monkeypatch):
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(_files.sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    _, url = serve(good)
    File("set/table.csv", parse, SHA, url).load()
    assert "set/table.csv" in terminal.getvalue()


def test_nobody_looking_on_sees_nothing(cache, serve, capfd):
    _, url = serve(good)
    File("set/table.csv", parse, SHA, url).load()
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------------ compress (.Z)


def compress(text, max_width=16, clear_at=None):
    """Pack as Unix `compress` does; `clear_at` throws the table away before that byte."""
    out, bits, held, width, codes = bytearray(), 0, 0, 9, 0
    table = {bytes([i]): i for i in range(256)}
    n_entries = 257

    def emit(code):
        nonlocal bits, held, codes
        bits |= code << held
        held += width
        codes += 1
        while held >= 8:
            out.append(bits & 255)
            bits >>= 8
            held -= 8

    def fill_group():
        nonlocal codes
        while codes % 8:
            emit(0)
        codes = 0

    word = b""
    fresh = True  # the reader makes no entry for its first code
    for i in range(len(text)):
        c = text[i : i + 1]
        if i == clear_at:
            emit(table[word])
            emit(256)
            fill_group()
            table, n_entries, width, word, fresh = {bytes([i]): i for i in range(256)}, 257, 9, b"", True
        if word + c in table:
            word += c
            continue
        emit(table[word])
        # The reader learns an entry one code later than the writer: widen by what the reader knows.
        reader = n_entries if not fresh else 257
        fresh = False
        if n_entries < 1 << max_width:
            table[word + c] = n_entries
            n_entries += 1
        if reader >= 1 << width and width < max_width:
            fill_group()
            width += 1
        word = c
    emit(table[word])
    if held:
        out.append(bits & 255)
    return b"\x1f\x9d" + bytes([128 | max_width]) + bytes(out)


@pytest.mark.parametrize("max_width", [10, 12, 16])
@pytest.mark.parametrize("clear_at", [None, 1000, 30_000])
def test_unlzw(max_width, clear_at):
    text = TEXT + bytes(np.random.default_rng(0).integers(0, 4, 100_000, dtype=np.uint8))
    packed = compress(text, max_width, clear_at)
    if shutil.which("gzip"):  # the packer of this test makes real .Z files
        assert subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout == text
    assert unlzw(packed) == text


def test_unlzw_of_a_damaged_file():
    with pytest.raises(ValueError, match="damaged"):
        unlzw(b"\x1f\x9d\x90" + b"\xff" * 50)
