"""Reliability requirements from what people can see: visual change, thresholds, checks.

`visual_change(reference, changed)` says how much worse a person sees a changed image; `Reference` compares
many changes with one image.
"""

from adverse.reliability.visual import Reference, VisualChange, ssim, vif, vifp, visual_change, vsnr

__all__ = ["Reference", "VisualChange", "ssim", "vif", "vifp", "visual_change", "vsnr"]
