"""What `filter` computes, against SciPy, OpenCV, 64-bit floats and the program."""

import cv2
import framepipe
import numpy as np
import pytest
import scipy.ndimage


def correlate(plane, weights, border, white):
    """SciPy's sums. Borders have SciPy's names but for two; the level of a constant is of 255."""
    word, _, level = border.partition(":")
    mode = {"replicate": "nearest", "zero": "constant"}.get(word, word)
    return scipy.ndimage.correlate(plane, weights, mode=mode, cval=float(level or 0) * white / 255)


def exact(picture, weights, divisor, border="replicate"):
    """The sums over a mask of integers, halves rounded up, as arithmetic.md defines them."""
    most = np.iinfo(picture.dtype).max
    weights = np.asarray(weights, np.int64)
    planes = picture.reshape(*picture.shape[:2], -1)
    sums = [
        correlate(planes[..., c].astype(np.int64), weights, border, white=255 * (most + 1) // 256)
        for c in range(planes.shape[2])
    ]
    rounded = (2 * np.stack(sums, -1) + divisor) // (2 * divisor)
    return np.clip(rounded, 0, most).astype(picture.dtype).reshape(picture.shape)


ROWS = [[1, -2, 3], [0, 5, 1], [2, 4, 2]]


@pytest.mark.parametrize("border", framepipe.BORDERS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(37, 53), (37, 53, 1), (20, 31, 3), (9, 11, 7)])
def test_sums_are_exact(noise, shape, dtype, border):
    picture = noise(*shape, dtype=dtype)
    result = framepipe.filter(picture, framepipe.Mask(ROWS, 16), border=border)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, exact(picture, ROWS, 16, border))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("sigma", [0.8, 2, 5])
def test_gaussians_are_those_of_scipy_and_opencv(noise, dtype, sigma):
    picture = noise(90, 120, dtype=dtype)
    radius = 2 * int(np.ceil(1.5 * sigma))
    size = 2 * radius + 1
    result = framepipe.filter(picture, f"gaussian:sigma={sigma}:size={size}").astype(np.int64)
    oracle = scipy.ndimage.gaussian_filter(picture.astype(np.float64), sigma, mode="nearest", radius=radius)
    # Weights have 16 bits; OpenCV's have fewer.
    assert np.abs(result - oracle).max() <= (0.51 if dtype == np.uint8 else 65535e-4)
    opencv = cv2.GaussianBlur(picture, (size, size), sigma, borderType=cv2.BORDER_REPLICATE)
    assert np.abs(result - opencv).max() <= (2 if dtype == np.uint8 else 2 * 65535e-4)


@pytest.mark.parametrize("border", framepipe.BORDERS)
@pytest.mark.parametrize("shape", [(37, 53), (1, 1), (20, 31, 3), (9, 11, 7), (2, 13, 17, 3)])
def test_floats_are_those_of_scipy(shape, border):
    picture = np.random.default_rng(5).normal(0, 3, shape).astype(np.float32)
    batch = picture.reshape(-1, *shape[-3:-1], shape[-1]) if len(shape) > 2 else picture[None, ..., None]
    weights = np.asarray(ROWS)
    sums = np.stack([
        np.stack([
            correlate(one[..., c].astype(np.float64), weights / 16, border, white=1)
            for c in range(one.shape[2])
        ], -1)
        for one in batch
    ]).reshape(shape)
    result = framepipe.filter(picture, framepipe.Mask(ROWS, 16), border=border)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, sums, atol=1e-5)
    plain = framepipe.filter(picture, framepipe.Mask(ROWS, 16), border=border, engine="reference")
    np.testing.assert_array_equal(result, plain)


def test_floats_are_no_integers_and_may_be_none():
    picture = np.zeros((5, 7), np.float32)
    picture[2, 3] = np.nan
    result = framepipe.filter(picture, "box:size=3")
    assert np.isnan(result[1:4, 2:5]).all() and np.isnan(result).sum() == 9
    with pytest.raises(ValueError, match="samples of grayf16le are floating-point numbers"):
        framepipe.filter(np.zeros((5, 7), np.uint16), "box:size=3", format="grayf16le")
    wide = np.full((4, 4), 2.0**33, np.float32)
    np.testing.assert_array_equal(framepipe.filter(wide, "sharpen", format="grayf32le"), wide)


def test_boxes_are_those_of_opencv(noise):
    picture = noise(60, 80, 3)
    result = framepipe.filter(picture, "box:size=5", border="mirror")
    opencv = cv2.blur(picture, (5, 5), borderType=cv2.BORDER_REFLECT_101)
    assert np.abs(result.astype(int) - opencv).max() <= 1


def test_a_list_is_a_chain(noise):
    picture = noise(40, 50)
    steps = ["gaussian:sigma=1", framepipe.Mask(ROWS, 16), "laplacian8"]
    apart = picture
    for step in steps:
        apart = framepipe.filter(apart, step)
    np.testing.assert_array_equal(framepipe.filter(picture, steps), apart)
    np.testing.assert_array_equal(
        framepipe.filter(picture, f"gaussian:sigma=1,{steps[1].spec},laplacian8"), apart
    )


