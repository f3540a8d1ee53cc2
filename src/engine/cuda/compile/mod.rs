//! Compiles kernel texts to machine code by NVRTC, for the card's own architecture, or takes it from an
//! earlier run.
//!
//! ```text
//! kernels/**.cu, .cuh   in the program (include_str!)      Source, HEADERS
//!     | with -D for each parameter                         Recipe
//! NVRTC                 Target: the card's architecture, or an older one's PTX
//!     | CUBIN or PTX
//! cache                 one file a recipe, by SHA-256      cache::Cache
//!     |
//! driver::module::Image
//! ```
//!
//! Parameters are constants of the text, so that the compiler unrolls loops and drops code that a mask or a
//! format does not need. A text includes others by their path below `kernels/`.
#![allow(unsafe_code)]

pub(crate) mod cache;

use super::driver::device::{Device, nvrtc_version};
use super::driver::module::Image;
use crate::engine::EngineError;
use cache::{Cache, CacheError, Digest};
use cudarc::nvrtc::sys as nvrtc;
use std::ffi::{CStr, CString, c_char, c_int};

/// A kernel text, embedded in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The whole mask at each pixel.
    Direct,
    /// Row pass and column pass.
    Separable,
    /// The sums of several masks, or of one, combined to one number.
    Combined,
    /// A Gaussian that fits no mask, by way of a smaller picture.
    Pyramid,
    /// The threshold: restores samples that changed too little.
    Threshold,
    /// Converts a decoder's surface to the planes of a frame.
    Surface,
    /// Converts a frame to packed RGB.
    Rgb,
    /// The whole mask at each pixel, on tensor cores.
    TensorDirect,
    /// Two whole masks one after the other in one launch, on tensor cores.
    TensorFused,
    /// Row pass and column pass in one launch, on tensor cores.
    TensorSeparable,
    /// The whole mask at each pixel of floating-point samples.
    FloatDirect,
    /// Row pass and column pass of floating-point samples in one launch.
    FloatSeparable,
    /// Row pass and column pass of floating-point samples as two launches.
    FloatPasses,
    /// The sums of several masks of floating-point samples, or of one, combined to one number.
    FloatCombined,
    /// A Gaussian of floating-point sums that fits no mask, by way of a smaller picture.
    FloatPyramid,
    /// Premultiplication of floating-point samples, and its inverse for all samples.
    FloatAlpha,
    /// Plain copies and bare multiply-adds, which measure a card's peak rates.
    Peak,
}

/// A text of `kernels/`: its path there, and its content.
macro_rules! text {
    ($path:literal) => {
        ($path, include_str!(concat!("../../../../kernels/", $path)))
    };
}

/// The texts that others include, each with its path in `#include`.
const HEADERS: [(&str, &str); 25] = [
    text!("common/border.cuh"),
    text!("common/combining.cuh"),
    text!("common/enums.cuh"),
    text!("common/interleave.cuh"),
    text!("common/plane.cuh"),
    text!("common/platform/offset.cuh"),
    text!("common/platform/ptx.cuh"),
    text!("common/platform/types.cuh"),
    text!("common/pyramid.cuh"),
    text!("common/weights.cuh"),
    text!("float/plain.cuh"),
    text!("float/plane.cuh"),
    text!("float/tile.cuh"),
    text!("scalar/convolve.cuh"),
    text!("tensor/compass.cuh"),
    text!("tensor/entries.cuh"),
    text!("tensor/epilogue.cuh"),
    text!("tensor/small_mask.cuh"),
    text!("tensor/tile/deinterleave.cuh"),
    text!("tensor/tile/geometry.cuh"),
    text!("tensor/tile/halo.cuh"),
    text!("tensor/tile/load.cuh"),
    text!("tensor/tile/operand.cuh"),
    text!("tensor/tile/pipeline.cuh"),
    text!("tensor/tile/scheduler.cuh"),
];

impl Source {
    /// Every text.
    const ALL: [Source; 17] = [
        Source::Direct,
        Source::Separable,
        Source::Combined,
        Source::Pyramid,
        Source::Threshold,
        Source::Surface,
        Source::Rgb,
        Source::TensorDirect,
        Source::TensorFused,
        Source::TensorSeparable,
        Source::FloatDirect,
        Source::FloatSeparable,
        Source::FloatPasses,
        Source::FloatCombined,
        Source::FloatPyramid,
        Source::FloatAlpha,
        Source::Peak,
    ];

