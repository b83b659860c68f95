"""An interval drawn as a line with a dot, for the cell of a table beside its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from adverse.report.chart import Axis, PanelSize

BAR = PanelSize(240, 18, 6, 6, 0, 0)


def interval_bar(
    low: float,
    value: float,
    high: float,
    *,
    span: tuple[float, float],
    lines: Sequence[float] = (),
    dashed: Sequence[float] = (),
) -> str:
    """Draw an interval within a span; `lines` and `dashed` are upright lines at places of interest."""
    axis = Axis("", span, ())

    def place(at: float) -> float:
        return round(BAR.left + (BAR.width - BAR.left - BAR.right) * float(axis.part(at)), 1)

    def upright(at: float, dash: str = "") -> str:
        return f'<line x1="{place(at)}" x2="{place(at)}" y1="0" y2="{BAR.height}" class="zero"{dash}/>'

    middle = BAR.height / 2
    numbers = f'data-low="{low:.6g}" data-value="{value:.6g}" data-high="{high:.6g}"'
    shape = f'viewBox="0 0 {BAR.width} {BAR.height}" aria-hidden="true" {numbers}'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>'
        + "".join(upright(at) for at in lines)
        + "".join(upright(at, ' stroke-dasharray="2 2"') for at in dashed)
        + f'<line x1="{place(low)}" x2="{place(high)}" y1="{middle}" y2="{middle}" class="reach"/>'
        f'<circle cx="{place(value)}" cy="{middle}" r="4" class="value"/></svg>'
    )