def test_colours_are_weighted_by_alpha_which_stays(noise):
    picture = noise(30, 40, 4)
    picture[:10, :10, 3] = 0
    mask = [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    result = framepipe.filter(picture, framepipe.Mask(mask, 16))
    # The formula of arithmetic.md, whose sums are exact in 32 bits with weights over 16.
    colours, alpha = picture[..., :3].astype(np.int64), picture[..., 3:].astype(np.int64)
    weights = np.asarray(mask)[..., None]
    sums, weight = (scipy.ndimage.correlate(p, weights, mode="nearest") for p in (colours * alpha, alpha))
    divided = np.float32(sums / 16) / np.maximum(np.float32(weight / 16), np.float32(1 / 16))
    mixed = np.floor(divided + np.float32(0.5)).astype(np.int64)
    np.testing.assert_array_equal(result[..., 3], picture[..., 3])
    np.testing.assert_array_equal(result[..., :3], np.where(weight > 0, np.minimum(mixed, 255), colours))
    assert (weight == 0).any()


def test_a_gray_format_filters_each_sample_by_itself(noise):
    picture = noise(30, 40, 4)
    result = framepipe.filter(picture, framepipe.Mask(ROWS, 16), format="gray")
    np.testing.assert_array_equal(result, exact(picture, ROWS, 16))


def test_a_format_says_how_deep_samples_are(noise):
    picture = noise(20, 30, 3, dtype=np.uint16) >> 6
    result = framepipe.filter(picture, "mask:rows=4", format="gray10le")
    np.testing.assert_array_equal(result, np.minimum(picture.astype(int) * 4, 1023))
    with pytest.raises(ValueError, match="the array has a sample of 1024, and gray10le ends at 1023"):
        framepipe.filter(np.full((3, 3), 1024, np.uint16), "box:size=3", format="gray10le")


def test_planes_choose_components(noise):
    picture = noise(20, 30, 3)
    result = framepipe.filter(picture, "box:size=3", planes="g")
    np.testing.assert_array_equal(result[..., ::2], picture[..., ::2])
    np.testing.assert_array_equal(result[..., 1], framepipe.filter(picture[..., 1], "box:size=3"))
    luma = framepipe.filter(picture, "box:size=3", planes="luma")
    bgr = framepipe.filter(picture[..., ::-1], "box:size=3", planes="luma", format="bgr24")
    np.testing.assert_array_equal(luma, bgr[..., ::-1])
    assert (luma != result).any()


@pytest.mark.parametrize("name", ["still-gray", "still-gray16", "still-rgb", "still-rgb16", "still-rgba"])
def test_results_are_the_programs(samples, tmp_path, name):
    source, target = samples / f"{name}.png", tmp_path / "out.png"
    filters = ["gaussian:sigma=1.5", "unsharp:sigma=1:amount=0.6"]
    framepipe.run(source, target, filters=filters, border="wrap")
    picture, expected = (cv2.imread(str(path), cv2.IMREAD_UNCHANGED) for path in (source, target))
    np.testing.assert_array_equal(framepipe.filter(picture, filters, border="wrap"), expected)


@pytest.mark.parametrize("planes", ["all", "luma"])
def test_engines_and_threads_give_the_same_bits(noise, planes):
    batch = noise(5, 61, 47, 3)
    results = [
        framepipe.filter(batch, "gaussian:sigma=2,sobel", planes=planes, engine=engine, threads=threads)
        for engine, threads in [("cpu", 1), ("cpu", 3), ("auto", 0), ("reference", 0)]
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    each = [framepipe.filter(picture, "gaussian:sigma=2,sobel", planes=planes) for picture in batch]
    np.testing.assert_array_equal(results[0], each)


def test_a_card_gives_the_same_bits_or_is_missed(noise):
    batch = noise(5, 61, 47, 3)
    try:
        result = framepipe.filter(batch, "gaussian:sigma=2", engine="cuda")
    except framepipe.Error as missing:
        assert "NVIDIA driver" in str(missing)
    else:
        np.testing.assert_array_equal(result, framepipe.filter(batch, "gaussian:sigma=2"))


def test_masks_are_kept_exactly():
    third = framepipe.Mask(np.full((3, 3), 1), 9)
    decimals = framepipe.Mask([[0.125, 0.25, 0.125]], bias=2.5)
    assert third.spec == "mask:rows=1 1 1;1 1 1;1 1 1:divisor=9"
    assert decimals.spec == "mask:rows=0.125 0.25 0.125:bias=2.5"
    assert framepipe.Mask([[1, 2, 1]], "sum").spec == "mask:rows=1 2 1:divisor=sum"
    picture = np.full((4, 4), 100, np.uint8)
    assert (framepipe.filter(picture, third) == 100).all()
    assert (framepipe.filter(picture, decimals) == 53).all()  # 50 + 2.5, halves up


def test_a_mask_file_is_read_each_time(tmp_path):
    picture = np.full((4, 4), 100, np.uint8)
    file = tmp_path / "mask.txt"
    for factor in (1, 2):
        file.write_text(f"{factor}\n")
        assert (framepipe.filter(picture, f"mask:file={file}") == 100 * factor).all()


def test_the_list_of_masks_is_the_programs():
    masks = framepipe.masks()
    assert {"gaussian", "box", "sobel", "mask"} <= masks.keys()
    assert all(masks.values())


def test_subclasses_of_arrays_are_taken_as_plain_arrays(noise, tmp_path):
    picture = noise(20, 30, 3)
    mapped = np.memmap(tmp_path / "picture", np.uint8, "w+", shape=picture.shape)
    mapped[:] = picture
    expected = framepipe.filter(picture, "box")
    result = framepipe.filter(mapped, "box")
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, expected)
    target = np.memmap(tmp_path / "result", np.uint8, "w+", shape=picture.shape)
    assert framepipe.filter(picture, "box", out=target) is target
    np.testing.assert_array_equal(target, expected)
    with pytest.raises(TypeError, match="masked arrays are not filtered"):
        framepipe.filter(np.ma.masked_equal(picture, 3), "box")
