"""Bytes and seconds as text: "1.2 GB", "3 min"."""

from __future__ import annotations


def in_bytes(amount: float) -> str:
    if amount >= 9.995e11:
        return f"{amount / 1e12:.3g} TB"
    if amount >= 1e8:
        return f"{amount / 1e9:.3g} GB"
    return f"{amount / 1e6:.3g} MB" if amount >= 1e5 else f"{amount / 1e3:.3g} kB"


def in_seconds(amount: float) -> str:
    if amount < 0.001:
        return f"{amount * 1e6:.2g} µs"
    if amount < 0.0995:
        return f"{amount * 1e3:.2g} ms"
    if amount < 120.0:
        return f"{amount:.2g} s" if amount < 99.5 else f"{amount:.0f} s"
    if amount < 7200.0:
        return f"{amount / 60:.0f} min"
    return f"{amount / 3600:.1f} h" if amount < 172800.0 else f"{amount / 86400:.0f} days"
