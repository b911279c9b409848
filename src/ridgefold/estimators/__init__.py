"""The models users import: scikit-learn estimators over planning and the steps of a fit."""
