"""Style transfer for training data: an image keeps its content and takes the look of a painting.

Michaelis et al. (2019) train on stylized copies of a data set as a simple remedy against corruptions. The
method is adaptive instance normalization (AdaIN, Huang and Belongie 2017); a small network for it is bundled,
and any other in ONNX can take its place.
"""

from adverse.stylize.transfer import Style, Stylization, Stylizer, stylization

__all__ = ["Style", "Stylization", "Stylizer", "stylization"]
