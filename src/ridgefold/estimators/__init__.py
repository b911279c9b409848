"""The models users import: scikit-learn estimators over the planner and the engine."""
