//! Pictures filtered on the CPU, where they lie in memory.

use crate::engine::cpu::Cpu;
use crate::engine::luma::{self, Luma};
use crate::engine::{Engine, EngineError};
use crate::filter::Chain;
use crate::frame::{Buffer, Frame, Image, ImageMut, Layout};

/// Filters `input` into `output`, which must be of the same size and format, on the CPU.
///
/// `threads` is how many threads share the picture out by its rows: 1 leaves all of it to the caller, 0 means
/// one for each core. The result is the same bits whatever it is, and the same as that of every other engine.
///
/// Nothing is copied: rows are read and written where they lie, and bytes between them are left alone. Only
/// luma of RGB ([`Planes::Luma`](crate::Planes) and `Gray`) goes through frames of its own. For several
/// pictures an [`ImageFilter`] keeps threads and memory from one to the next.
///
/// ```
/// use framepipe::{Chain, Image, ImageMut, PixelFormat, filter_image};
///
/// let chain = Chain::parse("sharpen")?;
/// let (width, height, stride) = (50, 40, 160);
/// let input = vec![128; stride * height];
/// let mut output = vec![0; stride * height];
/// filter_image(
///     &Image::with_strides(&input, PixelFormat::RGB24, width, height, &[stride])?,
///     &mut ImageMut::with_strides(&mut output, PixelFormat::RGB24, width, height, &[stride])?,
///     &chain,
///     1,
/// )?;
/// assert_eq!(output[..3 * width], input[..3 * width]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn filter_image(
    input: &Image<'_>,
    output: &mut ImageMut<'_>,
    chain: &Chain,
    threads: usize,
) -> Result<(), EngineError> {
    ImageFilter::new(chain.clone(), threads)?.filter(input, output)
}

/// Filters pictures on the CPU one after another, of any sizes and formats. What it keeps between them are
/// its threads, their memory, and the integers of the last format's filters.
pub struct ImageFilter {
    chain: Chain,
    threads: usize,
    cpu: Cpu,
    /// For luma of RGB.
    luma: Option<Luma>,
}

impl ImageFilter {
    /// Filters by `chain` with `threads` threads, the caller's being one of them; 0 means one for each core.
    pub fn new(chain: Chain, threads: usize) -> Result<ImageFilter, EngineError> {
        Ok(ImageFilter {
            cpu: Cpu::new(chain.clone(), threads)?,
            luma: None,
            chain,
            threads,
        })
    }

    /// Filters `input` into `output`; see [`filter_image`].
    pub fn filter(&mut self, input: &Image<'_>, output: &mut ImageMut<'_>) -> Result<(), EngineError> {
        let (from, to) = (input.layout(), output.layout());
        let shape = |layout: &Layout| (layout.width(), layout.height(), layout.format());
        if shape(from) != shape(to) {
            let words = |(width, height, format)| format!("{width}x{height} {format}");
            return Err(EngineError::Mismatch {
                input: words(shape(from)),
                output: words(shape(to)),
            });
        }
        if luma::filtered_format(from.format(), &self.chain.planes) == from.format() {
            self.cpu.filter(input, output)
        } else {
            self.luma_of_rgb(input, output)
        }
    }

    fn luma_of_rgb(&mut self, input: &Image<'_>, output: &mut ImageMut<'_>) -> Result<(), EngineError> {
        let luma = match &mut self.luma {
            Some(luma) => luma,
            none => {
                let cpu = Cpu::new(self.chain.clone(), self.threads)?;
                none.insert(Luma::new(Box::new(cpu), self.chain.planes.clone(), self.threads)?)
            }
        };
        let buffer = || Buffer::unpooled(Box::new(Vec::new()));
        let layout = input.layout();
        let layout = Layout::new(layout.format(), layout.width(), layout.height(), 64)?;
        let mut frame = Frame::new(layout, buffer())?;
        frame.metadata.colour = input.colour();
        for (index, plane) in layout.planes().iter().enumerate() {
            for y in 0..plane.height {
                frame.row_mut(index, y).copy_from_slice(input.row(index, y));
            }
        }
        luma.submit(frame, buffer(), 64)?;
        if let Some(result) = luma.collect()? {
            for (index, plane) in layout.planes().iter().enumerate() {
                for y in 0..plane.height {
                    output.row_mut(index, y).copy_from_slice(result.row(index, y));
                }
            }
        }
        Ok(())
    }
}
