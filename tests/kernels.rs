//! Every CUDA kernel variant compiles without a word from the compiler, for each generation of cards. Needs
//! NVRTC, but no GPU.
#![allow(clippy::unwrap_used)]

use framepipe::engine::EngineError;
use framepipe::engine::cuda::{
    DeviceInfo, MemoryVariant, Recipe, SelectContext, Source, Table, chain_recipes, nvrtc_version, rgb_recipe,
};
use framepipe::filter::{Algorithm, AlphaWeighting, Border, Chain, Filter, Mask, Plan, Planes};
use framepipe::frame::{Colour, FieldOrder, PixelFormat};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Turing, Ampere, Hopper, Blackwell: compute capability times 10, and bytes of shared memory that a block
/// may ask for.
const ARCHITECTURES: [(u32, u32); 4] = [(75, 64 << 10), (80, 163 << 10), (90, 227 << 10), (120, 99 << 10)];

/// One for each way in which kernels differ: zero is a constant.
static BORDERS: LazyLock<Vec<Border>> = LazyLock::new(|| {
    let all = Border::ALL.into_iter();
    all.filter(|border| *border != Border::Zero).collect()
});

/// One format for each way in which kernels differ: sample type, shift, width of the sums, interleaving,
/// alpha.
const FORMATS: [&str; 11] = [
    "gray", "gray10le", "gray16le", "ya8", "nv12", "p010le", "p016le", "rgb24", "rgb48le", "rgba", "rgba64le",
];

fn limits(architecture: u32, shared_per_block_optin: u32) -> DeviceInfo {
    DeviceInfo {
        compute_capability: (architecture / 10, architecture % 10),
        shared_per_block: 48 << 10,
        shared_per_block_optin,
        shared_per_multiprocessor: shared_per_block_optin + (1 << 10),
        max_threads_per_block: 1024,
        max_block: (1024, 1024),
        ..DeviceInfo::default()
    }
}

fn plan(format: &str, border: Border, algorithm: Algorithm, size: (usize, usize), planes: Planes) -> Plan {
    let weights = vec![1.0 / (size.0 * size.1) as f64; size.0 * size.1];
    let chain = Chain {
        filters: vec![Filter::of_mask(
            format!("box {}x{}", size.0, size.1),
            Mask::new(size.0, size.1, weights).unwrap(),
        )],
        border,
        planes,
        algorithm,
        // Colour under alpha has kernels of its own.
        alpha: AlphaWeighting::Straight,
    };
    let format = PixelFormat::from_name(format).unwrap();
    Plan::new(&chain, format, &Colour::default()).unwrap()
}

/// Every kernel of `plan` on such a card, of which nothing was measured.
fn recipes(
    plan: &Plan,
    memory: MemoryVariant,
    block: Option<(u32, u32)>,
    card: &DeviceInfo,
) -> Result<Vec<Recipe>, EngineError> {
    framepipe::engine::cuda::recipes(plan, &terms(memory, block, card, &Table::rule()))
}

fn terms<'a>(
    memory: MemoryVariant,
    block: Option<(u32, u32)>,
    card: &'a DeviceInfo,
    table: &'a Table,
) -> SelectContext<'a> {
    SelectContext {
        memory,
        block,
        fuse: true,
        size: (1920, 1080),
        card,
        table,
    }
}

/// The kernels of all variants and both algorithms, over formats and borders; masks, blocks and planes take
/// turns. The lengths of their lists and the number of variants are prime to each other, so that each meets
/// each.
fn every_recipe(limits: &DeviceInfo) -> Vec<Recipe> {
    let masks = [
        (3, 3),
        (5, 5),
        (7, 5),
        (1, 9),
        (63, 63),
        (15, 15),
        (1, 1),
        (33, 3),
        (9, 9),
        (5, 1),
        (25, 25),
    ];
    let blocks = [None, None, None, Some((16, 16)), Some((33, 3))];
    let (mut list, mut seen) = (Vec::new(), HashSet::new());
    let mut turn = 0;
    for format in FORMATS {
        for &border in &*BORDERS {
            for algorithm in [Algorithm::Direct, Algorithm::Separable] {
                // What `auto` takes is another one's.
                for memory in MemoryVariant::ALL
                    .into_iter()
                    .filter(|&m| m != MemoryVariant::Auto)
                {
                    turn += 1;
                    let planes = if turn % 3 == 0 {
                        Planes::AllWithAlpha
                    } else {
                        Planes::All
                    };
                    let mask = masks[turn % masks.len()];
                    let plan = plan(format, border, algorithm, mask, planes);
                    let block = blocks[turn % blocks.len()];
                    let block = block.filter(|&b| recipes(&plan, memory, Some(b), limits).is_ok());
                    let recipes = recipes(&plan, memory, block, limits).unwrap();
                    list.extend(recipes.into_iter().filter(|r| seen.insert(r.clone())));
                }
            }
        }
    }
    let more = fused_recipes(limits)
        .into_iter()
        .chain(combined_recipes(limits))
        .chain(float_recipes(limits))
        .chain(weighted_recipes(limits))
        .chain(
            [FieldOrder::Progressive, FieldOrder::TopFirst]
                .into_iter()
                .flat_map(|order| {
                    PixelFormat::integers().map(move |format| rgb_recipe(format, order).unwrap())
                }),
        );
    list.extend(more.filter(|r| seen.insert(r.clone())));
    list
}

