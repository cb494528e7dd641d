"""The weights of a run, and the buffers of its controller if it has any: a file of safetensors."""

import math
from functools import cache
from pathlib import Path

import safetensors
import torch

from softstack.errors import BadInput
from softstack.lab.training import checkpoints
from softstack.lab.training.conditions import Condition, Network, build, shapes
from softstack.lab.training.draws import initial

KINDS = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
    torch.bool: "BOOL",
}  # fmt: skip


def network(path: Path, condition: Condition, seed: int) -> Network:
    """The trained network. Names, kinds and shapes are compared before any weight is read."""
    expected = tensors(condition)
    without_buffers = {name: expected[name] for name in shapes(condition)}  # as they were saved once
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            header = {name: (part.get_dtype(), part.get_shape()) for name, part in slices.items()}
            if header not in (expected, without_buffers):
                raise BadInput(f"{path} holds {header}, but its condition needs {expected}: train it again")
            weights = {name: file.get_tensor(name) for name in header}
    except safetensors.SafetensorError as error:
        raise BadInput(f"{path} cannot be read ({error}): it was damaged, train it again") from None
    built = initial(condition, seed)  # with the buffers that its seed gives, if none are saved
    built.load_state_dict(weights, strict=False)
    return built.eval()


@cache
def tensors(condition: Condition) -> dict[str, tuple[str, list[int]]]:
    """The kind, as safetensors calls it, and the shape of each tensor of a network."""
    shapes(condition)  # what is far too large is refused here
    state = build(condition, device="meta").state_dict()
    return {name: (KINDS[tensor.dtype], list(tensor.shape)) for name, tensor in state.items()}


def most_bytes(condition: Condition) -> int:
    """How large the file can be; a larger one is not even read."""
    parameters = shapes(condition)
    buffers = [shape for name, (_, shape) in tensors(condition).items() if name not in parameters]
    return checkpoints.most_bytes(condition) + sum(8 * math.prod(shape) + 256 for shape in buffers)
