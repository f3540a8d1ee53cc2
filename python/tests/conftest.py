"""What the tests share: the samples, pictures of noise, and an oracle in 64-bit floats."""

import pathlib

import numpy as np
import pytest

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "samples"


@pytest.fixture
def samples():
    return SAMPLES


@pytest.fixture
def noise():
    """Makes a picture of noise, the same each time."""

    def make(*shape, dtype=np.uint8):
        random = np.random.default_rng(7)
        return random.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)

    return make
