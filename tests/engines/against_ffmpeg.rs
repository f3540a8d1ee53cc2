//! Integer masks against FFmpeg's own `convolution` filter, every plane, 8 and 10 bits, borders included.
//!
//! FFmpeg mirrors pixels at the left and top edge without doubling the edge pixel (our `mirror`). At the
//! right and bottom edge it does the same for some sizes of mask and doubles the edge pixel (our `reflect`)
//! for others, so the test first asks it which; each half of the picture is then compared with the border
//! that it has there.

use super::oracle::{Random, run};
use framepipe::engine::cpu::Cpu;
use framepipe::engine::reference::Reference;
use framepipe::filter::{Algorithm, Border, Chain, Filter, Mask, Planes, factors};
use framepipe::frame::{Buffer, Colour, Frame, Layout, PixelFormat, Range};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

const WIDTH: usize = 83;
const HEIGHT: usize = 61;

/// Raw frames of a moving test picture, through each of the given filters, by one run of FFmpeg.
fn through_each(pixel_format: &str, frames: usize, filters: &[String]) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let places = |letter: char| (0..filters.len()).map(move |k| format!("[{letter}{k}]"));
    let mut graph = format!(
        "mandelbrot=size={WIDTH}x{HEIGHT}:rate=5:start_scale=0.5,format={pixel_format},split={}{}",
        filters.len(),
        places('i').collect::<String>()
    );
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]);
    for ((filter, from), to) in filters.iter().zip(places('i')).zip(places('o')) {
        graph += &format!(";{from}format={pixel_format}{filter}{to}");
    }
    command.args(["-filter_complex", &graph]);
    let files: Vec<PathBuf> = places('o').map(|place| folder.path().join(place)).collect();
    for (file, place) in files.iter().zip(places('o')) {
        command.args(["-map", &place, "-frames:v", &frames.to_string()]);
        command
            .args(["-f", "rawvideo", "-pix_fmt", pixel_format])
            .arg(file);
    }
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success());
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn ffmpeg(pixel_format: &str, frames: usize, filters: &str) -> Vec<u8> {
    through_each(pixel_format, frames, &[filters.to_owned()]).remove(0)
}

fn frames(format: PixelFormat, raw: &[u8]) -> Vec<Frame> {
    let layout = Layout::new(format, WIDTH, HEIGHT, 1).unwrap();
    raw.chunks_exact(layout.size())
        .map(|bytes| {
            let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(bytes.to_vec()))).unwrap();
            frame.metadata.colour = Colour {
                range: Range::Unspecified,
                ..Colour::default()
            };
            frame
        })
        .collect()
}

/// Small integers that add up to `sum`.
fn integers(size: usize, sum: i64, random: &mut Random) -> Vec<i64> {
    let mut weights: Vec<i64> = (0..size * size).map(|_| random.below(15) as i64 - 6).collect();
    weights[size * size / 2] += sum - weights.iter().sum::<i64>();
    weights
}

/// FFmpeg's filter for the mask; `biases` are those of each plane.
fn convolution(weights: &[i64], divisor: i64, biases: [f64; 3]) -> String {
    let words: Vec<String> = weights.iter().map(ToString::to_string).collect();
    let matrix = words.join(" ");
    let planes: Vec<String> = (0..3)
        .map(|p| {
            format!(
                "{p}m={matrix}:{p}rdiv={}:{p}bias={}:{p}mode=square",
                1.0 / divisor as f64,
                biases[p]
            )
        })
        .collect();
    format!(",convolution={}", planes.join(":"))
}

#[test]
fn integer_masks_equal_ffmpegs_convolution() {
    let mut random = Random::new(21);
    let mut compared = 0_usize;
    for pixel_format in [
        "yuv420p",
        "yuv444p",
        "yuv422p10le",
        "yuv420p10le",
        "gbrp",
        "gbrp10le",
        "gray",
    ] {
        let format = PixelFormat::from_name(pixel_format).unwrap();
        let (mut masks, mut filters) = (Vec::new(), vec![String::new()]);
        for size in [3, 5, 7] {
            // FFmpeg 5.1 divides by the weights' sum (by 1 if that is 0), whatever rdiv says.
            for sum in [0, 32] {
                let weights = integers(size, sum, &mut random);
                let divisor = sum.max(1);
                let gain = sum as f64 / divisor as f64;
                // FFmpeg convolves the samples themselves; we, the signal above each component's zero level.
                let channels = format.planes().iter().map(|p| p.channels[0]);
                let levels: Vec<f64> = channels
                    .map(|c| f64::from(Colour::default().zero_level(format, c)) * (1.0 - gain))
                    .collect();
                let level = |p: usize| levels.get(p).copied().unwrap_or(0.0);
                filters.push(convolution(&weights, divisor, [level(0), level(1), level(2)]));
                let mask = Mask::from_integers(size, size, weights, divisor).unwrap();
                masks.push((mask, &[Algorithm::Direct][..]));
            }
        }
        // Masks of rank 1, so that the separable algorithm is held against FFmpeg too.
        for (row, column) in [
            (vec![1, 2, 1], vec![1, 2, 1]),
            (vec![1, 4, 6, 4, 1], vec![1, 4, 6, 4, 1]),
        ] {
            let weights: Vec<i64> = column
                .iter()
                .flat_map(|c| row.iter().map(move |r| r * c))
                .collect();
            let divisor = weights.iter().sum();
            filters.push(convolution(&weights, divisor, [0.0; 3]));
            let mask = Mask::from_integers(row.len(), column.len(), weights, divisor).unwrap();
            assert!(factors(&mask).is_some());
            masks.push((mask, &[Algorithm::Direct, Algorithm::Separable]));
        }
        let made = through_each(pixel_format, 2, &filters);
        let inputs = frames(format, &made[0]);
        for ((mask, algorithms), theirs) in masks.iter().zip(&made[1..]) {
            for &algorithm in *algorithms {
                compared += compare(mask, &inputs, &frames(format, theirs), algorithm);
            }
        }
    }
    assert!(compared > 1_000_000, "{compared}");
}

