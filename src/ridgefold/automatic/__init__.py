"""Everything chosen: from a table and a time budget to one model."""
