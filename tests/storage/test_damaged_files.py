"""A model file that is not exactly what was written is refused with a typed error."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import tracemalloc

import numpy as np
import pytest

import ridgefold
from cases import rows, targets
from ridgefold import (
    Compute,
    KernelRidge,
    KernelRidgeCV,
    LSSVMClassifier,
    PartitionedLSSVMRegressor,
)
from ridgefold.errors import ModelFileError, ModelFileVersionError
from ridgefold.kernels import RBF
from ridgefold.storage import strict_json
from ridgefold.storage.container import DOCUMENT, write_container

X = rows(30, 3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a model file."""
    path = tmp_path_factory.mktemp("whole") / "model.ridgefold"
    KernelRidge(0.1, kernel=RBF((1.0, 2.0, 3.0)) + 1, fit_intercept=True).fit(X, targets(X)).save(
        path
    )
    return path.read_bytes()


@pytest.fixture
def refused(tmp_path):
    """Write bytes to a file, require that it is refused, and return the error."""

    def check(data, error=ModelFileError):
        path = tmp_path / "damaged.ridgefold"
        path.write_bytes(data)
        with pytest.raises(error) as caught:
            ridgefold.load(path)
        assert "damaged.ridgefold" in str(caught.value)
        return str(caught.value)

    return check