/// How FFmpeg treats the right and bottom edge for masks of this size; each is asked for once.
fn far_border(size: usize) -> Border {
    static FOUND: Mutex<BTreeMap<usize, Border>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    *found.entry(size).or_insert_with(|| find_far_border(size))
}

/// The same, found with a mask that moves the picture to the left.
fn find_far_border(size: usize) -> Border {
    let mut weights = vec![0; size * size];
    weights[size * (size / 2) + size - 1] = 1;
    let format = PixelFormat::from_name("gray").unwrap();
    let input = &frames(format, &ffmpeg("gray", 1, ""))[0];
    let theirs = &frames(format, &ffmpeg("gray", 1, &convolution(&weights, 1, [0.0; 3])))[0];
    let reach = size / 2;
    let fits = |border: &Border| {
        (0..HEIGHT)
            .flat_map(|y| (WIDTH - reach..WIDTH).map(move |x| (x, y)))
            .all(|(x, y)| {
                let from = border.index((x + reach) as i64, WIDTH).unwrap();
                theirs.sample(0, x, y, 0) == input.sample(0, from, y, 0)
            })
    };
    [Border::Mirror, Border::Reflect].into_iter().find(fits).unwrap()
}

/// Samples compared, all equal.
fn compare(mask: &Mask, inputs: &[Frame], theirs: &[Frame], algorithm: Algorithm) -> usize {
    assert_eq!(inputs.len(), theirs.len());
    let filter = Filter::of_mask("integers", mask.clone());
    let chain = |border| Chain {
        filters: vec![filter.clone()],
        border,
        planes: Planes::All,
        algorithm,
        alpha: Default::default(),
    };
    let mut compared = 0;
    for (input, theirs) in inputs.iter().zip(theirs) {
        let mirror = run(&mut Reference::new(chain(Border::Mirror)), input, 1);
        let far = run(
            &mut Cpu::new(chain(far_border(mask.width())), 2).unwrap(),
            input,
            1,
        );
        let radius = mask.width() / 2;
        for (index, plane) in input.layout().planes().iter().enumerate() {
            for y in 0..plane.height {
                for x in 0..plane.width {
                    let low = x < radius || y < radius;
                    let high = x + radius >= plane.width || y + radius >= plane.height;
                    if low && high {
                        continue;
                    }
                    let ours = if high { &far } else { &mirror };
                    assert_eq!(
                        ours.sample(index, x, y, 0),
                        theirs.sample(index, x, y, 0),
                        "{} {mask} {algorithm} plane {index} ({x}, {y})",
                        input.format()
                    );
                    compared += 1;
                }
            }
        }
    }
    compared
}

/// Compares ours, with FFmpeg's border above and with the one below, with theirs; counts the samples. More
/// than 8 bits may be off by one where FFmpeg's 32-bit floating point rounds another way: one in 500.
fn hold(ours: [&Frame; 2], theirs: &Frame, what: &str) -> usize {
    let depth = theirs.format().depth();
    let (mut compared, mut off) = (0, 0);
    for (index, plane) in theirs.layout().planes().iter().enumerate() {
        for y in 0..plane.height {
            for x in 0..plane.width {
                let low = x == 0 || y == 0;
                let high = x + 1 == plane.width || y + 1 == plane.height;
                if low && high {
                    continue;
                }
                let ours = ours[usize::from(high)].sample(index, x, y, 0);
                let theirs = theirs.sample(index, x, y, 0);
                if depth > 8 && ours.abs_diff(theirs) == 1 {
                    off += 1;
                } else {
                    assert_eq!(ours, theirs, "{what}, plane {index} ({x}, {y})");
                }
                compared += 1;
            }
        }
    }
    assert!(off * 500 <= compared, "{what}: {off} of {compared}");
    compared
}

