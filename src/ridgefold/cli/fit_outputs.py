"""What a fit leaves behind: a model file, a report if it is asked for, and a summary."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ridgefold.cli.exit_codes import require_free
from ridgefold.cli.options import CommandLineError, say
from ridgefold.cli.unseen_table import notes_of_target
from ridgefold.storage.atomic import created_whole

if TYPE_CHECKING:
    from ridgefold.tables.diagnosis import TableDiagnosis


class FitOutputs:
    """Where results go; files that are there are refused before any work."""

    def __init__(
        self,
        data: Path,
        output: Path,
        report: Path | None,
        *,
        force: bool,
        float32: bool,
        quiet: bool,
        as_json: bool,
    ) -> None:
        require_free(output, force)
        if report is not None:
            require_free(report, force)
            if report.resolve() == output.resolve():
                raise CommandLineError(f"--report and --output both name {str(output)!r}")
        self._data, self._output, self._report = data, output, report
        self._force, self._float32 = force, float32
        self._quiet, self._as_json = quiet, as_json
        self._started = time.perf_counter()

    @property
    def talk(self) -> bool:
        """Whether people read along."""
        return not (self._quiet or self._as_json)

    def seconds(self) -> float:
        """Since the command began."""
        return round(time.perf_counter() - self._started, 2)

    def write(
        self,
        model: Any,
        diagnosis: TableDiagnosis,
        summary: Mapping[str, Any],
        seconds: float | None = None,
    ) -> None:
        """Save the model, write its report, and show the summary; `seconds` if not until now."""
        assert diagnosis.target is not None
        target = diagnosis.target.name
        notes = {"target": target, "task": str(diagnosis.task), "data": self._data.name}
        notes |= notes_of_target(diagnosis)
        with created_whole(self._output, replace=self._force) as path:
            model.save(path, dtype="float32" if self._float32 else None, notes=notes)
        title = f"{target} from {self._data.name}"
        if self._report is not None:
            from ridgefold.report import write_report

            write_report(model, self._report, target_name=target, title=title, force=self._force)
        summary = {
            **summary,
            "seconds": self.seconds() if seconds is None else seconds,
            "model": str(self._output),
            "model_bytes": self._output.stat().st_size,
            **({} if self._report is None else {"report": str(self._report)}),
        }
        say(summary, quiet=self._quiet, as_json=self._as_json, title=title)
