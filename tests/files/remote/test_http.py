"""Checkpoints at URLs of http: read by ranges, with bounded time and memory from servers that misbehave."""

import json
import os
import pickle
import time
import tracemalloc

import numpy as np
import pytest

from floatlab.arrays.codec import native
from floatlab.errors import FileFormatError, RefusedError
from floatlab.files import open_array
from floatlab.files.checkpoints import open_checkpoint
from floatlab.files.remote import http_file, opening
from tests.auditing.gguf_making import entry, gguf
from tests.auditing.making import checkpoint_file
from tests.files.making import npy
from tests.files.remote.serving import serving

LONG = np.arange(1 << 20, dtype=np.float32)
FILE = checkpoint_file({"a": ("F32", LONG), "b": ("F16", np.float16([1, 2, 3]))})
INDEX = "model.safetensors.index.json"


def numbers(place, name):
    with open_checkpoint(place) as checkpoint, checkpoint.open(name) as source:
        return native(source.whole())


def test_tensors_are_read_by_ranges():
    with serving({"model.safetensors": FILE}) as server:
        assert numbers(f"{server.url}/model.safetensors", "b").tolist() == [1, 2, 3]
        assert server.sent < 1 << 18  # the tensor of 4 MiB was not read
        assert (numbers(f"{server.url}/model.safetensors?download=true", "a") == LONG).all()


def test_a_piece_is_read_alone():
    with serving({"model.safetensors": FILE}) as server:
        with open_array(f"{server.url}/model.safetensors::a") as source:
            server.requests.clear()
            assert (source.read(1 << 19, 1 << 17) == LONG[1 << 19 : (1 << 19) + (1 << 17)]).all()
        assert server.sent == 1 << 19


def test_what_opens_a_tensor_can_be_sent_to_another_process():
    with serving({"model.safetensors": FILE}) as server, open_checkpoint(f"{server.url}/model.safetensors") as read:
        server.requests.clear()
        sent = pickle.loads(pickle.dumps(read.tensors["b"]))
        with sent.open() as source:
            assert native(source.whole()).tolist() == [1, 2, 3]
        assert len(server.requests) == 1  # the header is not read again


def test_an_index_a_folder_and_its_configuration():
    files = {
        f"m/{INDEX}": json.dumps({"weight_map": {"a": "x.safetensors"}}).encode(),
        "m/x.safetensors": FILE,
        "m/config.json": b'{"quantization_config": {}}',
    }
    with serving(files) as server:
        for place in (f"{server.url}/m/", f"{server.url}/m/{INDEX}"):
            with open_checkpoint(place) as checkpoint:
                assert list(checkpoint.tensors) == ["a"]
                assert list(checkpoint.configs) == ["config.json"]


