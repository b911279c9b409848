"""Choose kernel and ridge: folds, grids, scores, and the search over them."""
