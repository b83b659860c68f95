"""What people see of each setting, as a table of the report."""

from __future__ import annotations

from adverse.analysis.results import Summary
from adverse.report.tables import Cell, Table
from adverse.text import shown


def visual_change_table(summary: Summary) -> Table | None:
    """Return median and range of visual change by setting; None where the study did not measure it."""
    found = summary.data.get("visual_change")
    if not found:
        return None
    rows = []
    for row in found:
        vsnr = row["vsnr_db_median"]
        rows.append(
            (
                Cell(shown(row["setting"])),
                Cell(f"{row['median']:.3f}"),
                Cell(f"{row['least']:.3f} to {row['most']:.3f}"),
                Cell(f"{row['unseen']:.0%}"),
                Cell("infinite" if vsnr is None else f"{vsnr:.1f} dB"),
                Cell(f"{row['ssim_median']:.3f}"),
                Cell(f"{row['mse_median']:.1f}"),
                Cell(str(row["frames"])),
            )
        )
    backends = " and ".join(sorted({row["backend"] for row in found}))
    title = f"Visual change by {backends}: 0 is no worse to see, 1 is nothing left"
    columns = ("setting", "median", "range", "not seen in", "VSNR", "SSIM", "MSE", "frames")
    return Table("visual change", title, columns, tuple(rows), tuple(found))
