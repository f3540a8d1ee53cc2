//! A stand-in for a card: the CUDA driver and NVRTC made of this machine's processor, which run framepipe's
//! own kernel texts (tests/standin/README.md). Built with clang++ when a test first asks for it.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;

/// The driver's texts, and all others that what is built depends on.
const DRIVER: [&str; 4] = ["driver.cpp", "block.cpp", "memory.cpp", "queue.cpp"];
const NVRTC: &str = "nvrtc.cpp";

/// The two libraries, and what was compiled with them.
pub(crate) struct StandIn {
    pub(crate) libraries: PathBuf,
    compiled: PathBuf,
}

/// The stand-in, or `None` where there is no clang++ to build it with; then one visible line says so. In CI
/// it must be there.
pub(crate) fn stand_in() -> Option<&'static StandIn> {
    static BUILT: OnceLock<Option<StandIn>> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            let missing = match compiler() {
                // A bundle has the tests, and no texts.
                Some(_) if !texts().is_dir() => "its texts are not here",
                Some(compiler) => return Some(build(&compiler, &texts())),
                None => "there is no clang++ to build it with",
            };
            let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
            assert!(
                !in_ci,
                "in CI the stand-in for a card must be built, but {missing}"
            );
            // Straight to the stream, since the harness shows what a passing test prints to nobody.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: the tests on a stand-in for a card: {missing}"
            );
            None
        })
        .as_ref()
}

/// The folder of the texts.
fn texts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standin")
}

/// clang++ under its plain name, or with a version.
pub(crate) fn compiler() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let names = std::iter::once("clang++".to_owned()).chain((11..30).rev().map(|n| format!("clang++-{n}")));
    names
        .flat_map(|name| folders.iter().map(move |folder| folder.join(&name)))
        .find(|path| path.is_file())
}

fn build(compiler: &Path, texts: &Path) -> StandIn {
    let mut files: Vec<PathBuf> = fs::read_dir(texts)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    // Libraries of other texts, or of texts elsewhere, are others.
    let mut key = DefaultHasher::new();
    (compiler, &files).hash(&mut key);
    for file in &files {
        fs::read(file).unwrap().hash(&mut key);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("standin");
    let stand_in = StandIn {
        libraries: folder.join(format!("{:016x}", key.finish())),
        compiled: folder.join("compiled"),
    };
    fs::create_dir_all(&stand_in.libraries).unwrap();
    fs::create_dir_all(&stand_in.compiled).unwrap();
    // Side by side; then under their names at once, so that no other process loads half of one.
    let library = |name: &str, sources: &[&str]| Library::begin(stand_in.libraries.join(name), sources);
    let under_way = [library("libcuda.so", &DRIVER), library("libnvrtc.so", &[NVRTC])];
    under_way.into_iter().flatten().for_each(Library::end);
    stand_in
}

/// A library that is being built.
pub(crate) struct Library {
    child: Child,
    part: PathBuf,
    made: PathBuf,
}

impl Library {
    /// Begins to build `made` of these texts; `None` if it is there.
    pub(crate) fn begin(made: PathBuf, sources: &[&str]) -> Option<Library> {
        if made.exists() {
            return None;
        }
        let mut part = made.clone().into_os_string();
        part.push(format!(".{}", std::process::id()));
        let (part, compiler) = (PathBuf::from(part), compiler().unwrap());
        let child = Command::new(&compiler)
            .args([
                "-std=c++17",
                "-O2",
                "-Wall",
                "-Wextra",
                "-shared",
                "-fPIC",
                "-pthread",
            ])
            // A library that was looked at and closed keeps its state.
            .args(["-Wl,-z,nodelete", "-Wl,--no-undefined", "-ldl"])
            .arg(format!("-DSTANDIN_COMPILER=\"{}\"", compiler.display()))
            .arg(format!("-DSTANDIN_FOLDER=\"{}\"", texts().display()))
            .args(sources.iter().map(|source| texts().join(source)))
            .arg("-o")
            .arg(&part)
            .spawn()
            .unwrap();
        Some(Library { child, part, made })
    }

    /// Waits until it is there.
    pub(crate) fn end(mut self) {
        assert!(
            self.child.wait().unwrap().success(),
            "the stand-in for a card cannot be built"
        );
        fs::rename(self.part, self.made).unwrap();
    }
}

impl StandIn {
    /// Lets `command` find the stand-in where it would look for the driver and NVRTC. Kernels are kept by
    /// framepipe in `cache`.
    pub(crate) fn with<'a>(&self, command: &'a mut Command, cache: &Path) -> &'a mut Command {
        let mut path = OsString::from(&self.libraries);
        if let Some(others) = std::env::var_os("LD_LIBRARY_PATH") {
            path.push(":");
            path.push(others);
        }
        command
            .env("LD_LIBRARY_PATH", path)
            .env("XDG_CACHE_HOME", cache)
            .env("FRAMEPIPE_STANDIN_CACHE", &self.compiled)
    }
}