/// The kernels of filters that make one number of several sums, and of thresholds, over formats and variants.
fn combined_recipes(limits: &DeviceInfo) -> Vec<Recipe> {
    let specs = [
        "sobel",
        "kirsch:scale=1/3",
        "laplacian8:abs",
        "scharr:scale=1/9:bias=20",
        "log:size=25:abs",
        "unsharp:sigma=1:threshold=3",
        "roberts:scale=1000",
        "gaussian:sigma=12",
        "gaussian:sigma=150",
    ];
    let mut list = Vec::new();
    for (turn, format) in FORMATS
        .into_iter()
        .cycle()
        .take(FORMATS.len() * specs.len())
        .enumerate()
    {
        let format = PixelFormat::from_name(format).unwrap();
        let chain = Chain::parse(specs[turn % specs.len()])
            .unwrap()
            .with_border(BORDERS[turn % BORDERS.len()]);
        let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
        let has_kernel = |m: &MemoryVariant| recipes(&plan, *m, None, limits).is_ok();
        let variants = MemoryVariant::ALL.into_iter().filter(has_kernel);
        let memory = variants.clone().nth(turn % variants.count()).unwrap();
        list.extend(recipes(&plan, memory, None, limits).unwrap());
    }
    list
}

/// The kernels of floating-point samples: each text with each border, number of channels and kind of sample.
fn float_recipes(limits: &DeviceInfo) -> Vec<Recipe> {
    let specs = [
        ("mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5", Algorithm::Direct),
        ("gaussian:size=9", Algorithm::Separable),
        ("gaussian:sigma=30", Algorithm::Auto),
        ("sobel:bias=20", Algorithm::Auto),
        ("unsharp:sigma=1:threshold=3", Algorithm::Direct),
        ("gaussian:size=63:sigma=10", Algorithm::Separable),
        ("log:size=25:abs", Algorithm::Auto),
        ("kirsch:scale=1/4", Algorithm::Auto),
    ];
    let formats = [
        "grayf32", "rgbf16", "yaf16", "f32x5", "rgbaf32", "gbrapf16", "f16x3",
    ];
    let mut list = Vec::new();
    // The lengths of the lists are prime to each other.
    for turn in 0..specs.len() * 5 {
        let (spec, algorithm) = specs[turn % specs.len()];
        let mut chain = Chain::parse(spec).unwrap();
        chain.border = BORDERS[turn % BORDERS.len()];
        chain.algorithm = algorithm;
        if turn % 3 == 0 {
            chain.planes = Planes::AllWithAlpha;
        }
        let format = PixelFormat::from_name(formats[turn % formats.len()]).unwrap();
        let recipes = |memory| chain_recipes(&chain, format, &terms(memory, None, limits, &Table::rule()));
        let variants = MemoryVariant::ALL.into_iter().filter(|&m| recipes(m).is_ok());
        // What `auto` takes most often.
        let memory = match turn % 2 {
            0 => MemoryVariant::Auto,
            _ => variants.clone().nth(turn % variants.count()).unwrap(),
        };
        list.extend(recipes(memory).unwrap());
    }
    list
}

