"""What the tests share: the samples, pictures of noise, and scripts that are interrupted."""

import pathlib
import signal
import subprocess
import sys
import textwrap
import time

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


# What is started in the background may have been given a SIGINT that is ignored.
LISTEN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


@pytest.fixture
def interrupted():
    """Runs a script until it prints a line, interrupts it, and gives how it ended."""

    def run(script, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", LISTEN + textwrap.dedent(script), *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
        return process.returncode, said

    return run
