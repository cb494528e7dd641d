import pytest
import torch
from hypothesis import settings

from browser import browser, opened, reverser, run_root, untrained  # noqa: F401 (fixtures)

settings.register_profile("softstack", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("softstack")
torch.set_num_threads(1)


def pytest_generate_tests(metafunc):
    """`device` runs a test on the CPU, and on CUDA where there is one."""
    if "device" in metafunc.fixturenames:
        cuda = pytest.param(
            "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
        )
        metafunc.parametrize("device", ["cpu", cuda])


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(1)
