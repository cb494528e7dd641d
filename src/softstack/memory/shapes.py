"""For how many sequences a memory begins, where, and in which precision."""

import torch

Batch = tuple[int, ...]  # (B,), or () for one sequence
Sequences = Batch | int | None  # a batch, or B for (B,) and None for ()
Device = torch.device | str | None
Dtype = torch.dtype | None


def batch_of(sequences: Sequences) -> Batch:
    return () if sequences is None else (sequences,) if isinstance(sequences, int) else sequences
