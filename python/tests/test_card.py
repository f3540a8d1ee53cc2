"""Arrays on a card, on the stand-in for one that tests/standin builds: card.py in a process that finds it."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TEXTS = ROOT / "tests" / "standin"
LIBRARIES = {
    "libcuda.so": ["driver.cpp", "block.cpp", "memory.cpp", "queue.cpp"],
    "libnvrtc.so": ["nvrtc.cpp"],
}


def compiler():
    names = ["clang++", *(f"clang++-{version}" for version in range(30, 10, -1))]
    return next(filter(None, map(shutil.which, names)), None)


def build(clang, folder):
    """The stand-in's libraries, built as tests/standin/mod.rs does it."""
    texts = hashlib.sha256(str(TEXTS).encode())
    for text in sorted(path for path in TEXTS.iterdir() if path.suffix != ".md"):
        texts.update(text.read_bytes())
    libraries = folder / texts.hexdigest()[:16]
    libraries.mkdir(parents=True, exist_ok=True)
    command = [clang, "-std=c++17", "-O2", "-shared", "-fPIC", "-pthread", "-Wl,-z,nodelete", "-ldl"]
    command += [f'-DSTANDIN_COMPILER="{clang}"', f'-DSTANDIN_FOLDER="{TEXTS}"']
    for name, sources in LIBRARIES.items():
        if not (libraries / name).exists():
            part = libraries / f"{name}.{os.getpid()}"
            subprocess.run([*command, *(TEXTS / source for source in sources), "-o", part], check=True)
            part.rename(libraries / name)
    return libraries


@pytest.fixture(scope="module")
def stand_in():
    clang = compiler()
    if clang is None:
        assert os.environ.get("CI") != "true", "in CI the stand-in for a card needs clang++"
        pytest.skip("there is no clang++ to build the stand-in for a card with")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "tmp" / "standin"
    libraries = build(clang, target / "python")
    compiled = target / "compiled"
    compiled.mkdir(exist_ok=True)

    def run(script, *arguments, **settings):
        paths = [str(libraries), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        environment = os.environ | {
            "LD_LIBRARY_PATH": ":".join(paths),
            "FRAMEPIPE_STANDIN_CACHE": str(compiled),
            "XDG_CACHE_HOME": str(target / "python-cache"),
            **{f"FRAMEPIPE_STANDIN_{name}": str(value) for name, value in settings.items()},
        }
        command = [sys.executable, *script, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    return run


# From a card that does all at once to one that does nothing until it must.
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_arrays_on_a_card(stand_in, tmp_path, seed):
    report = tmp_path / "report"
    only = [] if seed == 1 else ["--only", "streams"]
    done = stand_in([HERE / "card.py", "--few-kernels"], *only, SEED=seed, REPORT=report)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "complaint" not in report.read_text()


RGB = """
import sys
import framepipe, numpy
with framepipe.open(sys.argv[1], filters="gaussian:sigma=1", device="cuda") as reader:
    for frame in reader:
        rgb = frame.to_rgb()
        assert isinstance(rgb, framepipe.CardArray) and rgb.__dlpack_device__() == (2, 0), rgb
        assert rgb.shape == (38, 50, 3) and rgb.dtype == numpy.uint8 and rgb.strides == (150, 3, 1), rgb
        assert frame.device == "cuda:0"
assert frame.index == 11
"""


def test_rgb_of_frames_on_a_card_is_not_fetched(stand_in, tmp_path):
    path, report = tmp_path / "noise.y4m", tmp_path / "report"
    with open(path, "wb") as file:
        file.write(b"YUV4MPEG2 W50 H38 F25:1 Ip A1:1 C420jpeg\n")
        for number in range(12):
            file.write(b"FRAME\n" + bytes([number * 20]) * (50 * 38 * 3 // 2))
    done = stand_in(["-c", RGB], path, SEED=2, REPORT=report)
    assert done.returncode == 0, done.stdout + done.stderr
    calls = report.read_text()
    assert "call cuLaunchKernel" in calls and "complaint" not in calls
    assert "cuMemcpyDtoH" not in calls, calls


@pytest.mark.parametrize("only, wait", [("streams", "cuStreamWaitEvent"), ("rgb_on", "cuCtxSynchronize")])
def test_a_wait_that_is_left_out_is_noticed(stand_in, only, wait):
    """Calls on different streams share the filter's memory: without the streams' waits results are wrong. So
    is RGB of a frame to which another stream still writes."""
    ends = []
    for seed in (2, 3, 4, 6, 7, 8, 10, 11, 12):
        settings = {"SEED": seed, "IGNORE": wait}
        ends.append(stand_in([HERE / "card.py", "--only", only], **settings).returncode)
        if ends[-1] != 0:
            break
    assert any(ends)