@pytest.mark.parametrize("kind", ["npz", "npy", "gguf"])
def test_other_kinds_of_files(tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    if kind == "npz":
        np.savez(path, x=LONG)
    elif kind == "npy":
        np.save(path, LONG)
    else:
        path.write_bytes(gguf([entry("x", LONG.shape)], LONG.tobytes()))
    with serving({path.name: path.read_bytes()}) as server:
        assert (numbers(f"{server.url}/{path.name}", "x") == LONG).all()


# How a server misbehaves, and what the message says.
FAULTS = {
    "is silent": "is sent too slowly",
    "trickles": "is sent too slowly",
    "says nonsense": "cannot be read",
    "has endless headers": "cannot be read",
    "refuses": "its server answers 500",
    "sends all": "does not send ranges",
    "sends without end": "the file has",
    "claims more": "goes on past its tensors",
    "claims 1e30": "does not say which bytes",
    "hides the range": "does not say which bytes",
    "starts elsewhere": "its server sends bytes",
    "inflates": "compressed",
    "stops early": "",
    "grows": "goes on past its tensors",
    "redirects file:///etc/passwd": "redirects to 'file:///etc/passwd'",
    "redirects ftp://localhost/x.safetensors": "redirects to 'ftp://",
    "redirects memory://x.safetensors": "redirects to 'memory://",
    "redirects data:,x": "redirects to 'data:",
    "redirects //user@[": "cannot be read",
    "redirects /again": "redirects without end",
    "redirects http://127.0.0.1:1/x": "cannot be read",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_servers_that_misbehave(fault, monkeypatch):
    monkeypatch.setattr(http_file, "_LATEST", 1.0)
    monkeypatch.setattr(http_file, "_PAUSES", (0.0, 0.0))
    monkeypatch.setattr(http_file, "_SLOWEST", 1 << 24)
    tracemalloc.start()
    start = time.process_time()
    with serving({"model.safetensors": FILE}, fault) as server:
        try:
            found = numbers(f"{server.url}/model.safetensors", "a")
        except FileFormatError as trouble:
            said = str(trouble)
        else:
            assert fault in ("stops early", "sends without end")  # the bytes that were requested did come
            assert (found == LONG).all()
            said = FAULTS[fault]
    used, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert FAULTS[fault] in said
    assert "\n" not in said
    assert said.isprintable()
    assert len(said) < 400
    assert peak < 64 << 20
    assert used < 10


@pytest.mark.parametrize("fault", ["grows", "changes"])
def test_a_file_that_changes_while_it_is_read(fault):
    with serving({"x.npy": npy(LONG)}) as server, open_array(f"{server.url}/x.npy") as source:
        source.read(0, 1 << 19)
        server.fault = fault
        with pytest.raises(FileFormatError, match="has changed while it was read"):
            source.read(1 << 19, 1 << 19)


def test_a_missing_file_and_a_missing_server():
    with serving({}) as server, pytest.raises(FileFormatError, match="is not a file"):
        open_checkpoint(f"{server.url}/model.safetensors")
    with pytest.raises(FileFormatError, match="cannot be read"):
        open_checkpoint(f"{server.url}/model.safetensors")


@pytest.mark.parametrize("name", ["../x.safetensors", "http://127.0.0.1/x.safetensors", "//h/x.safetensors", "file:x"])
def test_an_index_names_files_beside_it_only(name):
    files = {INDEX: json.dumps({"weight_map": {"a": name}}).encode(), "x.safetensors": FILE}
    with serving(files) as server:
        with pytest.raises(FileFormatError, match="in the folder of the index"):
            open_checkpoint(f"{server.url}/{INDEX}")
        assert [path for path, *_ in server.requests] == [INDEX]


def test_a_confined_process_reads_no_urls(monkeypatch):
    monkeypatch.setattr("floatlab.sandbox._bounds", [os.getcwd()])
    for ask in (
        opening.open_url,
        opening.listed,
        opening.exists_at,
        opening.is_folder_url,
        open_checkpoint,
        open_array,
    ):
        for url in ("http://127.0.0.1/model.safetensors", "memory://model.safetensors"):
            with pytest.raises(RefusedError, match="URLs are not read here"):
                ask(url)


@pytest.fixture
def at_once(monkeypatch):
    """Repeat failed requests without a pause."""
    monkeypatch.setattr(http_file, "_PAUSES", (0.0, 0.0, 0.0))


@pytest.mark.parametrize("fault", ["answers 503", "answers 429", "answers 500", "hangs up", "sends half"])
def test_requests_that_fail_are_repeated_a_few_times(at_once, fault):
    with serving({"model.safetensors": FILE}, fault) as server:
        server.failures = 3
        with open_checkpoint(f"{server.url}/model.safetensors") as checkpoint:
            assert list(checkpoint.tensors) == ["a", "b"]
        server.fault, server.failures, server.tokens = fault, 99, []
        with pytest.raises(FileFormatError):
            open_checkpoint(f"{server.url}/model.safetensors")
        assert len(server.tokens) == 4


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "needs a login (127.0.0.1 answers 401): set FLOATLAB_TOKENS=127.0.0.1=TOKEN if you have a token"),
        (403, "may not be read (127.0.0.1 answers 403): set FLOATLAB_TOKENS=127.0.0.1=TOKEN if you have a token"),
        (404, "is not a file"),
        (410, "is not a file any more (its server answers 410)"),
        (418, "cannot be read: its server answers 418"),
    ],
)
def test_refusals_are_not_repeated_and_say_what_to_do(at_once, status, said):
    with serving({}, f"answers {status}") as server, pytest.raises(FileFormatError) as caught:
        open_checkpoint(f"{server.url}/model.safetensors")
    assert str(caught.value).endswith(said)
    assert len(server.tokens) == 1


def test_a_server_that_asks_to_wait_long_is_not_asked_again(monkeypatch):
    monkeypatch.setattr(http_file, "_MOST_PAUSE", -1.0)
    with serving({}, "answers 429") as server, pytest.raises(FileFormatError, match="answers 429"):
        open_checkpoint(f"{server.url}/model.safetensors")
    assert len(server.tokens) == 1


def test_tokens_are_sent_to_their_own_host_only(at_once, monkeypatch):
    """Another port is another server: a token for host:port does not follow a redirection."""
    files = {"a.npy": npy(LONG)}
    with serving(files) as other, serving(files) as server:
        monkeypatch.setenv("FLOATLAB_TOKENS", f"other=x, {server.url[7:]}=secret")
        assert numbers(f"{server.url}/a.npy", "a").size == LONG.size
        assert set(server.tokens) == {"Bearer secret"}
        server.fault, server.tokens = f"redirects {other.url}/a.npy", []
        assert numbers(f"{server.url}/a.npy", "a").size == LONG.size
        assert (set(server.tokens), set(other.tokens)) == ({"Bearer secret"}, {None})
        server.fault = "answers 401"
        with pytest.raises(FileFormatError, match="refuses the token in FLOATLAB_TOKENS \\(401\\)"):
            open_checkpoint(f"{server.url}/a.npy")
        monkeypatch.setenv("FLOATLAB_TOKENS", f"{server.url[7:]}=sec\nret")
        with pytest.raises(FileFormatError, match="is empty, too long, or not printable ASCII") as caught:
            open_checkpoint(f"{server.url}/a.npy")
        assert "sec" not in str(caught.value)
    with pytest.raises(FileFormatError, match="its URL has a login"):
        open_checkpoint("https://name:password@127.0.0.1:9/a.npy")


def test_a_configuration_that_may_not_be_read_is_absent(at_once):
    """Object stores answer 403 for files that do not exist."""
    with serving({"model.safetensors": FILE}) as server:
        server.forbidden = True
        with open_checkpoint(f"{server.url}/model.safetensors") as checkpoint:
            assert checkpoint.configs == {}
