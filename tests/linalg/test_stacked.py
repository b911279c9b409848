"""Padded stacks give what every system gives alone."""

from __future__ import annotations

import numpy as np
import pytest

from namespaces import LIBRARIES, to_numpy
from ridgefold.linalg import namespace_of, numpy_namespace
from ridgefold.linalg.leave_one_out import leave_one_out
from ridgefold.linalg.stacked import (
    StackedSystems,
    pad_diagonals,
    solve_stack,
)
from ridgefold.linalg.unpenalised import bias_only

SIZES, WIDEST = (7, 12, 1, 10), 12
ALPHAS = np.array([0.3, 0.01, 2.0, 0.1])
CONVERSIONS = {"numpy": np.array, "torch": LIBRARIES["torch"]}


def systems(weighted, scale=1.0):
    """K̃, ỹ and √w of systems that differ in size."""
    rng = np.random.default_rng(0)
    found = []
    for n in SIZES:
        X = rng.standard_normal((n, 2))
        K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
        roots = np.sqrt(scale * rng.uniform(0.3, 2.0, n)) if weighted else np.ones(n)
        y = rng.standard_normal((n, 2)) + 3.0
        found.append((K * roots[:, None] * roots[None, :], y * roots[:, None], roots))
    return found


def stacked(found, convert, bias, weighted):
    """The same, padded by numbers that must not matter and then cleared as a user would."""
    b = len(found)
    matrices, targets = np.zeros((b, WIDEST, WIDEST)), np.zeros((b, WIDEST, 2))
    present, roots = np.zeros((b, WIDEST)), np.zeros((b, WIDEST))
    for k, (K, y, root) in enumerate(found):
        n = len(K)
        matrices[k, :n, :n] = np.tril(K) + np.triu(np.full((n, n), 77.0), 1)  # never read
        targets[k, :n], present[k, :n], roots[k, :n] = y, 1.0, root
    sizes = np.linalg.norm(roots, axis=1)[:, None]
    rows = StackedSystems(
        targets=convert(targets),
        present=convert(present),
        basis=convert((roots / sizes)[:, :, None]) if bias else None,
        transforms=convert(1.0 / sizes[:, :, None]) if bias else None,
        roots=convert(roots + (1.0 - present)) if weighted else None,
        counts=np.array(SIZES),
    )
    matrices = convert(matrices)
    pad_diagonals(namespace_of(matrices), matrices, rows)
    return matrices, rows


@pytest.fixture(autouse=True)
def quiet():
    """What has no solution divides by zero on the way; it is looked at, not warned of."""
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("library", CONVERSIONS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_stack_gives_what_each_system_gives_alone(library, bias, weighted):
    found = systems(weighted)
    matrices, rows = stacked(found, CONVERSIONS[library], bias, weighted)
    namespace = namespace_of(matrices)
    alphas = CONVERSIONS[library](ALPHAS)
    solved = solve_stack(namespace, namespace.copy(matrices), alphas, rows, held_out=True)
    plain = solve_stack(namespace, namespace.copy(matrices), alphas, rows, held_out=False)
    assert plain.residuals is None
    assert solved.regular.all()
    for k, (K, y, root) in enumerate(found):
        n = len(K)

        def write(out, K=K):
            out[...] = K

        space = bias_only(numpy_namespace(), root) if bias else None
        settings = {"space": space, "roots": root if weighted else None}
        if n == 1 and bias:
            continue  # nothing is left without the only row
        alone = leave_one_out(numpy_namespace(), write, y, float(ALPHAS[k]), **settings)
        for both in (solved, plain):
            np.testing.assert_allclose(
                to_numpy(both.coefficients)[k, :n], alone.coefficients, rtol=1e-9, atol=1e-11
            )
            np.testing.assert_allclose(to_numpy(both.unpenalised)[k], alone.unpenalised, rtol=1e-9)
            assert np.all(to_numpy(both.coefficients)[k, n:] == 0.0)
        np.testing.assert_allclose(
            to_numpy(solved.residuals)[k, :n], alone.residuals, rtol=1e-9, atol=1e-11
        )


@pytest.mark.parametrize("library", CONVERSIONS)
def test_padding_brings_in_no_scale_of_its_own(library):
    """Weights of 1e-12 make K̃ tiny: beside a diagonal of ones it would be rounding error."""
    found = systems(weighted=True, scale=1e-12)
    matrices, rows = stacked(found, CONVERSIONS[library], False, True)
    alphas = CONVERSIONS[library](1e-12 * ALPHAS)
    namespace = namespace_of(matrices)
    solved = solve_stack(namespace, namespace.copy(matrices), alphas, rows, held_out=False)
    assert solved.regular.all()
    for k, (K, y, _) in enumerate(found):
        expected = np.linalg.solve(K + 1e-12 * ALPHAS[k] * np.eye(len(K)), y)
        np.testing.assert_allclose(
            to_numpy(solved.coefficients)[k, : len(K)], expected, rtol=1e-9, atol=1e-3
        )


@pytest.mark.parametrize("library", CONVERSIONS)
def test_singular_systems_are_named_and_the_others_are_solved(library):
    found = systems(weighted=False)
    K, y, root = found[1]
    found[1] = (np.ones_like(K), y, root)  # rank one
    K, y, root = found[3]
    found[3] = (K - 5.0 * np.eye(len(K)), y, root)  # indefinite
    matrices, rows = stacked(found, CONVERSIONS[library], True, False)
    namespace = namespace_of(matrices)
    alphas = CONVERSIONS[library](np.array([0.3, 0.0, 2.0, 0.1]))
    solved = solve_stack(namespace, matrices, alphas, rows, held_out=True)
    assert solved.regular.tolist() == [True, False, True, False]
    assert np.all(np.isfinite(to_numpy(solved.residuals)[0]))