#[test]
fn gradients_equal_ffmpegs_filters() {
    let mut compared = 0;
    for pixel_format in ["gray", "gbrp", "yuv420p", "yuv444p10le", "gbrp12le"] {
        let format = PixelFormat::from_name(pixel_format).unwrap();
        let (mut specs, mut filters) = (Vec::new(), vec![String::new()]);
        for name in ["sobel", "prewitt"] {
            for scale in ["1", "0.5", "2"] {
                // FFmpeg rounds down what we round half up, and knows no zero level.
                let channels = format.planes().iter().map(|p| p.channels[0]).enumerate();
                let each = channels.map(|(plane, c)| {
                    let delta = f64::from(Colour::default().zero_level(format, c)) + 0.5;
                    format!(",{name}=planes={}:scale={scale}:delta={delta}", 1 << plane)
                });
                filters.push(each.collect());
                specs.push(format!("{name}:scale={scale}"));
            }
        }
        let made = through_each(pixel_format, 2, &filters);
        let inputs = frames(format, &made[0]);
        for (spec, theirs) in specs.iter().zip(&made[1..]) {
            let filter: Filter = spec.parse().unwrap();
            let with = |border| Chain::from(filter.clone()).with_border(border);
            for (input, theirs) in inputs.iter().zip(&frames(format, theirs)) {
                let mirror = run(&mut Cpu::new(with(Border::Mirror), 2).unwrap(), input, 1);
                let far = run(&mut Reference::new(with(far_border(3))), input, 1);
                let what = format!("{pixel_format} {}", filter.label);
                compared += hold([&mirror, &far], theirs, &what);
            }
        }
    }
    assert!(compared > 200_000, "{compared}");
}

/// FFmpeg's `kirsch` moves its three heavy weights on through the neighbours row by row, ours around the
/// centre, as Kirsch's masks do.
#[test]
fn kirsch_differs_from_ffmpegs_in_the_order_of_the_neighbours() {
    let format = PixelFormat::from_name("gray").unwrap();
    let input = &frames(format, &ffmpeg("gray", 1, ""))[0];
    let theirs = &frames(format, &ffmpeg("gray", 1, ",kirsch=scale=0.5:delta=0.5"))[0];
    let mut cpu = Cpu::new("kirsch:scale=0.5".parse().unwrap(), 1).unwrap();
    let ours = run(&mut cpu, input, 1);
    let mut differ = 0;
    for (x, y) in (1..HEIGHT - 1).flat_map(|y| (1..WIDTH - 1).map(move |x| (x, y))) {
        let neighbour = |k: usize| i32::from(input.sample(0, x + k % 3 - 1, y + k / 3 - 1, 0));
        let largest = |order: [usize; 8]| {
            let all: i32 = order.into_iter().map(neighbour).sum();
            let three = |k: usize| (0..3).map(|i| neighbour(order[(k + i) % 8])).sum::<i32>();
            let most = (0..8).map(|k| 8 * three(k) - 3 * all).max().unwrap();
            ((most + 1) / 2).min(255) as u16
        };
        let by_rows = largest([0, 1, 2, 3, 5, 6, 7, 8]);
        let around = largest([0, 1, 2, 5, 8, 7, 6, 3]);
        assert_eq!(theirs.sample(0, x, y, 0), by_rows, "FFmpeg's at ({x}, {y})");
        assert_eq!(ours.sample(0, x, y, 0), around, "ours at ({x}, {y})");
        differ += usize::from(by_rows != around);
    }
    assert!(differ > 100, "{differ}");
}

/// FFmpeg's `roberts` takes the differences along two rows, x - 1 to x; ours is the cross of the book, which
/// takes those along the two diagonals of the same four pixels.
#[test]
fn roberts_differs_from_ffmpegs_in_the_differences_that_it_takes() {
    let format = PixelFormat::from_name("gray").unwrap();
    let input = &frames(format, &ffmpeg("gray", 1, ""))[0];
    let theirs = &frames(format, &ffmpeg("gray", 1, ",roberts=delta=0.5"))[0];
    let ours = run(&mut Cpu::new("roberts".parse().unwrap(), 1).unwrap(), input, 1);
    let mut differ = 0;
    for y in 1..HEIGHT {
        for x in 1..WIDTH {
            let at = |dx: usize, dy: usize| f64::from(input.sample(0, x - dx, y - dy, 0));
            let root = |a: f64, b: f64| (a.hypot(b) + 0.5).floor().min(255.0) as u16;
            let rows = root(at(1, 1) - at(0, 1), at(0, 0) - at(1, 0));
            let diagonals = root(at(1, 1) - at(0, 0), at(0, 1) - at(1, 0));
            assert_eq!(theirs.sample(0, x, y, 0), rows, "FFmpeg's at ({x}, {y})");
            assert_eq!(ours.sample(0, x, y, 0), diagonals, "ours at ({x}, {y})");
            differ += usize::from(rows != diagonals);
        }
    }
    assert!(differ > 100, "{differ}");
}
