//! Pictures in borrowed memory: every format, odd sizes and padded rows, against the reference engine.
use framepipe::engine::reference::Reference;
use framepipe::engine::verify::{cases, fill_with_noise, float_cases};
use framepipe::engine::{Engine, EngineError, luma};
use framepipe::frame::{Buffer, Colour, Frame, Layout, Range};
use framepipe::{Chain, Image, ImageFilter, ImageMut, PixelFormat, Planes, filter_image};

/// What padding holds before and after.
const UNTOUCHED: u8 = 0xa7;

fn buffer() -> Buffer {
    Buffer::unpooled(Box::new(Vec::new()))
}

fn noise(format: PixelFormat, width: usize, height: usize, seed: u64) -> Frame {
    let mut frame = Frame::new(Layout::new(format, width, height, 1).unwrap(), buffer()).unwrap();
    fill_with_noise(&mut frame, seed);
    frame
}

fn copy(frame: &Frame) -> Frame {
    let mut copy = Frame::new(*frame.layout(), buffer()).unwrap();
    copy.bytes_mut().copy_from_slice(frame.bytes());
    copy.metadata = frame.metadata.clone();
    copy
}

/// The reference's result, without padding.
fn reference(chain: &Chain, frame: &Frame) -> Frame {
    let plain: Box<dyn Engine> = Box::new(Reference::new(chain.clone()));
    let mut engine = luma::around(plain, &chain.planes, true, 2).unwrap();
    engine.submit(copy(frame), buffer(), 1).unwrap();
    engine.collect().unwrap().unwrap()
}

/// Bytes from row to row for each plane, all more than the row's own, in different ways.
fn strides(layout: &Layout) -> Vec<usize> {
    let more = [1, 64, 7, 30];
    (0..layout.planes().len())
        .map(|index| layout.row_bytes(index) + more[index])
        .collect()
}

/// Filters `frame` from padded rows into padded rows, and holds all bytes against what is expected.
fn check(filter: &mut ImageFilter, frame: &Frame, expected: &Frame, what: &str) {
    let (format, width, height) = (frame.format(), frame.layout().width(), frame.layout().height());
    let strides = strides(frame.layout());
    let planes = frame.layout().planes();
    // The last row ends with its last pixel, so that reading or writing past it would be out of bounds.
    let padded: usize = planes
        .iter()
        .zip(&strides)
        .map(|(p, stride)| p.height * stride)
        .sum();
    let last = planes.len() - 1;
    let size = padded - (strides[last] - frame.layout().row_bytes(last));
    let padded = |rows: &Frame| {
        let mut bytes = vec![UNTOUCHED; size];
        let mut image = ImageMut::with_strides(&mut bytes, format, width, height, &strides).unwrap();
        for (index, plane) in planes.iter().enumerate() {
            for y in 0..plane.height {
                image.row_mut(index, y).copy_from_slice(rows.row(index, y));
            }
        }
        bytes
    };
    let input = padded(frame);
    let mut output = vec![UNTOUCHED; size];
    let image = Image::with_strides(&input, format, width, height, &strides).unwrap();
    filter
        .filter(
            &image.with_colour(frame.metadata.colour),
            &mut ImageMut::with_strides(&mut output, format, width, height, &strides).unwrap(),
        )
        .unwrap();
    let expected = padded(expected);
    let differs = output.iter().zip(&expected).position(|(a, b)| a != b);
    assert!(
        differs.is_none(),
        "{what}, {width}x{height} {format}: byte {differs:?}"
    );
}

#[test]
fn all_formats_from_padded_rows_are_those_of_the_reference() {
    let mut formats = std::collections::HashSet::new();
    let cases = [cases(3 * PixelFormat::integers().count()), float_cases(28)].concat();
    for (index, case) in cases.iter().enumerate() {
        formats.insert(case.format);
        let frame = noise(case.format, case.width, case.height, case.seed);
        let expected = reference(&case.chain, &frame);
        let threads = 1 + index % 3;
        let mut filter = ImageFilter::new(case.chain.clone(), threads).unwrap();
        let labels: Vec<&str> = case.chain.filters.iter().map(|f| f.label.as_str()).collect();
        let what = format!("{} on {threads} threads", labels.join(","));
        check(&mut filter, &frame, &expected, &what);
    }
    // Those that have names, and two others of floating-point samples.
    let named = PixelFormat::all().count();
    assert_eq!(formats.len(), named + 2);
}

#[test]
fn one_filter_takes_pictures_of_all_formats_one_after_another() {
    let chain = Chain::parse("gaussian:sigma=1.5,sharpen").unwrap();
    let mut filter = ImageFilter::new(chain.clone(), 2).unwrap();
    for (index, format) in PixelFormat::all().enumerate() {
        let frame = noise(format, 31 + index % 5, 3 + index, index as u64);
        check(&mut filter, &frame, &reference(&chain, &frame), "two filters");
    }
}

#[test]
fn luma_of_rgb_is_filtered_too() {
    for planes in [Planes::Luma, Planes::Gray] {
        let chain = Chain::parse("gaussian:sigma=2").unwrap().with_planes(planes);
        let mut filter = ImageFilter::new(chain.clone(), 1).unwrap();
        for format in [PixelFormat::RGB24, PixelFormat::GBRAP12, PixelFormat::YUV420P] {
            let frame = noise(format, 33, 21, 5);
            check(
                &mut filter,
                &frame,
                &reference(&chain, &frame),
                &chain.planes.to_string(),
            );
        }
    }
}

#[test]
fn colour_facts_say_where_black_lies() {
    let chain = Chain::parse("laplacian8").unwrap();
    let mut frame = noise(PixelFormat::YUV420P, 20, 10, 3);
    for range in [Range::Full, Range::Limited] {
        frame.metadata.colour = Colour {
            range,
            ..Colour::default()
        };
        let mut filter = ImageFilter::new(chain.clone(), 1).unwrap();
        check(&mut filter, &frame, &reference(&chain, &frame), "range");
        let from_frame = {
            let mut bytes = vec![0; frame.layout().size()];
            let mut output = ImageMut::with_layout(&mut bytes, *frame.layout()).unwrap();
            filter.filter(&Image::from(&frame), &mut output).unwrap();
            bytes
        };
        assert_eq!(from_frame, reference(&chain, &frame).bytes());
    }
}

#[test]
fn pictures_that_do_not_agree_and_filters_that_do_not_fit_are_refused() {
    let input = [0; 30];
    let mut output = [0; 30];
    let image = Image::new(&input, PixelFormat::RGB24, 5, 2).unwrap();
    let chain = Chain::parse("box:size=3").unwrap();
    let mut other = ImageMut::new(&mut output, PixelFormat::BGR24, 5, 2).unwrap();
    let refused = filter_image(&image, &mut other, &chain, 1).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the result of a picture of 5x2 rgb24 cannot go to one of 5x2 bgr24"
    );
    let mut same = ImageMut::new(&mut output, PixelFormat::RGB24, 5, 2).unwrap();
    let nothing = Chain {
        filters: Vec::new(),
        ..chain.clone()
    };
    let refused = filter_image(&image, &mut same, &nothing, 1).unwrap_err();
    assert_eq!(refused.to_string(), "a chain needs at least one filter");
    let chroma = chain.with_planes(Planes::Chroma);
    let refused = filter_image(&image, &mut same, &chroma, 1);
    assert!(matches!(refused, Err(EngineError::Plan(_))), "{refused:?}");
}