def parts(data):
    """Header, where the arrays begin, and the document."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    start, stop = header[DOCUMENT]["data_offsets"]
    return header, 8 + length, json.loads(data[8 + length + start : 8 + length + stop])


def with_document(data, text):
    """The same file with another document and the right digest: what a forger would write."""
    header, begin, _ = parts(data)
    start = header[DOCUMENT]["data_offsets"][0]
    header[DOCUMENT] = {
        "dtype": "U8",
        "shape": [len(text)],
        "data_offsets": [start, start + len(text)],
    }
    header["__metadata__"]["sha256"] = hashlib.sha256(text).hexdigest()
    return with_header(strict_json.dumps(header)) + data[begin : begin + start] + text


def with_header(text):
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def changed_document(data, change):
    _, _, document = parts(data)
    change(document)
    return with_document(data, strict_json.dumps(document))


def entry(document, *path):
    """Walk {"dict": [[key, value], …]} by keys."""
    value = document["model"]
    for key in path:
        pairs = value["dict"]
        value = next(item for name, item in pairs if name == key)
    return value


def test_the_whole_file_loads(whole, tmp_path):
    (tmp_path / "m").write_bytes(whole)
    assert ridgefold.load(tmp_path / "m").kernel_ == RBF((1.0, 2.0, 3.0)) + 1


def test_truncation_at_every_percent_is_refused(whole, refused):
    for percent in range(100):
        refused(whole[: len(whole) * percent // 100])
    refused(whole[:-1])
    refused(whole + b"\0")


def flips(data, count, seed):
    generator = np.random.default_rng(seed)
    for position in generator.integers(0, 8 * len(data), count):
        changed = bytearray(data)
        changed[position // 8] ^= 1 << (position % 8)
        yield bytes(changed)


def test_single_bit_flips_are_refused(whole, refused):
    for changed in flips(whole, 1000, 0):
        refused(changed)


def test_flips_of_bits_in_the_first_kilobyte_are_refused(whole, refused):
    for position in range(0, 8 * 1024, 13):
        changed = bytearray(whole)
        changed[position // 8] ^= 1 << (position % 8)
        refused(bytes(changed))


@pytest.mark.full
def test_ten_thousand_single_bit_flips_are_refused(whole, refused):
    for changed in flips(whole, 10_000, 1):
        refused(changed)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_at_random_are_refused(seed, refused):
    generator = np.random.default_rng(seed)
    refused(generator.bytes(int(generator.integers(0, 3000))))


class Bomb:
    def __reduce__(self):
        return os.mkdir, (os.environ["BOMB"],)


def test_a_pickle_under_our_name_is_refused_and_does_not_run(refused, tmp_path, monkeypatch):
    monkeypatch.setenv("BOMB", str(tmp_path / "exploded"))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        message = refused(pickle.dumps(Bomb(), protocol))
        assert protocol < 2 or "looks like a pickle" in message
    assert not (tmp_path / "exploded").exists()


def test_newer_formats_are_refused_by_their_own_error(whole, refused):
    header, begin, _ = parts(whole)
    header["__metadata__"]["version"] = "2"
    header["__metadata__"]["something new"] = "…"
    message = refused(with_header(strict_json.dumps(header)) + whole[begin:], ModelFileVersionError)
    assert "upgrade ridgefold" in message


@pytest.mark.parametrize("version", ["0", "01", "-1", "x", "", "²", "1" * 5000])
def test_impossible_versions_are_refused(version, whole, refused):
    header, begin, _ = parts(whole)
    header["__metadata__"]["version"] = version
    refused(with_header(strict_json.dumps(header)) + whole[begin:])


def test_a_key_twice_is_refused(whole, refused):
    _, begin, document = parts(whole)
    text = strict_json.dumps(document)
    message = refused(with_document(whole, b'{"notes":{},' + text[1:]))
    assert "twice" in message
    header = whole[8:begin].rstrip()
    refused(with_header(b'{"__metadata__":{},' + header[1:]) + whole[begin:])
    nested = text.replace(b'"notes":{}', b'"notes":{"a":"b","a":"b"}')
    assert "twice" in refused(with_document(whole, nested))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"arrays":{}}',
        b'{"arrays":',
        b'{"arrays":{},"x":NaN}',
        b'{"arrays":{},"x":Infinity}',
        b'{"arrays":{},"x":' + b"9" * 5000 + b"}",
        b"[" * 90_000,
        b'{"a":' * 40_000,
        b"[0" + b",0" * 300_000 + b"]",
        '{"arrays":{},"x":"é"}'.encode(),
        b"\xff\xfe",
    ],
    ids=range(14),
)
def test_documents_that_are_not_what_they_should_be_are_refused(text, whole, refused):
    refused(with_document(whole, text))


SHAPES = [
    [30],
    [3, 30],
    [30, 4],
    [31, 3],
    [2**61, 2**61, 2**61],
    [-30, -3],
    [30, 3.0],
    "90",
    [True],
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lies_about_shapes_are_refused(shape, whole, refused):
    """In the header alone, in the document alone, and in both."""
    name = "model/state/rows"
    header, begin, document = parts(whole)
    header[name]["shape"] = shape
    refused(with_header(strict_json.dumps(header)) + whole[begin:])
    document["arrays"][name]["shape"] = shape
    refused(with_document(whole, strict_json.dumps(document)))
    both = with_header(strict_json.dumps(header)) + whole[begin:]
    refused(with_document(both, strict_json.dumps(document)))


@pytest.mark.parametrize("offsets", [[0, 2**60], [8, 728], [0, 719], [-8, 712], [720, 0], [0], 5])
def test_lies_about_offsets_are_refused(offsets, whole, refused):
    header, begin, _ = parts(whole)
    header["model/state/rows"]["data_offsets"] = offsets
    refused(with_header(strict_json.dumps(header)) + whole[begin:])


def test_arrays_too_many_and_too_few_are_refused(whole, refused, tmp_path):
    _, _, document = parts(whole)
    del document["arrays"]
    write_container(tmp_path / "m", document, {})
    refused((tmp_path / "m").read_bytes())
    write_container(tmp_path / "m", {"model": 1, "notes": {}, "written_by": {}}, {"a": X})
    assert "nothing refers to" in refused((tmp_path / "m").read_bytes())


def put(*path, value):
    def change(document):
        pairs = entry(document, *path[:-1])["dict"]
        next(pair for pair in pairs if pair[0] == path[-1])[1] = value

    return change


KERNEL = ("state", "kernel")
FORGERIES = {
    "another class": put("estimator", value="os.system"),
    "an estimator of the wrong kind": put("estimator", value="LSSVMClassifier"),
    "no estimator": put("estimator", value=None),
    "an unknown argument": put("parameters", value={"dict": [["__class__", 1]]}),
    "arguments that are no dict": put("parameters", value=[1]),
    "a state that is no dict": put("state", value=3),
    "an unknown kernel": put(*KERNEL, value={"kernel": {"name": "CallableKernel"}}),
    "a kernel with an impossible width": put(
        *KERNEL, value={"kernel": {"name": "RBF", "length_scale": -1.0}}
    ),
    "a kernel with a text as width": put(
        *KERNEL, value={"kernel": {"name": "RBF", "length_scale": "1"}}
    ),
    "a kernel with a further entry": put(
        *KERNEL, value={"kernel": {"name": "RBF", "length_scale": 1.0, "gamma": 1.0}}
    ),
    "a sum of nothing": put(*KERNEL, value={"kernel": {"name": "Sum", "left": 1, "right": 2}}),
    "a kernel of no name": put(*KERNEL, value={"kernel": {}}),
    "precomputed, but not square": put(*KERNEL, value="nonsense"),
    "a record of another module": put(
        "state", "plan", value={"record": {"name": "Popen", "fields": {}}}
    ),
    "a record that lacks fields": put(
        "state", "plan", value={"record": {"name": "Plan", "fields": {}}}
    ),
    "a plan that is a number": put("state", "plan", value=3),
    "column names that are numbers": put("state", "column_names", value=[1, 2, 3]),
    "too few column names": put("state", "column_names", value=["a"]),
    "an array that is not there": put("state", "rows", value={"array": "/etc/passwd"}),
    "an array used twice": put("state", "column_names", value={"array": "model/state/rows"}),
    "an unknown kind": put("state", "rows", value={"pickle": "gASVAA=="}),
    "two kinds at once": put("state", "rows", value={"array": "a", "float": "nan"}),
    "a float of another name": put("parameters", value={"dict": [["alpha", {"float": "1"}]]}),
    "a key twice in a dict": put("parameters", value={"dict": [["alpha", 1], ["alpha", 2]]}),
    "a dict as a key": put("parameters", value={"dict": [[{"dict": []}, 1]]}),
    "a tuple with a list as a key": put("parameters", value={"dict": [[{"tuple": [[1]]}, 1]]}),
    "one target of two": put("state", "one_target", value="yes"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_with_the_right_digest_are_refused(name, whole, refused):
    refused(changed_document(whole, FORGERIES[name]))


def test_numbers_that_do_not_fit_together_are_refused(tmp_path):
    model = LSSVMClassifier(0.1).fit(X, X[:, 0] > 0)
    for change in (
        {"classes_": np.array([True])},
        {"X_fit_": X[:-1]},
        {"X_fit_": X.astype(np.float32)},
        {"X_fit_": np.where(X.max() > X, X, np.nan)},
        {"X_fit_": X[:, 0]},
    ):
        broken = LSSVMClassifier(0.1).fit(X, X[:, 0] > 0)
        vars(broken).update(change)
        broken.save(tmp_path / "m")
        with pytest.raises(ModelFileError):
            ridgefold.load(tmp_path / "m")
    model.save(tmp_path / "m")
    assert ridgefold.load(tmp_path / "m").classes_.tolist() == [False, True]


@pytest.mark.parametrize("make", [KernelRidge, LSSVMClassifier, PartitionedLSSVMRegressor])
def test_targets_that_do_not_fit_the_model_are_refused(make, tmp_path):
    labels = X[:, 0] > 0 if make is LSSVMClassifier else X[:, 0]
    good = make(alpha=0.1).fit(X, labels).y_fit_
    wrong = [good[:-1], good[:, None], good.astype(str), np.array(1.0), good - 10 * (good + 1)]
    wrong[-1] = wrong[-1] if make is LSSVMClassifier else good * np.inf
    for stored in wrong:
        broken = make(alpha=0.1).fit(X, labels)
        broken.y_fit_ = stored
        broken.save(tmp_path / "m")
        with pytest.raises(ModelFileError, match="targets"):
            ridgefold.load(tmp_path / "m")


def test_held_out_decisions_of_another_shape_are_refused(tmp_path):
    model = LSSVMClassifier(0.1, probability=True).fit(X, X[:, 0] > 0)
    model.held_out_decisions_ = model.held_out_decisions_[:, None]
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="held_out"):
        ridgefold.load(tmp_path / "m")


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        ridgefold.load(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="not a regular file"):
        ridgefold.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        ridgefold.load(tmp_path / "pipe")


# -- memory --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file of 8 MB."""
    path = tmp_path_factory.mktemp("large") / "model.ridgefold"
    A = rows(1000, 1000)
    KernelRidgeCV([1.0], kernel="linear", cv=2, compute=Compute(solver="cholesky")).fit(
        A, A[:, 0]
    ).save(path)
    return path.read_bytes()


