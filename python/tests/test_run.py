"""`run`, the command, and what is said of both."""

import json
import subprocess
import sys

import framepipe
import pytest


def test_a_report_comes_back_and_progress_is_told(samples, tmp_path):
    states = []
    report = framepipe.run(
        samples / "clip-odd.mp4", tmp_path / "out.mp4", filters="box:size=3", end="6f", progress=states.append
    )
    assert report["frames"] == 6 and report["ending"] == "complete"
    assert report["schema"] == "framepipe-report"
    assert states[-1]["state"] == "ended" and states[-1]["frames"] == 6
    assert (tmp_path / "out.mp4").stat().st_size > 0


@pytest.mark.parametrize(
    "options, error, sentence",
    [
        ({"filters": "nonsense"}, ValueError, "'nonsense' is no filter"),
        ({"filters": []}, ValueError, r"(?<!-)filters"),
        ({"qality": 3}, ValueError, "'qality'"),
        ({"report": "x.json"}, TypeError, "does not take report"),
        ({"dry_run": True}, TypeError, "does not take dry_run"),
        ({"input": "/nowhere.mp4"}, framepipe.Error, "^cannot read /nowhere.mp4"),
        ({"encoder": "nonsense"}, framepipe.Error, "nonsense"),
    ],
)
def test_what_cannot_be_is_said_and_leaves_nothing(samples, tmp_path, options, error, sentence):
    usual = {"input": samples / "clip-odd.mp4", "output": tmp_path / "out.mp4", "filters": "box:size=3"}
    with pytest.raises(error, match=sentence):
        framepipe.run(**usual | options)
    assert list(tmp_path.iterdir()) == []


def test_warnings_of_the_program_are_raised(samples, tmp_path):
    options = {"filters": "box:size=3", "end": "2f"}
    with pytest.warns(UserWarning) as raised:
        report = framepipe.run(samples / "clip-odd.mp4", tmp_path / "out.gif", **options)
    assert [str(one.message) for one in raised] == report["warnings"]
    lost = "\n".join(report["warnings"])
    assert "colours" in lost and "pixel aspect" in lost
    with pytest.raises(framepipe.Error, match="without strict=True"):
        framepipe.run(samples / "clip-odd.mp4", tmp_path / "strict.gif", strict=True, **options)


def test_an_output_that_is_there_is_passed_over_or_refused(samples, tmp_path):
    (tmp_path / "in").mkdir()
    still, out = samples / "still-rgb.png", tmp_path / "out"
    (tmp_path / "in" / "a.png").write_bytes(still.read_bytes())
    for frames in 1, 0:
        report = framepipe.run(tmp_path / "in", f"{out}/", filters="soft", skip_existing=True)
        assert report["frames"] == frames
    with pytest.raises(FileExistsError, match="exists; pass overwrite=True"):
        framepipe.run(still, out / "a.png", filters="soft")


def test_an_exception_in_the_last_call_of_progress_comes_too_late(samples, tmp_path):
    def fail(state):
        if state["state"] == "ended":
            raise LookupError

    with pytest.raises(LookupError):
        framepipe.run(samples / "still-rgb.png", tmp_path / "out.png", filters="soft", progress=fail)
    assert (tmp_path / "out.png").stat().st_size > 0


def test_an_exception_in_progress_ends_the_run(tmp_path):
    def stop(state):
        raise LookupError(state["state"])

    endless = "synthetic:320x240:yuv420p:25:0:fresh"
    with pytest.raises(LookupError):
        framepipe.run(endless, tmp_path / "out.y4m", filters="box:size=3", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_a_run_and_leaves_nothing(tmp_path, interrupted):
    code, said = interrupted(
        """
        import sys, framepipe
        announce = lambda state: state["frames"] and print("ready", flush=True)
        framepipe.run("synthetic:320x240:yuv420p:25:0:fresh", sys.argv[1], filters="box:size=3",
                      progress=announce)
        """,
        tmp_path / "out.y4m",
    )
    assert code != 0 and said.rstrip().endswith("KeyboardInterrupt")
    assert list(tmp_path.iterdir()) == []


def test_the_command_and_the_module_are_the_program():
    version = f"framepipe {framepipe.__version__}"
    for command in (["framepipe"], [sys.executable, "-m", "framepipe"]):
        said = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True)
        assert said.stdout.startswith(version)
        refused = subprocess.run([*command, "filter"], capture_output=True)
        assert refused.returncode == 2
    listed = subprocess.run(["framepipe", "masks"], check=True, capture_output=True, text=True).stdout
    assert all(f"\n{name} " in listed and about in listed for name, about in framepipe.masks().items())


def test_the_examples_of_the_documentation_hold(tmp_path, samples, monkeypatch):
    import doctest

    import numpy
    from framepipe import _arrays, _run, _video

    monkeypatch.chdir(samples.parent)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    names = {"framepipe": framepipe, "numpy": numpy, "out": tmp_path}
    for module, least in ((framepipe, 4), (_arrays, 8), (_run, 2), (_video, 6)):
        result = doctest.testmod(module, extraglobs=names, optionflags=flags)
        assert result.failed == 0 and result.attempted >= least, module
    public = [getattr(framepipe, name) for name in framepipe.__all__]
    assert all(item.__doc__ for item in public if callable(item))


def test_a_report_is_json_all_through(samples, tmp_path):
    report = framepipe.run(samples / "still-rgb.png", tmp_path / "out.png", filters="sobel")
    assert json.loads(json.dumps(report)) == report
