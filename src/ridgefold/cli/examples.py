"""What the help of a command shows below its options: a call for each use."""

from __future__ import annotations

from collections.abc import Sequence


def _shown(calls: Sequence[str]) -> str:
    """One paragraph a call, as the help keeps only these apart."""
    return "\n\n".join(["[bold]Examples[/bold]", *(f"[cyan]{call}[/cyan]" for call in calls)])


CALLS = {
    "fit": (
        "ridgefold fit houses.csv --target price -o houses.ridgefold",
        "ridgefold fit visits.csv -t cost -o m.ridgefold --groups patient --time 300",
        "ridgefold fit mail.parquet -t is_spam -o m.ridgefold --class-weight balanced --compare",
        "ridgefold fit shop.csv -t sales -o m.ridgefold --columns zip=category --drop note",
    ),
    "predict": (
        "ridgefold predict houses.ridgefold new.csv -o predicted.csv --coverage 0.9",
        "ridgefold predict mail.ridgefold new.csv --probabilities --keep sender",
    ),
    "report": (
        "ridgefold report houses.ridgefold",
        "ridgefold report houses.ridgefold --test sold-this-year.csv -o this-year.html",
    ),
    "diagnose": (
        "ridgefold diagnose houses.csv --target price",
        "ridgefold diagnose houses.csv -t price --columns size='S<M<L' --drop agent",
    ),
    "explain": (
        "ridgefold explain houses.ridgefold",
        "ridgefold explain --rows 1e5 --columns 20 --memory 8GB",
    ),
    "fit_kernel": (
        "ridgefold fit-kernel rows.csv -t y -o m.ridgefold --kernel matern --nu 1.5 --cv loo",
        "ridgefold fit-kernel rows.parquet -t y -o m.ridgefold --partitions auto --jobs -1",
    ),
}
"""Calls by the name of the command's function."""
EXAMPLES = {name: _shown(calls) for name, calls in CALLS.items()}
