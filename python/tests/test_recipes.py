"""The recipes of docs/python.md: those whose packages are here run, and of the others every call fits."""

import ast
import inspect
import pathlib
import re
import sys
import types

import cv2
import framepipe
import numpy as np
import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
RECIPES = dict(re.findall(r"^## ([^\n]+)\n\n```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S))


def recipe(words):
    (text,) = [text for heading, text in RECIPES.items() if words in heading]
    return text


def test_there_are_five():
    assert len(RECIPES) == 5


def test_an_array():
    said = {}
    exec(recipe("An array"), said)
    picture, deep = said["picture"], said["ten_bits"]
    smooth = cv2.GaussianBlur(picture, (13, 13), 2, borderType=cv2.BORDER_REPLICATE)
    # Where the last but one line did not write, the picture is what it was.
    rows = slice(220, 1000)
    assert np.abs(said["blurred"][rows].astype(int) - smooth[rows]).max() <= 2
    assert deep.dtype == np.uint16 and deep.max() <= 1023
    assert said["edges"].shape == said["relief"].shape == picture.shape


def test_a_capture_loop(samples, monkeypatch):
    clip = cv2.VideoCapture(str(samples / "clip-720p.mp4"))
    shown = []
    monkeypatch.setattr(cv2, "VideoCapture", lambda number: clip)
    monkeypatch.setattr(cv2, "imshow", lambda _, picture: shown.append(picture.copy()), raising=False)
    monkeypatch.setattr(cv2, "waitKey", lambda _: 27 if len(shown) == 4 else -1, raising=False)
    said = {}
    exec(recipe("capture loop"), said)
    assert len(shown) == 4
    np.testing.assert_array_equal(shown[-1], framepipe.filter(said["frame"], "gaussian:sigma=3"))


def test_before_and_after(samples, tmp_path, monkeypatch):
    shown = []
    pyplot = types.ModuleType("matplotlib.pyplot")
    pyplot.imshow, pyplot.title = shown.append, lambda _: None
    package = types.ModuleType("matplotlib")
    package.pyplot = pyplot
    monkeypatch.setitem(sys.modules, "matplotlib", package)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.mp4").symlink_to(samples / "clip-720p.mp4")
    said = {}
    exec(recipe("notebook"), said)
    (picture,) = shown
    half = picture.shape[1] // 2
    np.testing.assert_array_equal(picture[:, :half], said["before"][:, :half])
    np.testing.assert_array_equal(picture[:, half:], said["after"][:, half:])
    assert (said["before"] != said["after"]).any()


@pytest.mark.parametrize("heading", RECIPES)
def test_calls_fit(heading):
    """Names of the package are there, and calls have arguments that they take."""
    calls = 0
    for node in ast.walk(ast.parse(RECIPES[heading])):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "framepipe"):
                continue
            function = getattr(framepipe, node.func.attr)
            names = {keyword.arg: None for keyword in node.keywords}
            inspect.signature(function).bind(*[None] * len(node.args), **names)
            calls += 1
    assert calls > 0
