"""Arrays of other libraries in the host's memory, and arrays on a card where there is none."""

import types

import framepipe
import numpy as np
import pytest


class Foreign:
    """An array as a library has it that follows Python's array standard."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __array_namespace__(self):
        return types.SimpleNamespace(from_dlpack=lambda array: Foreign(np.from_dlpack(array)))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(30, 41), (30, 41, 3), (2, 20, 31, 4)])
def test_what_comes_back_is_of_the_same_kind(noise, shape, dtype):
    picture = noise(*shape, dtype=dtype)
    result = framepipe.filter(Foreign(picture), "gaussian:sigma=2")
    assert isinstance(result, Foreign)
    np.testing.assert_array_equal(result.values, framepipe.filter(picture, "gaussian:sigma=2"))
    part = framepipe.filter(Foreign(picture[..., 3:20, :]), "gaussian:sigma=2")
    np.testing.assert_array_equal(part.values, framepipe.filter(picture[..., 3:20, :], "gaussian:sigma=2"))


def test_they_are_not_copied(noise, monkeypatch):
    picture, given = noise(30, 40), []
    real = framepipe._arrays._framepipe.filter_pictures

    def watched(source, target, *rest, **more):
        given[:] = [array.__array_interface__["data"][0] for array in (source, target)]
        return real(source, target, *rest, **more)

    monkeypatch.setattr(framepipe._arrays._framepipe, "filter_pictures", watched)
    result = framepipe.filter(Foreign(picture), "sharpen")
    assert given == [array.__array_interface__["data"][0] for array in (picture, result.values)]


def test_the_result_may_go_to_one(noise):
    class Tensor(Foreign):
        def __array__(self, dtype=None, copy=None):
            return self.values

    picture, out = noise(30, 40), Tensor(np.zeros((30, 40), np.uint8))
    assert framepipe.filter(Tensor(picture), "sharpen", out=out) is out
    np.testing.assert_array_equal(out.values, framepipe.filter(picture, "sharpen"))
    with pytest.raises(ValueError, match="out is of shape"):
        framepipe.filter(Tensor(picture), "sharpen", out=Tensor(out.values[1:]))

    class OnDisk:
        def __array__(self, dtype=None, copy=None):
            return out.values.copy()

    with pytest.raises(TypeError, match="sees a copy of OnDisk"):
        framepipe.filter(Tensor(picture), "sharpen", out=OnDisk())


def test_lists_and_pictures_of_other_packages_are_arrays():
    class Picture:
        def __array__(self, dtype=None, copy=None):
            return np.full((4, 5), 9, np.uint8)

    assert (framepipe.filter(Picture(), "box:size=3") == 9).all()
    with pytest.raises(TypeError, match="arrays of int64 are not filtered"):
        framepipe.filter([[1, 2], [3, 4]], "box:size=3")


def on_card(**more):
    interface = {"shape": (4, 4), "strides": None, "typestr": "|u1", "data": (4096, False), "version": 3}
    return types.SimpleNamespace(__cuda_array_interface__=interface | more)


def test_a_card_that_is_not_there_is_one_sentence():
    with pytest.raises((framepipe.Error, ValueError)) as raised:
        framepipe.filter(on_card(), "sharpen")
    said = str(raised.value)
    assert "NVIDIA driver" in said or "none of a card's memory" in said
    assert "\n" not in said and "--" not in said


@pytest.mark.parametrize(
    "engine, sentence",
    [("cpu", "engine='cpu' filters in the host's memory"), ("gpu", "'gpu' is no engine; use auto, cpu")],
)
def test_other_engines_take_no_array_of_a_card(engine, sentence):
    with pytest.raises(ValueError, match=sentence):
        framepipe.filter(on_card(), "sharpen", engine=engine)


def test_masked_arrays_of_a_card_are_refused():
    with pytest.raises(ValueError, match="arrays with a mask of their own"):
        framepipe.filter(on_card(mask=on_card()), "sharpen")