    fn file(self) -> (&'static str, &'static str) {
        match self {
            Source::Direct => text!("scalar/direct.cu"),
            Source::Separable => text!("scalar/separable.cu"),
            Source::Combined => text!("scalar/combined.cu"),
            Source::Pyramid => text!("scalar/pyramid.cu"),
            Source::Threshold => text!("scalar/threshold.cu"),
            Source::Surface => text!("scalar/surface.cu"),
            Source::Rgb => text!("scalar/rgb.cu"),
            Source::TensorDirect => text!("tensor/direct.cu"),
            Source::TensorFused => text!("tensor/fused.cu"),
            Source::TensorSeparable => text!("tensor/separable.cu"),
            Source::FloatDirect => text!("float/direct.cu"),
            Source::FloatSeparable => text!("float/separable.cu"),
            Source::FloatPasses => text!("float/passes.cu"),
            Source::FloatCombined => text!("float/combined.cu"),
            Source::FloatPyramid => text!("float/pyramid.cu"),
            Source::FloatAlpha => text!("float/alpha.cu"),
            Source::Peak => text!("timing/peak.cu"),
        }
    }

    /// The file's path in `kernels/`.
    pub fn name(self) -> &'static str {
        self.file().0
    }

    fn text(self) -> &'static str {
        self.file().1
    }
}

/// A kernel text and its compile-time parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// The text.
    pub source: Source,
    /// Name and value of each parameter.
    pub parameters: Vec<(&'static str, i64)>,
}

/// What NVRTC made of a recipe.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Bytes of machine code (CUBIN) for the architecture, or of PTX where NVRTC does not know it; PTX ends
    /// with a zero.
    pub image: Vec<u8>,
    /// The compiler's log; empty if there are no warnings.
    pub log: String,
}

/// What NVRTC shall generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// Machine code for this architecture.
    Code(u32),
    /// PTX of this virtual architecture, which the driver compiles for its newer card.
    Ptx(u32),
}

impl Target {
    fn choose(architecture: u32, supported: &[u32]) -> Result<Target, EngineError> {
        let older = supported.iter().copied().filter(|&s| s <= architecture).max();
        match older {
            Some(same) if same == architecture => Ok(Target::Code(same)),
            Some(older) => Ok(Target::Ptx(older)),
            None => Err(EngineError::Unavailable(format!(
                "the installed NVRTC does not compile for this card's compute capability {}.{} (it begins at \
                 {}); install an older CUDA's NVRTC, or use --engine cpu",
                architecture / 10,
                architecture % 10,
                supported
                    .iter()
                    .min()
                    .map_or_else(String::new, |s| format!("{}.{}", s / 10, s % 10)),
            ))),
        }
    }

    fn option(self) -> String {
        match self {
            Target::Code(a) => format!("--gpu-architecture=sm_{a}"),
            Target::Ptx(a) => format!("--gpu-architecture=compute_{a}"),
        }
    }

    /// The program that NVRTC or an earlier run has made for it; `None` if the bytes are none.
    fn image(self, bytes: Vec<u8>) -> Option<Image> {
        match self {
            Target::Code(_) => Image::cubin(bytes),
            Target::Ptx(_) => Image::ptx(bytes),
        }
    }
}

fn supported_architectures() -> Vec<u32> {
    let mut count: c_int = 0;
    // SAFETY: the pointer is to a live integer.
    if unsafe { nvrtc::nvrtcGetNumSupportedArchs(&raw mut count) } != nvrtc::nvrtcResult::NVRTC_SUCCESS {
        return Vec::new();
    }
    let mut list = vec![0 as c_int; count.max(0) as usize];
    // SAFETY: the list has room for as many as NVRTC just stated.
    if unsafe { nvrtc::nvrtcGetSupportedArchs(list.as_mut_ptr()) } != nvrtc::nvrtcResult::NVRTC_SUCCESS {
        return Vec::new();
    }
    list.into_iter().map(|a| a.max(0) as u32).collect()
}

impl Recipe {
    fn options(&self, target: Target) -> Vec<String> {
        let mut options = vec![target.option(), "--std=c++17".to_owned()];
        options.extend(
            self.parameters
                .iter()
                .map(|(name, value)| format!("-D{name}={value}")),
        );
        options
    }

    /// Compiles for compute capability `architecture` (90 for 9.0). Needs NVRTC, but no card and no driver.
    pub fn compile(&self, architecture: u32) -> Result<Compiled, EngineError> {
        nvrtc_version()?;
        let target = Target::choose(architecture, &supported_architectures())?;
        self.compile_for(target)
    }

