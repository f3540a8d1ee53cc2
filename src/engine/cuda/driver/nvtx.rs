//! Ranges for NVIDIA's profilers, which show them beside what the card does.
//!
//! NVTX is a library of empty functions that a profiler replaces when it starts the program. It is looked for
//! once, when a run begins; if it is missing, nothing is called.
#![allow(unsafe_code)]

use crate::engine::Ranges;
use cudarc::nvtx::sys;
use libloading::Library;
use std::ffi::{CStr, OsStr, c_int};
use std::mem::size_of;
use std::sync::Arc;

/// Its names: since CUDA 12.6, and before.
const LIBRARIES: [&str; 4] = [
    "libnvtx3interop.so.1",
    "libnvtx3interop.so",
    "libnvToolsExt.so.1",
    "libnvToolsExt.so",
];

/// The version of the attributes' layout, as of the headers of NVTX 3.
const VERSION: u16 = 3;

type PushEx = unsafe extern "C" fn(*const sys::nvtxEventAttributes_t) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;

/// The two functions that are used, and the library that they live in.
#[derive(Debug)]
struct Nvtx {
    push: PushEx,
    pop: Pop,
    _library: Library,
}

/// NVTX, if it is on this machine.
pub(crate) fn ranges() -> Option<Arc<dyn Ranges>> {
    let found = LIBRARIES.iter().find_map(|name| Nvtx::open(OsStr::new(name)))?;
    Some(Arc::new(found))
}

impl Nvtx {
    fn open(name: &OsStr) -> Option<Nvtx> {
        // SAFETY: loading NVTX runs no code but its own, which waits for the first call.
        let library = unsafe { Library::new(name) }.ok()?;
        // SAFETY: the type is that of nvtxRangePushEx in NVTX's header.
        let push = unsafe { library.get::<PushEx>(b"nvtxRangePushEx\0") }
            .ok()
            .map(|f| *f)?;
        // SAFETY: the type is that of nvtxRangePop in NVTX's header.
        let pop = unsafe { library.get::<Pop>(b"nvtxRangePop\0") }
            .ok()
            .map(|f| *f)?;
        Some(Nvtx {
            push,
            pop,
            _library: library,
        })
    }
}

impl Ranges for Nvtx {
    fn begin(&self, name: &'static CStr, frame: u64) {
        let attributes = sys::nvtxEventAttributes_t {
            version: VERSION,
            size: size_of::<sys::nvtxEventAttributes_t>() as u16,
            category: 0,
            colorType: 0,
            color: 0,
            payloadType: sys::nvtxPayloadType_t::NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 as i32,
            reserved0: 0,
            payload: sys::nvtxEventAttributes_v2_payload_t { ullValue: frame },
            messageType: sys::nvtxMessageType_t::NVTX_MESSAGE_TYPE_ASCII as i32,
            message: sys::nvtxMessageValue_t { ascii: name.as_ptr() },
        };
        // SAFETY: the library is loaded as long as `self` lives, and the attributes live through the call,
        // which copies what it keeps.
        unsafe { (self.push)(&raw const attributes) };
    }

    fn end(&self) {
        // SAFETY: the library is loaded as long as `self` lives.
        unsafe { (self.pop)() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// NVTX as its header declares it, with functions that log their calls.
    const FAKE: &str = r#"
        #include <stdint.h>
        #include <stdio.h>
        typedef struct {
            uint16_t version, size; uint32_t category; int32_t colorType; uint32_t color;
            int32_t payloadType, reserved0;
            union { uint64_t ullValue; int64_t llValue; double dValue; } payload;
            int32_t messageType; union { const char *ascii; const void *registered; } message;
        } attributes;
        static char said[4096];
        static int at;
        int nvtxRangePushEx(const attributes *a) {
            at += sprintf(said + at, "(%u %d %d %s %d %lu", a->version, a->size == sizeof *a, a->messageType,
                          a->message.ascii, a->payloadType, (unsigned long)a->payload.ullValue);
            return 0;
        }
        int nvtxRangePop(void) { at += sprintf(said + at, ")"); return 0; }
        const char *what_was_said(void) { return said; }
    "#;

    #[test]
    fn ranges_reach_the_library_as_its_header_lays_them_out() {
        let folder = tempfile::tempdir().unwrap();
        let (source, library) = (folder.path().join("fake.c"), folder.path().join("libfake.so"));
        std::fs::write(&source, FAKE).unwrap();
        // Rust needs a C compiler to link, so that there is one.
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source)
            .status();
        assert!(built.unwrap().success());
        let nvtx = Nvtx::open(library.as_os_str()).unwrap();
        nvtx.begin(c"decode", 7);
        nvtx.begin(c"inner", u64::MAX);
        nvtx.end();
        nvtx.end();
        type Said = unsafe extern "C" fn() -> *const std::ffi::c_char;
        // SAFETY: the type is that of the function in `FAKE`.
        let said = unsafe { nvtx._library.get::<Said>(b"what_was_said\0") }.unwrap();
        // SAFETY: it gives a C string that lives as long as the library.
        let said = unsafe { CStr::from_ptr(said()) }.to_str().unwrap();
        assert_eq!(said, "(3 1 1 decode 1 7(3 1 1 inner 1 18446744073709551615))");
        assert!(Nvtx::open(OsStr::new("libthat-is-nowhere.so")).is_none());
    }
}
