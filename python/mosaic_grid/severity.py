"""How bad a diagnostic is."""

from __future__ import annotations

import enum


class Severity(enum.Enum):
    """MLIR's four severities; the value is the word that is printed."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"
    NOTE = "note"
