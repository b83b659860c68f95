"""Visual change: how much worse a person sees a changed image. Pure functions of two images."""

from adverse.reliability.visual.change import BACKENDS, Backend, Reference, VisualChange, visual_change
from adverse.reliability.visual.ssim import ssim
from adverse.reliability.visual.vif import vif
from adverse.reliability.visual.vifp import vifp
from adverse.reliability.visual.vsnr import vsnr

__all__ = ["BACKENDS", "Backend", "Reference", "VisualChange", "ssim", "vif", "vifp", "visual_change", "vsnr"]
