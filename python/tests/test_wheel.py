"""The parts of scripts/wheel, on a program that needs little; the whole builds a release, and tests it."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def script():
    loader = importlib.machinery.SourceFileLoader("wheel_script", str(SCRIPTS / "wheel"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("wheel_script", loader))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


def compile_c(text, made, *options):
    source = made.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["cc", source, "-o", made, *options], check=True)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program that needs a library, which needs another and Codec 2, in a folder that only we know."""
    system = tmp_path / "system"
    system.mkdir()
    options = ["-shared", "-fPIC", f"-L{system}", f"-Wl,-rpath-link,{system}"]
    compile_c("int six(void) { return 6; }", system / "libsix.so.2", *options, "-Wl,-soname,libsix.so.2")
    speech = system / "libcodec2.so.1.0"
    compile_c("void *codec2_create(int m) { static int c; return &c; }", speech, *options,
              "-Wl,-soname,libcodec2.so.1.0")
    nine = "int nine(void) { return six() + (codec2_create(1) ? 0 : 3); }"
    compile_c(f"int six(void); void *codec2_create(int m); {nine}", system / "libnine.so.1", *options,
              "-Wl,-soname,libnine.so.1", "-l:libsix.so.2", "-l:libcodec2.so.1.0")
    made = tmp_path / "package" / "bin" / "program"
    made.parent.mkdir(parents=True)
    compile_c("int nine(void); int main(void) { return nine(); }", made, f"-L{system}", "-l:libnine.so.1",
              f"-Wl,-rpath-link,{system}")
    made.with_suffix(".c").unlink()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(system))
    return made


def test_libraries_come_along(script, program, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert subprocess.run([program]).returncode == 6
    libraries = script.bring_libraries([program], tmp_path / "package" / "lib", scratch)
    assert sorted(libraries) == ["libcodec2.so.1.0", "libnine.so.1", "libsix.so.2"]
    monkeypatch.delenv("LD_LIBRARY_PATH")
    shutil.rmtree(tmp_path / "system")
    moved = tmp_path / "elsewhere"
    (tmp_path / "package").rename(moved)
    # What is left out answers that it cannot.
    assert subprocess.run([moved / "bin" / "program"]).returncode == 9
    said = subprocess.run(["ldd", moved / "bin" / "program"], capture_output=True, text=True).stdout
    assert said.count(f"{tmp_path}/elsewhere") == 3 and "not found" not in said
    names = [path.name for path in (moved / "lib").iterdir()]
    assert len(names) == 3 and not set(names) & set(libraries)
    major, minor = script.oldest_glibc([moved / "bin" / "program"])
    assert (major, minor) >= (2, 2)


def test_a_wheel_is_packed_as_pip_wants_it(script, tmp_path):
    folder = tmp_path / "unpacked"
    info = folder / "thing-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "thing.py").write_text("ANSWER = 42\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel = tmp_path / "thing-1.0-py3-none-any.whl"
    script.pack(folder, wheel)
    assert zipfile.ZipFile(wheel).testzip() is None
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-index"]
    subprocess.run([*pip, "--target", target, wheel], check=True)
    assert (target / "thing.py").read_text() == "ANSWER = 42\n"
    assert "thing.py,sha256=" in (target / "thing-1.0.dist-info" / "RECORD").read_text()
