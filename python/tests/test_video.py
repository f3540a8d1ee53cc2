"""Readers and writers, against FFmpeg and the program."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import framepipe
import numpy as np
import pytest


def decoded(path, format, *options):
    """The frames' bytes as FFmpeg decodes them."""
    command = ["ffmpeg", "-v", "error", *options, "-i", path, "-map", "0:v", "-f", "rawvideo"]
    command += ["-fps_mode", "passthrough", "-pix_fmt", format, "-"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def streams(path):
    command = ["ffprobe", "-v", "error", "-show_streams", "-count_frames", "-of", "json", path]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["streams"]


@pytest.mark.parametrize("name", ["clip-odd.mp4", "clip-10bit.mkv", "clip-vfr.mkv", "clip.y4m"])
def test_frames_are_those_of_ffmpeg(samples, name):
    with framepipe.open(samples / name, end="12f") as reader:
        frames = list(reader)
        assert next(reader, None) is None
    assert [frame.index for frame in frames] == list(range(len(frames)))
    own = b"".join(plane.tobytes() for frame in frames for plane in frame.planes)
    assert own == decoded(samples / name, frames[0].format)[: len(own)]
    assert len(own) > 0 and {frame.format for frame in frames} == {reader.format}


def test_times_are_those_of_the_container(samples):
    command = ["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "frame=pts_time"]
    command += ["-of", "csv=p=0", samples / "clip-vfr.mkv"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    with framepipe.open(samples / "clip-vfr.mkv") as reader:
        times = [frame.time for frame in reader]
    np.testing.assert_allclose(times, [float(word.strip(",")) for word in said], atol=1e-3)
    assert len(times) > 3


def test_filtered_frames_are_those_of_filter_and_of_the_program(samples, tmp_path):
    path = samples / "clip-odd.mp4"
    chain = ["gaussian:sigma=1.5", framepipe.Mask([[0, -1, 0], [-1, 5, -1], [0, -1, 0]])]
    with framepipe.open(path, filters=chain, end="5f") as reader, framepipe.open(path, end="5f") as plain:
        for filtered, frame in zip(reader, plain, strict=True):
            luma = framepipe.filter(frame.planes[0], chain)
            np.testing.assert_array_equal(filtered.planes[0], luma)
    framepipe.run(path, tmp_path / "out.mkv", filters=chain, end="5f", encoder="ffv1")
    with framepipe.open(path, filters=chain, end="5f") as reader:
        own = b"".join(plane.tobytes() for frame in reader for plane in frame.planes)
    assert own == decoded(tmp_path / "out.mkv", reader.format)


def test_ranges_begin_and_end_where_they_should(samples):
    with framepipe.open(samples / "clip-odd.mp4") as reader:
        whole = [frame.planes[0].tobytes() for frame in reader]
    with framepipe.open(samples / "clip-odd.mp4", start="3f", end="7f") as reader:
        assert [frame.planes[0].tobytes() for frame in reader] == whole[3:7]
    rate = float(reader.rate)
    with framepipe.open(samples / "clip-odd.mp4", start=3 / rate + 1e-4, end=6.5 / rate) as reader:
        assert [frame.planes[0].tobytes() for frame in reader] == whole[4:7]


@pytest.mark.parametrize("name", ["clip-odd.mp4", "clip-vfr.mkv", "clip-rotated.mp4"])
def test_a_frames_time_finds_it(samples, name):
    with framepipe.open(samples / name) as reader:
        whole = [(frame.time, frame.planes[0].tobytes()) for frame in reader]
    for at in (1, 2, len(whole) // 2, len(whole) - 1):
        with framepipe.open(samples / name, start=whole[at][0]) as reader:
            assert reader.frames != 0
            assert next(reader).planes[0].tobytes() == whole[at][1]
        with framepipe.open(samples / name, end=whole[at][0]) as reader:
            assert [frame.planes[0].tobytes() for frame in reader] == [samples for _, samples in whole[:at]]


@pytest.mark.parametrize("format", ["rgba", "ya8", "yuva444p", "gbrap", "rgba64le", "yuva444p10le"])
def test_other_colours_keep_alpha(samples, format):
    with framepipe.open(samples / "still-rgba.png", format=format) as reader:
        frame = next(reader)
    other = frame.with_rgb(np.zeros_like(frame.to_rgb()))
    alphas = [
        planes[0][..., -1] if len(planes) == 1 else planes[3] for planes in (frame.planes, other.planes)
    ]
    assert len(np.unique(alphas[0])) > 2
    np.testing.assert_array_equal(*alphas)


def test_frames_of_another_reader_keep_their_times(samples, tmp_path):
    mp4, mkv = samples / "clip-720p.mp4", tmp_path / "clip.mkv"
    subprocess.run(["ffmpeg", "-v", "error", "-i", mp4, "-c", "copy", mkv], check=True)
    for frames, like in [(mkv, mp4), (mp4, mkv)]:
        target = tmp_path / f"{like.stem}-of-{frames.suffix[1:]}.mkv"
        with framepipe.open(like, end="5f") as model, framepipe.open(frames, end="5f") as reader:
            with framepipe.write(target, like=model, encoder="ffv1", copy_streams=False) as writer:
                expected = []
                for frame in reader:
                    expected.append(frame.time)
                    writer.write(frame)
        with framepipe.open(target) as written:
            found = [frame.time for frame in written]
        np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=0.0011)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_leaves_readers_and_writers_alone(samples, tmp_path):
    target = tmp_path / "out.mkv"
    with (
        framepipe.open(samples / "clip-odd.mp4") as reader,
        framepipe.write(target, like=reader, encoder="ffv1") as writer,
    ):
        writer.write(next(reader))
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                reader.close()
                writer.abandon()
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        writer.write(next(reader))
    with framepipe.open(target) as written:
        assert len(list(written)) == 2


def test_floating_point_pictures_are_filtered(tmp_path):
    picture = np.random.default_rng(1).random((9, 11), np.float32)
    (tmp_path / "a.pfm").write_bytes(b"Pf\n11 9\n-1\n" + picture[::-1].tobytes())
    with framepipe.open(tmp_path / "a.pfm", filters="gaussian:sigma=1") as reader:
        (frame,) = reader
    np.testing.assert_array_equal(frame.planes[0], framepipe.filter(picture, "gaussian:sigma=1"))


def test_colours_are_converted_by_matrix_and_range(samples):
    with framepipe.open(samples / "clip-odd.mp4", end="1f") as reader:
        frame = next(reader)
    rgb = frame.to_rgb()
    assert rgb.shape == (243, 321, 3) and rgb.dtype == np.uint8
    assert frame.format == "yuv444p" and frame.colour.range == "limited"
    # BT.601, as pictures of so few rows have it where nothing is stated.
    y, u, v = (plane.astype(np.float64) for plane in frame.planes)
    y, u, v = (y - 16) / 219, (u - 128) / 224, (v - 128) / 224
    red, blue = y + 1.402 * v, y + 1.772 * u
    green = (y - 0.299 * red - 0.114 * blue) / 0.587
    oracle = np.clip(np.stack([red, green, blue], -1), 0, 1) * 255
    assert np.abs(rgb - oracle).max() <= 0.52
    with framepipe.open(samples / "clip-odd.mp4", end="1f", format="rgb24") as reader:
        assert reader.format == "rgb24"
        # By another converter.
        assert np.abs(next(reader).planes[0].astype(int) - rgb).max() <= 1
    back = frame.with_rgb(255 - rgb)
    assert (back.format, back.pts, back.colour.range) == (frame.format, frame.pts, "limited")
    assert np.abs(back.to_rgb().astype(int) - (255 - rgb)).max() <= 3
    with pytest.raises(ValueError, match=r"takes an array of shape \(243, 321, 3\) and type uint8"):
        frame.with_rgb(rgb[1:])


@pytest.mark.parametrize("range", ["tv", "pc"])
@pytest.mark.parametrize("format", ["yuv444p", "yuv444p10le", "yuv444p16le", "yuva444p12le", "gray12le"])
def test_colours_come_back_in_the_frames_range(tmp_path, format, range):
    path = tmp_path / "a.nut"
    source = "testsrc2=size=64x48:duration=0.1"
    convert = f"format={format},setparams=range={range}:colorspace=bt2020nc"
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, "-vf", convert]
    subprocess.run([*command, "-frames:v", "1", "-c:v", "ffv1", "-color_range", range, path], check=True)
    with framepipe.open(path) as reader:
        frame = next(reader)
    back = frame.with_rgb(frame.to_rgb())
    assert back.colour == frame.colour
    # RGB of 16 bits holds no fewer levels; colours outside of it are cut.
    rgb = frame.to_rgb()
    inside = ((rgb > 0) & (rgb < np.iinfo(rgb.dtype).max)).all(axis=-1)
    assert inside.mean() > 0.2
    for before, after in zip(frame.planes, back.planes, strict=True):
        assert np.abs(after.astype(int) - before)[inside].max() <= 1


def test_deep_frames_become_deep_rgb(samples):
    with framepipe.open(samples / "clip-10bit.mkv", end="1f") as reader:
        frame = next(reader)
    assert frame.planes[0].dtype == np.uint16 and frame.planes[0].max() < 1024
    assert frame.to_rgb().dtype == np.uint16 and frame.to_rgb().max() > 1023


def test_images_are_read_as_frames(samples, tmp_path):
    with framepipe.open(samples / "frames") as reader:
        frames = list(reader)
    assert [frame.file.name for frame in frames] == [f"frame-{n}.png" for n in range(1, 13)]
    with framepipe.open(samples / "still-rgb.png", filters="box:size=3") as reader:
        (still,) = reader
    with framepipe.open(samples / "still-rgb.png") as reader:
        np.testing.assert_array_equal(still.planes[0], framepipe.filter(next(reader).planes[0], "box:size=3"))
    # By its content, where the name tells nothing.
    (tmp_path / "upload").write_bytes((samples / "still-rgb.png").read_bytes())
    with framepipe.open(tmp_path / "upload") as reader:
        assert reader.description.startswith("1 image file")


def test_what_is_written_is_read_again_with_its_sound(samples, tmp_path):
    source, target = samples / "clip-720p.mp4", tmp_path / "out.mkv"
    with framepipe.open(source, end="4f") as reader:
        with framepipe.write(target, like=reader, encoder="ffv1") as writer:
            kept = []
            for frame in reader:
                frame.planes[0][:100] = 16
                kept.append([plane.copy() for plane in frame.planes])
                assert not target.exists()
                writer.write(frame)
    assert "ffv1" in writer.description
    with framepipe.open(target) as reader:
        for frame, planes in zip(reader, kept, strict=True):
            for plane, expected in zip(frame.planes, planes, strict=True):
                np.testing.assert_array_equal(plane, expected)
    kinds = [stream["codec_type"] for stream in streams(target)]
    # The source's third stream has the titles of its chapters.
    assert kinds == ["video", "audio"] == [stream["codec_type"] for stream in streams(source)][:2]


def test_a_file_takes_frames_like_those_of_its_reader_alone(samples, tmp_path):
    with framepipe.open(samples / "still-rgb.png") as reader:
        foreign = next(reader)
    with framepipe.open(samples / "clip-odd.mp4") as reader:
        writer = framepipe.write(tmp_path / "out.mkv", like=reader)
        sizes = f"is {foreign.width}x{foreign.height} {foreign.format}, .*{reader.width}x{reader.height} "
        with pytest.raises(framepipe.Error, match=sizes + reader.format):
            writer.write(foreign)
    with pytest.raises(framepipe.Error, match="the file is closed"):
        writer.write(foreign)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_finished_leaves_nothing(samples, tmp_path):
    target = tmp_path / "out.mp4"
    with framepipe.open(samples / "clip-odd.mp4") as reader:
        with pytest.raises(RuntimeError, match="by the way"):
            with framepipe.write(target, like=reader) as writer:
                writer.write(next(reader))
                raise RuntimeError("by the way")
        with pytest.raises(framepipe.Error, match="the file is closed"):
            writer.write(next(reader))
        with pytest.raises(framepipe.Error, match="no frame was written"):
            with framepipe.write(target, like=reader):
                pass
        forgotten = framepipe.write(target, like=reader)
        with pytest.warns(ResourceWarning, match="was not closed"):
            del forgotten
            gc.collect()
    assert list(tmp_path.iterdir()) == []
    target.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        framepipe.write(target, like=reader)
    assert target.read_bytes() == b"mine"


@pytest.mark.parametrize(
    "arguments, error, sentence",
    [
        ({"path": "/nowhere.mp4"}, FileNotFoundError, "cannot read /nowhere.mp4"),
        ({"path": "http://localhost:1/x.mp4"}, framepipe.Error, "allow_urls is an option of framepipe.run"),
        ({"path": "/dev/null"}, framepipe.Error, "an image or a directory of images$"),
        ({"path": __file__}, framepipe.Error, "FFmpeg finds no audio or video|text file"),
        ({"filters": "nonsense"}, ValueError, "'nonsense' is no filter"),
        ({"filters": "box:size=3", "planes": "r"}, ValueError, "a component that yuv4"),
        ({"start": "soon"}, ValueError, "'soon' is no time"),
        ({"start": 5, "end": 4.0}, ValueError, "it holds no frame"),
        ({"start": 1e6}, framepipe.Error, None),
        ({"format": "pal8"}, ValueError, "'pal8' is not a pixel format"),
        ({"engine": "gpu"}, ValueError, "'gpu' is no engine"),
    ],
)
def test_what_cannot_be_read_is_said(samples, arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        list(framepipe.open(**{"path": samples / "clip-odd.mp4"} | arguments))


def test_an_input_that_was_cut_off_is_never_a_whole_one(samples, tmp_path):
    film, raw = tmp_path / "cut.mkv", tmp_path / "cut.y4m"
    film.write_bytes((samples / "clip-vfr.mkv").read_bytes()[:-3000])
    with pytest.warns(UserWarning, match="bytes are missing") as caught:
        frames = len(list(framepipe.open(film)))
    assert 0 < frames < 102
    # It is the caller's.
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.raises(framepipe.Error, match="bytes are missing"):
        list(framepipe.open(film, strict=True))
    raw.write_bytes((samples / "clip.y4m").read_bytes()[:-100])
    frames = []
    with pytest.raises(framepipe.Error, match="100 bytes are missing"):
        frames.extend(frame.index for frame in framepipe.open(raw))
    assert len(frames) <= 4


def memory():
    """Bytes that the process has in memory, and its open files."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd"))


def test_a_thousand_readers_leave_nothing_behind(samples):
    def read_one(turn):
        reader = framepipe.open(samples / "clip.y4m", filters="box:size=3", threads=2)
        next(reader)
        if turn % 2:
            reader.close()

    for turn in range(100):
        read_one(turn)
    gc.collect()
    bytes_before, files_before = memory()
    threads = len(os.listdir("/proc/self/task"))
    for turn in range(900):
        read_one(turn)
    gc.collect()
    bytes_after, files_after = memory()
    assert files_after == files_before
    assert len(os.listdir("/proc/self/task")) <= threads
    assert bytes_after - bytes_before < 16 << 20


def test_a_slow_loop_does_not_gather_frames(tmp_path):
    path = tmp_path / "long.y4m"
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=640x480:r=50:d=3"]
    command += ["-pix_fmt", "yuv420p", path]
    subprocess.run(command, check=True)
    with framepipe.open(path, filters="box:size=3", threads=1) as reader:
        next(reader)
        time.sleep(0.3)
        before, _ = memory()
        count = 1 + sum(1 for frame in reader if time.sleep(0.001) is None)
        after, _ = memory()
    assert count == 150
    assert after - before < 32 * 640 * 480 * 3 // 2


def test_frames_outlive_their_reader(samples):
    with framepipe.open(samples / "clip-odd.mp4") as reader:
        frames = [next(reader) for _ in range(20)]
    hashes = {frame.planes[0].tobytes() for frame in frames}
    assert len(hashes) == 20


def test_a_closed_reader_gives_nothing_more(samples):
    reader = framepipe.open(samples / "clip-odd.mp4")
    next(reader)
    reader.close()
    reader.close()
    with pytest.raises(ValueError, match="closed"):
        next(reader)
    with framepipe.open(samples / "clip-odd.mp4", end="2f") as reader:
        assert len(list(reader)) == 2
        assert list(reader) == []
    with pytest.raises(ValueError, match="closed"):
        list(reader)


def test_messages_name_what_the_function_has(samples, tmp_path):
    with framepipe.open(samples / "clip-odd.mp4") as reader:
        with pytest.raises(framepipe.Error, match="a video is written here; end it in .mp4"):
            framepipe.write(tmp_path / "still.png", like=reader)
        with pytest.raises(framepipe.Error, match="has no presets; leave preset out"):
            framepipe.write(tmp_path / "out.mkv", like=reader, encoder="ffv1", preset="slow")


def test_a_writer_needs_a_reader(tmp_path):
    with pytest.raises(TypeError, match="framepipe.Reader"):
        framepipe.write(tmp_path / "out.mp4", like=None)
    assert not list(tmp_path.iterdir())


def test_several_threads_share_a_reader(samples):
    with framepipe.open(samples / "clip-odd.mp4") as reader:
        seen = []
        threads = [
            threading.Thread(target=lambda: seen.extend(frame.index for frame in reader)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(seen) == list(range(len(seen))) and len(seen) > 10


def test_a_reader_does_not_go_through_a_fork(samples):
    reader = framepipe.open(samples / "clip-odd.mp4")
    next(reader)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            next(reader)
        except framepipe.Error as error:
            del reader
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0) == (child, 0)
    assert next(reader).index == 1
    reader.close()


def test_ctrl_c_ends_a_wait_for_frames(samples, tmp_path, interrupted):
    pipe = tmp_path / "pipe.y4m"
    os.mkfifo(pipe)
    whole = (samples / "clip.y4m").read_bytes()
    feeder = subprocess.Popen(
        [sys.executable, "-c", "import sys, time; f = open(sys.argv[1], 'wb'); f.write(sys.stdin.buffer."
         "read()); f.flush(); time.sleep(60)", pipe], stdin=subprocess.PIPE,
    )
    try:
        feeder.stdin.write(whole[: len(whole) // 2])
        feeder.stdin.close()
        code, said = interrupted(
            """
            import sys, framepipe
            for frame in framepipe.open(sys.argv[1]):
                if frame.index == 0:
                    print("ready", flush=True)
            """,
            pipe,
        )
    finally:
        feeder.kill()
        feeder.wait()
    assert code != 0 and said.rstrip().endswith("KeyboardInterrupt")
