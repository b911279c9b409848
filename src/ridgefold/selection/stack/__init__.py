"""Combine kernels instead of picking one: weights from held-out predictions."""
