"""A run directory that holds something else than a fit has written is refused, or made again."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import shutil

import numpy as np
import pytest

import ridgefold
from forging import Contents, Forger, contents_of, nested_deeply, signed
from ridgefold import Compute, KernelRidgeCV, PartitionedLSSVMRegressor
from ridgefold.errors import RidgefoldError, RunDirectoryError

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (90, 2))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.standard_normal(90)

FITS = {
    "cells": lambda folder: PartitionedLSSVMRegressor(
        n_partitions=3, compute=Compute(run_dir=folder)
    ),
    "chosen cells": lambda folder: PartitionedLSSVMRegressor(
        metric="learned", compute=Compute(run_dir=folder)
    ),
    "average": lambda folder: PartitionedLSSVMRegressor(
        "random", 3, "average", compute=Compute(run_dir=folder)
    ),
    "search": lambda folder: KernelRidgeCV(
        [0.1, 1.0], gamma=[0.5, 1.0], cv=3, compute=Compute(run_dir=folder)
    ),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Folders of finished fits, and what they predict."""
    found = {}
    for name, make in FITS.items():
        folder = tmp_path_factory.mktemp("run") / "run"
        found[name] = (folder, make(folder).fit(X, Y).predict(X))
    return found


@pytest.mark.parametrize("fit", ["cells", "search"])
def test_a_folder_or_pipe_in_place_of_any_file_is_refused_by_name(fit, finished, tmp_path):
    whole, _ = finished[fit]
    for k, path in enumerate(sorted(p for p in whole.rglob("*") if p.is_file())):
        for make in (os.mkdir, os.mkfifo):
            folder = tmp_path / f"{k}-{make.__name__}"
            shutil.copytree(whole, folder)
            there = folder / path.relative_to(whole)
            there.unlink()
            make(there)
            with pytest.raises(RunDirectoryError, match=path.name):
                FITS[fit](folder).fit(X, Y)


def test_a_file_in_place_of_any_folder_is_refused_by_name(finished, tmp_path):
    whole, _ = finished["cells"]
    for name in sorted(p.name for p in whole.iterdir() if p.is_dir()):
        folder = tmp_path / name
        shutil.copytree(whole, folder)
        shutil.rmtree(folder / name)
        (folder / name).write_bytes(b"")
        with pytest.raises(RunDirectoryError, match=name):
            FITS["cells"](folder).fit(X, Y)


@pytest.mark.parametrize("name", [".steps.part", "steps/seed.tries"])
def test_a_folder_with_the_name_of_something_left_behind_is_refused(name, finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished["cells"][0], folder)
    (folder / name).mkdir()
    with pytest.raises(RunDirectoryError, match="must be a file, and is a folder"):
        FITS["cells"](folder).fit(X, Y)


@pytest.mark.parametrize(
    "text", [b"[]", b"3", b'"a"', b"null", b"{}", b'{"format":{"a":[]}}', b"\xff\0", b"[" * 5000]
)
def test_a_request_that_is_something_else_is_refused(text, finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished["cells"][0], folder)
    (folder / "run.json").write_bytes(text)
    with pytest.raises(RunDirectoryError):
        FITS["cells"](folder).fit(X, Y)


@pytest.mark.parametrize("line", [b"[]", b"3", b'{"name":[],"sha256":{}}', b"\xff", b"[" * 5000])
def test_a_manifest_with_lines_of_something_else_does_no_harm(line, finished, tmp_path):
    whole, expected = finished["cells"]
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    manifest = folder / "manifest.jsonl"
    manifest.write_bytes(line + b"\n" + manifest.read_bytes() + line)
    np.testing.assert_array_equal(FITS["cells"](folder).fit(X, Y).predict(X), expected)


def forged_piece(data, seed):
    """A piece with changed contents and the digests of these."""
    contents = contents_of(data)
    head = {key: contents.document[key] for key in ("run", "name")}
    # The forger changes what stands under "model".
    inside = Contents({"model": {"value": contents.document["value"]}}, contents.arrays)
    with nested_deeply():
        changed = Forger(seed).changed(copy.deepcopy(inside))
        value = changed.document["model"].get("value")
        return signed(
            Contents({**head, "value": value}, changed.arrays), kind="ridgefold-run-piece"
        )


def pieces_of(folder):
    return sorted(folder.rglob("*.piece"))


def check_forgeries(fit, whole, tmp_path, seeds):
    for seed in seeds:
        folder = tmp_path / f"{fit}-{seed}".replace(" ", "-")
        shutil.copytree(whole, folder)
        pieces = pieces_of(folder)
        path = pieces[seed % len(pieces)]
        path.write_bytes(forged_piece(path.read_bytes(), seed))
        name = str(path.relative_to(folder).with_suffix(""))
        line = {"name": name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        with (folder / "manifest.jsonl").open("ab") as file:
            file.write(b"\n" + json.dumps(line).encode() + b"\n")
        # A typed error, or a model: what is still of the right shape cannot be told from the truth.
        with contextlib.suppress(RidgefoldError), np.errstate(all="ignore"):
            FITS[fit](folder).fit(X, Y)
        shutil.rmtree(folder)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fit", FITS)
def test_forged_pieces_end_in_typed_errors_or_a_model(fit, finished, tmp_path):
    check_forgeries(fit, finished[fit][0], tmp_path, range(12))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fit", FITS)
def test_many_forged_pieces_end_in_typed_errors_or_a_model(fit, finished, tmp_path):
    check_forgeries(fit, finished[fit][0], tmp_path, range(100, 400))


@pytest.mark.parametrize("path", ["a\0b", "a\ud800"])
def test_a_path_that_no_file_can_have_is_refused_before_the_work(path, tmp_path):
    model = ridgefold.KernelRidge(0.1, kernel="rbf").fit(X, Y)
    with pytest.raises(ridgefold.errors.InvalidInputError, match="no file name can have"):
        ridgefold.load(path)
    with pytest.raises(ridgefold.errors.InvalidInputError, match="no file name can have"):
        model.save(path)
    with pytest.raises(ridgefold.errors.InvalidInputError, match="no file name can have"):
        ridgefold.write_report(model, path)
    with pytest.raises(ridgefold.errors.InvalidInputError, match="no file name can have"):
        FITS["cells"](path).fit(X, Y)
    with pytest.raises(ridgefold.errors.InvalidInputError, match="path must be a path, got 3"):
        ridgefold.load(3)


@pytest.mark.parametrize("harm", ["cut off", "another shape", "no array", "empty"])
def test_rows_on_disk_that_are_not_those_of_the_fit_are_written_again(harm, tmp_path):
    np.save(tmp_path / "X.npy", X)

    def fit():
        model = PartitionedLSSVMRegressor(
            n_partitions=3, memory_budget="4kB", compute=Compute(run_dir=tmp_path / "run")
        )
        return model.fit(tmp_path / "X.npy", Y).predict(X)

    expected = fit()
    kept = tmp_path / "run" / "data" / "y.npy"
    whole = kept.read_bytes()
    changed = {
        "cut off": whole[: len(whole) // 2],
        "no array": b"PAR1" * 100,
        "empty": b"",
    }
    if harm == "another shape":
        np.save(kept, Y[:50])
    else:
        kept.write_bytes(changed[harm])
    np.testing.assert_array_equal(fit(), expected)
    assert kept.read_bytes() == whole
