"""Divide and conquer: cut rows into cells, choose and fit in each, combine, predict."""
