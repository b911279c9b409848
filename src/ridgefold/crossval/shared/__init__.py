"""What cross-validation methods have in common; the methods themselves are the files above."""