/// The kernels of colour under alpha: each text with each border, kind of sample and place of alpha.
fn weighted_recipes(limits: &DeviceInfo) -> Vec<Recipe> {
    let specs = [
        ("sharpen", Algorithm::Direct),
        ("gaussian:size=9", Algorithm::Separable),
        ("gaussian:sigma=30", Algorithm::Auto),
        ("sobel:bias=20", Algorithm::Auto),
        ("unsharp:sigma=1:threshold=3", Algorithm::Direct),
        ("gaussian:size=33:sigma=6", Algorithm::Separable),
        ("gaussian:size=17", Algorithm::Direct),
        ("kirsch:scale=1/4", Algorithm::Auto),
    ];
    let formats = [
        "rgba",
        "ya8",
        "rgba64le",
        "gbrap",
        "yuva444p10le",
        "argb",
        "ya16le",
    ];
    let mut list = Vec::new();
    // The lengths of the lists are prime to each other.
    for turn in 0..specs.len() * formats.len() {
        let (spec, algorithm) = specs[turn % specs.len()];
        let mut chain = Chain::parse(spec).unwrap();
        chain.border = BORDERS[turn % BORDERS.len()];
        chain.algorithm = algorithm;
        if turn % 3 == 0 {
            chain.planes = Planes::AllWithAlpha;
        }
        let format = PixelFormat::from_name(formats[turn % formats.len()]).unwrap();
        let recipes = |memory| chain_recipes(&chain, format, &terms(memory, None, limits, &Table::rule()));
        let variants = MemoryVariant::ALL.into_iter().filter(|&m| recipes(m).is_ok());
        let memory = variants.clone().nth(turn % variants.count()).unwrap();
        list.extend(recipes(memory).unwrap());
    }
    assert!(
        list.iter()
            .all(|recipe| recipe.parameters.contains(&("LEVELS", 1)))
    );
    list
}

#[test]
fn every_text_of_floating_point_samples_is_among_the_recipes() {
    for (architecture, shared) in ARCHITECTURES {
        let recipes = float_recipes(&limits(architecture, shared));
        for source in [
            Source::FloatDirect,
            Source::FloatSeparable,
            Source::FloatPasses,
            Source::FloatCombined,
            Source::FloatPyramid,
            Source::FloatAlpha,
        ] {
            assert!(
                recipes.iter().any(|r| r.source == source),
                "sm_{architecture} {source:?}"
            );
        }
        let is_rolled = |r: &Recipe| r.parameters.contains(&("ROLLED", 1));
        assert!(recipes.iter().any(is_rolled), "sm_{architecture}");
    }
}

#[test]
fn tensor_cores_make_one_number_of_some_sums_and_refuse_the_others() {
    let card = limits(90, 227 << 10);
    let plan = |format: &str, spec: &str| {
        let format = PixelFormat::from_name(format).unwrap();
        Plan::new(&spec.parse().unwrap(), format, &Colour::default()).unwrap()
    };
    let taken = |format, spec, memory| recipes(&plan(format, spec), memory, None, &card);
    for (format, spec) in [
        ("gray", "sobel"),
        ("gray16le", "scharr"),
        ("rgb24", "roberts:scale=0.3"),
        ("gray", "laplacian8:abs"),
        ("gray16le", "log:size=25:abs"),
        ("rgb24", "kirsch"),
        ("gray", "kirsch:scale=16"),
        ("gray10le", "kirsch"),
        ("rgb48le", "kirsch:scale=1/8"),
    ] {
        for memory in [MemoryVariant::Tensor, MemoryVariant::Auto] {
            let taken = taken(format, spec, memory).unwrap();
            assert_eq!(taken[0].source, Source::TensorDirect, "{format} {spec}");
        }
    }
    // With weights that are rounded so that masks are not one that is turned.
    let error = taken("gray", "kirsch:scale=0.3", MemoryVariant::Tensor).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("--memory tensor is not available for this filter"),
        "{error}"
    );
    let turned = taken("gray", "kirsch:scale=0.3", MemoryVariant::Auto).unwrap();
    assert_eq!(turned[0].source, Source::Combined);
    let plan = |spec: &str| plan("gray", spec);
    // What follows the sums of one mask does so whatever makes them.
    let sharp = recipes(&plan("unsharp:threshold=2"), MemoryVariant::Tensor, None, &card).unwrap();
    assert!(sharp.iter().any(|r| r.source == Source::Threshold));
    assert!(sharp.iter().any(|r| r.source == Source::TensorDirect));
    let error = recipes(&plan("sobel:bias=-65535"), MemoryVariant::Auto, None, &card);
    assert!(error.is_ok());
}