    fn compile_for(&self, target: Target) -> Result<Compiled, EngineError> {
        let doing = || format!("compiling {} with NVRTC", self.source.name());
        let text = |s: &str| {
            CString::new(s).map_err(|_| EngineError::Device {
                doing: doing(),
                reason: "a zero byte in the text".to_owned(),
            })
        };
        let (source, name) = (text(self.source.text())?, text(self.source.name())?);
        let names = HEADERS.map(|(name, _)| text(name));
        let names: Vec<CString> = names.into_iter().collect::<Result<_, _>>()?;
        let headers = HEADERS.map(|(_, header)| text(header));
        let headers: Vec<CString> = headers.into_iter().collect::<Result<_, _>>()?;
        let options = self.options(target);
        let options: Vec<CString> = options.iter().map(|o| text(o)).collect::<Result<_, _>>()?;
        let option_pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let said = |result: nvrtc::nvrtcResult, log: &str| {
            // SAFETY: NVRTC gives back a static string.
            let what = unsafe { CStr::from_ptr(nvrtc::nvrtcGetErrorString(result)) }.to_string_lossy();
            EngineError::Device {
                doing: doing(),
                reason: format!("{what}\n{log}").trim_end().to_owned(),
            }
        };
        let ok = nvrtc::nvrtcResult::NVRTC_SUCCESS;
        let mut program = Program(std::ptr::null_mut());
        let name_pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let header_pointers: Vec<*const c_char> = headers.iter().map(|h| h.as_ptr()).collect();
        // SAFETY: every string is ended by a zero and lives through the call, and there are as many headers
        // as names.
        let made = unsafe {
            nvrtc::nvrtcCreateProgram(
                &raw mut program.0,
                source.as_ptr(),
                name.as_ptr(),
                name_pointers.len() as c_int,
                header_pointers.as_ptr(),
                name_pointers.as_ptr(),
            )
        };
        if made != ok {
            return Err(said(made, ""));
        }
        // SAFETY: the program is live and the options are as many as stated.
        let compiled = unsafe {
            nvrtc::nvrtcCompileProgram(
                program.0,
                option_pointers.len() as c_int,
                option_pointers.as_ptr(),
            )
        };
        let log = read(
            program.0,
            nvrtc::nvrtcGetProgramLogSize,
            nvrtc::nvrtcGetProgramLog,
        )
        .unwrap_or_default();
        let log = String::from_utf8_lossy(&log)
            .trim_end_matches(['\0', '\n'])
            .to_owned();
        if compiled != ok {
            return Err(said(compiled, &log));
        }
        let image = match target {
            Target::Code(_) => read(program.0, nvrtc::nvrtcGetCUBINSize, nvrtc::nvrtcGetCUBIN),
            Target::Ptx(_) => read(program.0, nvrtc::nvrtcGetPTXSize, nvrtc::nvrtcGetPTX),
        };
        let image = image.map_err(|result| said(result, &log))?;
        Ok(Compiled { image, log })
    }

    /// The machine code for `device`, from the cache on disk or from NVRTC.
    pub(crate) fn image(&self, device: &Device, cache: &Cache) -> Result<Image, EngineError> {
        let version = nvrtc_version()?;
        let target = Target::choose(device.architecture(), &supported_architectures())?;
        let (nvrtc, options) = (
            format!("nvrtc {}.{}", version.0, version.1),
            self.options(target).join(" "),
        );
        let mut parts = vec![
            env!("CARGO_PKG_VERSION"),
            &nvrtc,
            &options,
            self.source.name(),
            self.source.text(),
        ];
        parts.extend(HEADERS.map(|(_, header)| header));
        let name = format!("{}.kernel", Digest::of_parts(&parts));
        if let Some(image) = kept(cache, &name, target) {
            return Ok(image);
        }
        let begun = std::time::Instant::now();
        let compiled = self.compile_for(target)?;
        tracing::debug!(
            source = self.source.name(),
            seconds = begun.elapsed().as_secs_f64(),
            "compiled a kernel"
        );
        if !compiled.log.is_empty() {
            tracing::warn!("{}: {}", self.source.name(), compiled.log);
        }
        let image = target.image(compiled.image).ok_or_else(|| EngineError::Device {
            doing: format!("compiling {} with NVRTC", self.source.name()),
            reason: "what it made is no program".to_owned(),
        })?;
        match cache.put(&name, image.bytes()) {
            Ok(()) => {}
            Err(error @ CacheError::Folder { .. }) => cache.warn(&error),
            Err(error) => tracing::debug!("cannot keep a compiled kernel: {error}"),
        }
        Ok(image)
    }
}

