"""The run folder, the seam: the slow half writes it, the quick half reads nothing else."""