/// Two masks in one launch: those that take the fewest and the most registers, each border, one to three
/// planes.
fn fused_recipes(limits: &DeviceInfo) -> Vec<Recipe> {
    let pairs = [
        [(3, 3), (3, 3)],
        [(5, 5), (5, 5)],
        [(3, 3), (9, 9)],
        [(9, 9), (3, 3)],
        [(1, 9), (9, 1)],
    ];
    let formats = ["gray", "yuv420p", "gbrp"];
    let mut list = Vec::new();
    for (turn, (sizes, border)) in pairs.into_iter().zip(BORDERS.iter().copied()).enumerate() {
        let format = formats[turn % formats.len()];
        let mut chain = plan(format, border, Algorithm::Direct, sizes[0], Planes::All);
        chain
            .steps
            .extend(plan(format, border, Algorithm::Direct, sizes[1], Planes::All).steps);
        list.extend(recipes(&chain, MemoryVariant::Tensor, None, limits).unwrap());
    }
    list
}

/// True if the test can run; says so visibly if it cannot, and fails in CI, where it must.
fn nvrtc_is_here(tests: usize) -> bool {
    match nvrtc_version() {
        Ok(_) => true,
        Err(error) => {
            let promised = std::env::var_os("FRAMEPIPE_NVRTC_DIR").is_some();
            assert!(!promised, "FRAMEPIPE_NVRTC_DIR is set, but {error}");
            // Straight to the stream, since the harness shows what a passing test prints to nobody.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: {tests} test that compiles CUDA kernels (tests/kernels.rs): {error}"
            );
            false
        }
    }
}

/// True where every kernel is to be compiled for Hopper, which takes minutes and belongs to a change of
/// kernels; else a sample of them is.
fn wants_all() -> bool {
    std::env::var_os("FRAMEPIPE_ALL_KERNELS").is_some_and(|value| value == "1")
}