/// The program that an earlier run has kept under `name`. An incomplete one is removed.
fn kept(cache: &Cache, name: &str, target: Target) -> Option<Image> {
    let damaged = match cache.read(name) {
        Ok(None) => return None,
        Ok(Some(bytes)) => match target.image(bytes) {
            Some(image) => return Some(image),
            None => CacheError::Damaged(cache.path(name).ok()?),
        },
        Err(error @ (CacheError::File { .. } | CacheError::Damaged(_))) => error,
        Err(error) => {
            cache.warn(&error);
            return None;
        }
    };
    tracing::warn!("the cached kernel {damaged}; it is compiled again");
    cache.remove(name);
    None
}

type SizeOf = unsafe fn(nvrtc::nvrtcProgram, *mut usize) -> nvrtc::nvrtcResult;
type Fill = unsafe fn(nvrtc::nvrtcProgram, *mut c_char) -> nvrtc::nvrtcResult;

/// Reads one of a program's results.
fn read(program: nvrtc::nvrtcProgram, size: SizeOf, fill: Fill) -> Result<Vec<u8>, nvrtc::nvrtcResult> {
    let ok = nvrtc::nvrtcResult::NVRTC_SUCCESS;
    let mut len = 0_usize;
    // SAFETY: the program is live and the pointer is to a live integer.
    let result = unsafe { size(program, &raw mut len) };
    if result != ok {
        return Err(result);
    }
    let mut bytes = vec![0_u8; len];
    // SAFETY: the buffer has the size that NVRTC stated.
    let result = unsafe { fill(program, bytes.as_mut_ptr().cast()) };
    if result == ok { Ok(bytes) } else { Err(result) }
}

struct Program(nvrtc::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: made by nvrtcCreateProgram, destroyed only here.
            let _ = unsafe { nvrtc::nvrtcDestroyProgram(&raw mut self.0) };
        }
    }
}

/// A digest of every kernel text.
pub(crate) fn kernel_texts_digest() -> Digest {
    let mut parts: Vec<&str> = Source::ALL.iter().map(|source| source.text()).collect();
    parts.extend(HEADERS.map(|(_, header)| header));
    Digest::of_parts(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_kept_program_comes_back_and_one_that_is_not_whole_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().to_owned());
        let (code, ptx) = (Target::Code(90), Target::Ptx(90));
        let path = cache.path("a").unwrap();
        assert_eq!(kept(&cache, "a", code), None);
        cache.put("a", b"code").unwrap();
        assert_eq!(kept(&cache, "a", code), code.image(b"code".to_vec()));
        // Whole, but the driver would read PTX until it finds a zero.
        assert_eq!(kept(&cache, "a", ptx), None);
        assert!(!path.exists());
        cache.put("a", b"text\0").unwrap();
        assert_eq!(kept(&cache, "a", ptx), ptx.image(b"text\0".to_vec()));
        let good = fs::read(&path).unwrap();
        let mut flipped = good.clone();
        flipped[0] ^= 1;
        for bad in [&flipped[..], &good[..good.len() - 1], b""] {
            fs::write(&path, bad).unwrap();
            assert_eq!(kept(&cache, "a", ptx), None);
            assert!(!path.exists());
        }
        cache.put("a", b"").unwrap();
        assert_eq!(kept(&cache, "a", code), None);
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert_eq!(kept(&cache, "a", code), None);
        assert!(path.symlink_metadata().is_err());
    }

    /// A header that is not listed is found missing only when its first kernel is compiled.
    #[test]
    fn every_text_in_the_folder_is_in_the_program() {
        fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    collect(&path, found);
                } else {
                    found.push(path);
                }
            }
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let mut found = Vec::new();
        collect(&folder, &mut found);
        let mut known: Vec<PathBuf> = Source::ALL.iter().map(|s| folder.join(s.name())).collect();
        known.extend(HEADERS.map(|(path, _)| folder.join(path)));
        found.sort();
        known.sort();
        assert_eq!(found, known);
    }

    #[test]
    fn an_architecture_that_nvrtc_does_not_know_gets_ptx_and_an_older_one_is_refused() {
        let supported = [75, 80, 90, 120];
        assert_eq!(Target::choose(90, &supported).unwrap(), Target::Code(90));
        assert_eq!(Target::choose(130, &supported).unwrap(), Target::Ptx(120));
        assert_eq!(Target::choose(87, &supported).unwrap(), Target::Ptx(80));
        let error = Target::choose(50, &supported).unwrap_err().to_string();
        assert!(error.contains("5.0") && error.contains("7.5"), "{error}");
    }
}
