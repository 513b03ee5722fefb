"""The output of predictions: bars on a terminal, lines with tabs in a pipe, JSON for machines."""

import sys

from vitrail.base.printable import printable
from vitrail.cli.report import print_json
from vitrail.cli.say import show
from vitrail.cli.streams import screen_width
from vitrail.prediction.writers import Row

_EIGHTHS = " ▏▎▍▌▋▊▉"
LONGEST_BAR = 32
LONGEST_NAME = 48
LONGEST_LABEL = 32


class Screen:
    """Shows rows on stdout as they come."""

    def __init__(self, names: list[str], *, json: bool) -> None:
        self.names, self.json = names, json
        self.shown: list[Row] = []
        self.terminal = sys.stdout.isatty()
        self.blocks = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        self.width = min(max((len(printable(name)) for name in names), default=0), LONGEST_NAME)

    def show(self, row: Row) -> None:
        """Show one answer; an image that could not be read is reported on stderr, and here only in JSON."""
        if self.json:
            self.shown.append(row)
        elif row.error is None:
            show(self._block(row) if self.terminal and len(self.names) == 1 else self._line(row), flush=self.terminal)

    def end(self, model: str, failed: int) -> None:
        """Write JSON, if that was requested."""
        if self.json:
            rows = [row.as_dict() for row in self.shown]
            print_json({"model": model, "images": len(rows), "failed": failed, "predictions": rows})

    def _block(self, row: Row) -> str:
        """Write one image as a table with bars."""
        labels = [shortened(printable(label), LONGEST_LABEL) for label, _ in row.top]
        width = max(map(len, labels))
        room = max(min(screen_width() - width - 13, LONGEST_BAR), 1)
        lines = [
            f"  {label:{width}}  {probability:6.1%}  {self.bar(probability, room)}".rstrip()
            for label, (_, probability) in zip(labels, row.top, strict=True)
        ]
        return "\n".join([printable(row.path), *lines])

    def _line(self, row: Row) -> str:
        """Write one image as a line: aligned for the user, or with everything between tabs."""
        if not self.terminal:
            pairs = (f"{printable(label)}\t{probability:g}" for label, probability in row.top)
            return "\t".join([printable(row.path), *pairs])
        name = shortened(printable(row.path), LONGEST_NAME)
        answers = ", ".join(f"{printable(label)} {probability:.1%}" for label, probability in row.top)
        return f"{name:{self.width}}  {self.bar(row.top[0][1], 10):10}  {answers}"

    def bar(self, share: float, cells: int) -> str:
        """Draw a share of 1 as a bar of at most N cells, exact to an eighth of a cell where that can be drawn."""
        if not self.blocks:
            return "#" * round(share * cells)
        whole, eighths = divmod(round(share * cells * 8), 8)
        return "█" * whole + (_EIGHTHS[eighths] if eighths else "")


def shortened(text: str, width: int) -> str:
    """Keep the end of what is too long, where names differ."""
    return text if len(text) <= width else f"...{text[3 - width :]}"