def peak_of_loading(path):
    tracemalloc.start()
    try:
        with contextlib.suppress(ModelFileError):
            ridgefold.load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def damaged(data):
    header, begin, document = parts(data)
    yield "whole", data
    yield "cut", data[: len(data) // 2]
    yield (
        "a flipped bit in an array",
        data[:5_000_000] + bytes([data[5_000_000] ^ 1]) + data[5_000_001:],
    )
    lie = json.loads(json.dumps(header))
    lie["model/state/rows"]["shape"] = [10**6, 10**6]
    yield "a shape beyond the file", with_header(strict_json.dumps(lie)) + data[begin:]
    lie["model/state/rows"]["data_offsets"] = [0, 8 * 10**12]
    yield "offsets beyond the file", with_header(strict_json.dumps(lie)) + data[begin:]
    yield "a header as long as the file", (len(data) - 8).to_bytes(8, "little") + data[8:]
    yield "a header of 2^63 bytes", (2**63).to_bytes(8, "little") + data[8:]
    for name, filler in (
        ("objects", "{}"),
        ("lists", "[]"),
        ("numbers", "1.5"),
        ("texts", '"' + "x" * 100 + '"'),
        ("one text", '"' + "x" * 1_900_000 + '"'),
    ):
        count = max(
            1, min(1_900_000 // (len(filler) + 1), 118_000 // (2 if len(filler) < 3 else 1))
        )
        text = ",".join([filler] * count)
        good = strict_json.dumps(document)
        yield (
            f"a document full of {name}",
            with_document(data, good[:-1] + b',"more":[' + text.encode() + b"]}"),
        )
    yield (
        "texts of which one is long",
        changed_document(
            data,
            put(
                "state",
                "column_names",
                value={"texts": {"shape": [5001], "values": ["x" * 100_000] + [""] * 5000}},
            ),
        ),
    )


def test_memory_stays_below_twice_the_size_of_the_file(large, tmp_path):
    path = tmp_path / "model.ridgefold"
    for name, data in damaged(large):
        path.write_bytes(data)
        peak = peak_of_loading(path)
        # Twice a file of 8 MB; a shorter one gets the room of the smallest Python program.
        assert peak < 2 * len(data), (name, peak / len(data))
