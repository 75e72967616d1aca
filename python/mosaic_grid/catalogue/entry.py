"""What the catalogue says of one diagnostic."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap

from mosaic_grid.severity import Severity


@dataclasses.dataclass(frozen=True)
class Entry:
    """One diagnostic: `summary` is a line without a full stop, the other texts are plain paragraphs and code.

    `severity` is the worst it comes with: some findings are milder where less depends on them. `example` shows how it
    comes about, `fix` what to write instead, `advice` says so in words.
    """

    name: str
    severity: Severity
    summary: str
    explanation: str
    example: str
    advice: str
    fix: str

    def __post_init__(self) -> None:
        """Takes the indentation of the source off the texts."""
        for field in ("explanation", "example", "advice", "fix"):
            object.__setattr__(self, field, inspect.cleandoc(getattr(self, field)))

    def text(self) -> str:
        """What `--explain` prints."""
        parts = [
            f"{self.name} ({self.severity.value}): {self.summary}",
            self.explanation,
            "For example:",
            textwrap.indent(self.example, "    "),
            self.advice,
            textwrap.indent(self.fix, "    "),
        ]
        return "\n\n".join(parts) + "\n"
