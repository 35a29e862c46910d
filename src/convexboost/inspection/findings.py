"""What a diagnosis says: findings, rules that could not be checked, and the text of both."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ALL_CLEAR = "Nothing is wrong as far as this can tell."

Severity = Literal["warning", "note"]


@dataclass(frozen=True)
class Finding:
    """Something worth knowing about a run."""

    rule: str
    severity: Severity  #: "warning": something is wrong; "note": good to know
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)  #: what the sentence rests on
    advice: str = ""

    @property
    def title(self) -> str:
        """Return the rule in words."""
        return _title(self.rule).capitalize()

    def __str__(self) -> str:
        return f"{self.sentence}  {self.advice}".strip()


@dataclass(frozen=True)
class Unchecked:
    """A rule that could not be checked, and what it would take."""

    rule: str
    reason: str
    vital: bool = True  #: False: what it would find shows in other rules too

    @property
    def title(self) -> str:
        """Return the rule in words."""
        return _title(self.rule)

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Diagnosis:
    """The findings of all rules; print it."""

    findings: tuple[Finding, ...]
    unchecked: tuple[Unchecked, ...] = ()

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Return the findings that say that something is wrong."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")

    @property
    def rules(self) -> set[str]:
        """Return the names of the rules that warn."""
        return {finding.rule for finding in self.warnings}

    def __getitem__(self, rule: str) -> Finding:
        for finding in self.findings:
            if finding.rule == rule:
                return finding
        raise KeyError(rule)

    def __contains__(self, rule: object) -> bool:
        return any(finding.rule == rule for finding in self.findings)

    @property
    def verdict(self) -> str:
        """Return whether anything is wrong, or what is not known, in a sentence."""
        if self.warnings:
            return f"Warnings: {', '.join(_title(finding.rule) for finding in self.warnings)}."
        unknown = [missing.title for missing in self.unchecked if missing.vital]
        return f"No warnings, but not known: {', '.join(unknown)}." if unknown else ALL_CLEAR

    @property
    def lines(self) -> list[str]:
        """Return one line for each finding, warnings first; an advice is given once."""
        lines, said = [] if self.warnings else [self.verdict], set()
        notes = [finding for finding in self.findings if finding.severity == "note"]
        for finding in (*self.warnings, *notes):
            advice = "" if finding.advice in said else finding.advice
            said.add(finding.advice)
            lines.append(f"{finding.title}: {finding.sentence}  {advice}".strip())
        return lines + [f"Not checked, {missing.title}: {missing}" for missing in self.unchecked]

    def __str__(self) -> str:
        return "\n".join(textwrap.fill(line, 100, subsequent_indent="    ") for line in self.lines)


def _title(rule: str) -> str:
    return rule.replace("_", " ")
