//! The CUDA engine against the reference, on the stand-in for a card (tests/standin): chains as `engines` has
//! them, every memory variant, kernels and copies in an order that the input chooses.

use super::engine_case::{Case, HEAD, filters, largest_area};
use framepipe::engine::EngineError;
use framepipe::engine::cuda::{
    self, Cuda, CudaOptions, DeviceInfo, MemoryVariant, Overlap, Recipe, SelectContext, Table,
};
use framepipe::filter::{Chain, Plan};
use libfuzzer_sys::Corpus;
use libloading::Library;
use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::{CStr, c_char};
use std::sync::{LazyLock, Mutex};

/// Products of the largest mask and the frame, for the reference's sake and for that of a card that is none.
const MOST_WORK: usize = 60_000;

/// Kernels that a process may have compiled when it begins. Compiling one takes about a second, so that any
/// other has to wait until so many cases have gone by.
const KERNELS_AT_ONCE: usize = 400;
const CASES_A_KERNEL: usize = 50;

/// Frames of a case's size, so that each of the engine's two slots is used again by a frame with its layout.
const FRAMES: usize = 4;

/// Inputs that are no case are executions to libFuzzer, so that the log tells how many were.
const CASES_A_LINE: usize = 500;

/// What the stand-in's compiler says where there is none.
const NO_COMPILER: &str = "the stand-in cannot run";

/// Gives orders a new seed, and tells what was wrong since the last call or was not given back.
type Begin = unsafe extern "C" fn(u64) -> *const c_char;

struct StandIn {
    begin: Begin,
    card: DeviceInfo,
    state: Mutex<State>,
}

/// What decides whether a case may have its kernels compiled.
#[derive(Default)]
struct State {
    compiled: HashSet<Recipe>,
    cases: usize,
}

static STAND_IN: LazyLock<StandIn> = LazyLock::new(|| {
    let missing =
        "the stand-in for a card is not in LD_LIBRARY_PATH; scripts/fuzz builds it and puts it there";
    // SAFETY: what a library does when it is loaded is the stand-in's own.
    let library = unsafe { Library::new("libcuda.so") }.expect(missing);
    // SAFETY: the stand-in's driver declares it so, and no other driver has a function of this name.
    let begin = unsafe { library.get::<Begin>(b"standin_begin\0") };
    let begin = *begin.expect(missing);
    // The library is never closed, so that the function stays where it is.
    std::mem::forget(library);
    StandIn {
        begin,
        card: cuda::probe().unwrap(),
        state: Mutex::default(),
    }
});

impl StandIn {
    fn begin(&self, seed: u64) -> String {
        // SAFETY: the text is ended by a zero and stays until the next call, which no other thread makes.
        let text = unsafe { CStr::from_ptr((self.begin)(seed)) };
        text.to_string_lossy().into_owned()
    }
}

/// What the head chooses of the engine. Of a byte, `Case` uses what is left here.
fn options(head: &[u8]) -> CudaOptions {
    let by = usize::from(head[10] / 4);
    CudaOptions {
        memory: MemoryVariant::ALL[usize::from(head[11]) % MemoryVariant::ALL.len()],
        fuse: by & 1 == 0,
        slots: 2,
        overlap: [
            Overlap::Ring,
            Overlap::Ring,
            Overlap::SerialPinned,
            Overlap::SerialPageable,
        ][by / 2 % 4],
        write_combined: by / 8 % 2 == 1,
        ..CudaOptions::default()
    }
}

/// The kernels that the chain is carried out with; none where there is no plan.
fn kernels(card: &DeviceInfo, chain: &Chain, case: &Case, options: &CudaOptions) -> HashSet<Recipe> {
    let Ok(plan) = Plan::new(chain, case.format, &case.colour()) else {
        return HashSet::new();
    };
    let table = Table::rule();
    let of_size = |size| {
        let context = SelectContext {
            memory: options.memory,
            block: options.block,
            fuse: options.fuse,
            size,
            card,
            table: &table,
        };
        cuda::recipes(&plan, &context).unwrap_or_default()
    };
    case.sizes(1).into_iter().flat_map(of_size).collect()
}

/// True if the kernel is not kept and cannot be compiled. Any other failure is the engine's to show.
fn lacks_compiler(stand_in: &StandIn, kernel: &Recipe) -> bool {
    let (major, minor) = stand_in.card.compute_capability;
    let compiled = kernel.compile(10 * major + minor);
    matches!(compiled, Err(EngineError::Device { reason, .. }) if reason.contains(NO_COMPILER))
}

pub fn run(data: &[u8]) -> Corpus {
    let Some((head, text)) = data.split_at_checked(HEAD) else {
        return Corpus::Reject;
    };
    let Some(filters) = filters(text) else {
        return Corpus::Reject;
    };
    let case = Case::new(head, (70, 24));
    if largest_area(&filters) * case.samples() > MOST_WORK {
        return Corpus::Reject;
    }
    let (chain, options) = (case.chain(filters), options(head));
    let stand_in = &*STAND_IN;
    let mut state = stand_in.state.lock().unwrap();
    let kernels = kernels(&stand_in.card, &chain, &case, &options);
    let new: Vec<&Recipe> = kernels.difference(&state.compiled).collect();
    let most = KERNELS_AT_ONCE + state.cases / CASES_A_KERNEL;
    if !new.is_empty() && state.compiled.len() + new.len() > most {
        return Corpus::Reject;
    }
    // Where there is no compiler, only kernels that the stand-in has kept can be run.
    if new.into_iter().any(|kernel| lacks_compiler(stand_in, kernel)) {
        return Corpus::Reject;
    }
    stand_in.begin(case.seed);
    let mut engine = Cuda::new(chain.clone(), options).unwrap();
    let is_chosen = matches!(options.memory, MemoryVariant::Auto | MemoryVariant::Tensor);
    let lacks = Cell::new(false);
    let is_excused = |error: &EngineError| match error {
        // A variant that was requested may have no room for a mask.
        EngineError::Unavailable(_) => !is_chosen,
        // Small frames have kernels that `recipes` does not tell of.
        EngineError::Device { reason, .. } => {
            lacks.set(reason.contains(NO_COMPILER));
            lacks.get()
        }
        _ => false,
    };
    let whole = case.check(&chain, &mut engine, &case.sizes(FRAMES), is_excused);
    drop(engine);
    let wrong = stand_in.begin(0);
    assert!(
        wrong.is_empty() || lacks.get(),
        "{:?} {case:?} {options:?}: {wrong}",
        chain.filters
    );
    if !whole {
        return Corpus::Reject;
    }
    state.compiled.extend(kernels);
    state.cases += 1;
    if state.cases.is_multiple_of(CASES_A_LINE) {
        eprintln!(
            "stand_in: {} cases, {} kernels",
            state.cases,
            state.compiled.len()
        );
    }
    Corpus::Keep
}
