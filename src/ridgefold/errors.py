"""Everything ridgefold raises or warns about, in one place.

Each error also derives from the built-in a caller would expect (`ValueError`,
`MemoryError`, …), so code written for scikit-learn keeps working.
"""


class RidgefoldError(Exception):
    """Base of every error raised on purpose by ridgefold."""


class InvalidInputError(RidgefoldError, ValueError):
    """An argument has a value that cannot be used; the message says what would do."""


class UnsupportedInputError(RidgefoldError, TypeError):
    """An argument has a type (sparse, complex, …) that the chosen kernel or method cannot take."""


class NoSlopeError(UnsupportedInputError):
    """A kernel has no slope in the columns of its rows; the message says which kernels have."""


class KernelDomainError(InvalidInputError):
    """The rows lie outside the set on which the kernel is defined."""


class NumericalError(RidgefoldError, ArithmeticError):
    """A computation left the range of floating-point numbers or lost all its digits."""


class MethodGaveUpError(RidgefoldError, ArithmeticError):
    """A method found that these data do not suit it; the message says why and what would do."""


class BudgetError(RidgefoldError, MemoryError):
    """Nothing that could run fits the memory budget; the message names what would."""


class OutputError(InvalidInputError):
    """A file cannot be written where it should be; known before the work."""


class OutputExistsError(OutputError):
    """A file to write is there already, or came there while it was worked for."""


class TableError(InvalidInputError):
    """A file of rows cannot be read, or lacks what was asked of it."""


class ModelFileError(RidgefoldError, ValueError):
    """A file is no whole, unchanged model file; nothing of it was used."""


class ModelFileVersionError(ModelFileError):
    """A model file was written by a newer ridgefold than this one."""


class RunDirectoryError(RidgefoldError, ValueError):
    """A folder cannot be used to keep the steps of a fit; the message says why."""


class RunDirectoryMismatchError(RunDirectoryError):
    """A run directory belongs to other data or settings; the message says what differs."""


class RunDirectoryLockedError(RunDirectoryError):
    """Another process works in the run directory."""


class ClusterError(RidgefoldError, RuntimeError):
    """A cluster cannot be reached, or does not do what is needed."""


class WorkerLostError(ClusterError):
    """Cells whose workers died, again and again; the message names them."""


class NoWorkersError(ClusterError):
    """A cluster has had no workers for as long as they were to be waited for."""


class RidgefoldWarning(UserWarning):
    """Base of every warning issued by ridgefold."""


class ConditionWarning(RidgefoldWarning):
    """A linear system is so ill-conditioned that digits are lost; the message says how many."""


class SingularSystemWarning(ConditionWarning):
    """A linear system has no Cholesky factor; its pseudo-inverse was used instead."""


class UndeterminedColumnsWarning(RidgefoldWarning):
    """Unpenalised columns depend on each other on some rows, so that coefficients are a choice."""


class ConvergenceWarning(RidgefoldWarning):
    """An iterative solver stopped short of its tolerance; the message gives what it reached."""


class UnknownLevelWarning(RidgefoldWarning):
    """A column of categories holds some that the model has not seen."""


class TimeBudgetWarning(RidgefoldWarning):
    """Something that nobody named was left out, as a time budget has no room for it."""


class SlowBlasWarning(RidgefoldWarning):
    """OpenBLAS runs slower code than this processor could; the message says what to set."""


class UnreadableNumberWarning(RidgefoldWarning):
    """Cells of a column of numbers hold none, and count as missing; the message shows some."""


class FarValueWarning(RidgefoldWarning):
    """Values lie so far from all others that they do not count in the scale of their column."""


class LeftOutWarning(RidgefoldWarning):
    """A setting that prediction does not need cannot be stored, and is left out of a file."""


class RepeatedRowsWarning(RidgefoldWarning):
    """Rows that are read from disk repeat, so that leaving one out does not leave its x out."""


class OutsideDataWarning(RidgefoldWarning):
    """Rows to predict lie far beyond the values that the model was fitted to."""


class UnweightedScoresWarning(RidgefoldWarning):
    """Rows have weights, but a score was asked for that cannot take them into account."""