/// A text with one of its parameters.
type Kind = (Source, &'static str, i64);

/// Each text on each card, and each border and kind of sample of each text on one of them.
fn kinds(architecture: u32, recipe: &Recipe) -> Vec<Kind> {
    let named = ["BORDER", "SAMPLE_BYTES", "CHANNELS", "COMPONENTS", "LOADER"];
    let parameters = recipe.parameters.iter().copied();
    let known = parameters.filter(|(name, _)| named.contains(name));
    known
        .chain([("on", i64::from(architecture))])
        .map(|(name, value)| (recipe.source, name, value))
        .collect()
}

/// Every `step`th of the kernels, and all that show a kind that was not met before.
fn sample(architecture: u32, all: &[Recipe], step: usize, met: &mut HashSet<Kind>) -> Vec<Recipe> {
    let first = architecture as usize % step;
    let chosen = all.iter().enumerate().filter(|(index, recipe)| {
        let mut kinds = kinds(architecture, recipe);
        kinds.retain(|kind| met.insert(*kind));
        let is_new = !kinds.is_empty();
        is_new || index % step == first
    });
    chosen.map(|(_, recipe)| recipe.clone()).collect()
}

/// About how long a kernel takes to compile, beside others: the multiply-adds that are written out, and for
/// tensor cores as much as the longest.
fn cost(recipe: &Recipe) -> i64 {
    let value = |name| {
        let mut parameters = recipe.parameters.iter();
        parameters
            .find(|(n, _)| *n == name)
            .map_or(1, |(_, value)| *value)
    };
    let (width, height) = (value("MASK_W"), value("MASK_H"));
    match recipe.source {
        Source::TensorDirect | Source::TensorFused | Source::TensorSeparable => 1024,
        Source::Separable => (width + height) * value("OUTPUTS"),
        _ => (width * height * value("OUTPUTS")).min(512),
    }
}

#[test]
fn every_kernel_variant_compiles_without_a_warning() {
    if !nvrtc_is_here(1) {
        return;
    }
    let whole = wants_all();
    let mut met = HashSet::new();
    let mut jobs: Vec<(u32, Recipe)> = ARCHITECTURES
        .iter()
        .flat_map(|&(architecture, shared)| {
            let all = every_recipe(&limits(architecture, shared));
            // The steps are prime to the lengths of the lists above, so that every variant, border and format
            // is met on every card.
            let step = match (whole, architecture) {
                (true, 90) => 1,
                // Hopper has the instructions of all; what differs is what older cards do without and which
                // shapes a card's memory allows.
                (true, _) => 7,
                (false, 90) => 83,
                (false, _) => 197,
            };
            let mut chosen = sample(architecture, &all, step, &mut met);
            // What they are held against compiles everywhere too.
            chosen.push(Recipe {
                source: Source::Peak,
                parameters: Vec::new(),
            });
            chosen.into_iter().map(move |recipe| (architecture, recipe))
        })
        .collect();
    // The longest first, so that no core is left with one of them at the end.
    jobs.sort_by_key(|(_, recipe)| Reverse(cost(recipe)));
    let (count, next) = (jobs.len(), AtomicUsize::new(0));
    let complaints = (0..rayon::current_num_threads())
        .into_par_iter()
        .flat_map_iter(|_| {
            let taken = std::iter::from_fn(|| jobs.get(next.fetch_add(1, Ordering::Relaxed)));
            taken
                .filter_map(|(architecture, recipe)| {
                    let complaint = match recipe.compile(*architecture) {
                        Ok(compiled) if compiled.log.is_empty() && !compiled.image.is_empty() => return None,
                        Ok(compiled) => compiled.log,
                        Err(error) => error.to_string(),
                    };
                    Some(format!("sm_{architecture} {recipe:?}: {complaint}"))
                })
                .collect::<Vec<String>>()
        });
    let complaints: Vec<String> = complaints.collect();
    println!("{count} kernel programs compiled");
    assert!(
        complaints.is_empty(),
        "{} of {count}: {}",
        complaints.len(),
        complaints[..complaints.len().min(5)].join("\n")
    );
}

#[test]
fn fused_masks_are_kernels_of_their_own_where_tensor_cores_are() {
    for (architecture, shared) in ARCHITECTURES {
        let recipes = fused_recipes(&limits(architecture, shared));
        let chains = recipes.iter().filter(|r| r.source == Source::TensorFused).count();
        // Two ways of loading tiles, and from compute capability 9.0 on a third. The last has room for two
        // blocks with the first pair and the last alone.
        let expected = match architecture {
            75 => 0,
            80 => 5 * 2,
            90 => 5 * 3,
            _ => 2 * 3,
        };
        assert_eq!(chains, expected, "sm_{architecture}");
    }
}

/// Tensor cores from compute capability 8.0 on; before it, for blocks that the user shapes and for what they
/// cannot do, the kernels that work on one value at a time.
#[test]
fn tensor_cores_are_used_where_they_can_be() {
    let source = |architecture, algorithm, format, size, memory, block| {
        let plan = plan(format, Border::Replicate, algorithm, size, Planes::All);
        recipes(&plan, memory, block, &limits(architecture, 99 << 10)).unwrap()[0].source
    };
    for memory in [MemoryVariant::Auto, MemoryVariant::Tensor] {
        let direct =
            |architecture, block| source(architecture, Algorithm::Direct, "gray", (5, 5), memory, block);
        assert_eq!(direct(75, None), Source::Direct);
        assert_eq!(direct(80, None), Source::TensorDirect);
        assert_eq!(direct(120, None), Source::TensorDirect);
        assert_eq!(direct(90, Some((32, 8))), Source::Direct);
        let separable = |format, size| source(90, Algorithm::Separable, format, size, memory, None);
        assert_eq!(separable("yuv420p", (63, 63)), Source::TensorSeparable);
        assert_eq!(separable("rgb24", (15, 15)), Source::TensorSeparable);
        // The intermediate of deep samples takes three bytes.
        assert_eq!(separable("gray16le", (47, 47)), Source::TensorSeparable);
        assert_eq!(separable("rgba64le", (15, 15)), Source::TensorSeparable);
        // No registers for all weights.
        assert_eq!(separable("rgba64le", (63, 63)), Source::Separable);
    }
    let shared = source(90, Algorithm::Direct, "gray", (5, 5), MemoryVariant::Shared, None);
    assert_eq!(shared, Source::Direct);
}

#[test]
fn a_text_that_does_not_compile_is_an_error_with_the_log() {
    if !nvrtc_is_here(1) {
        return;
    }
    let broken = Recipe {
        source: Source::Threshold,
        parameters: vec![("SAMPLE_BYTES", 1), ("CHANNELS", 1), ("CONVOLVED", 1)],
    };
    let error = broken.compile(90).unwrap_err().to_string();
    assert!(
        error.contains("threshold.cu") && error.contains("LEAST"),
        "{error}"
    );
}
