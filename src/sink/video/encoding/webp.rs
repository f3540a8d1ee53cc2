//! How long the last frame of an animated WebP is shown, which FFmpeg's encoder guesses from the others.

/// Bytes before the first chunk of a file, and of a chunk's head.
const FILE_HEAD: usize = 12;
const CHUNK_HEAD: usize = 8;

/// Where a frame's chunk states its milliseconds.
const DURATION: usize = 12;

/// Lets the last frame of the file end after `total` milliseconds. Data that are no animated WebP stay as
/// they are.
pub(in crate::sink::video) fn set_total(file: &mut [u8], total: i64) {
    let mut at = FILE_HEAD;
    let mut sum = 0;
    let mut last = None;
    if !file.starts_with(b"RIFF") {
        return;
    }
    while let Some(head) = file.get(at..at + CHUNK_HEAD) {
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if head.starts_with(b"ANMF") {
            let place = at + CHUNK_HEAD + DURATION;
            let Some(&[a, b, c]) = file.get(place..place + 3) else {
                return;
            };
            let duration = i64::from(u32::from_le_bytes([a, b, c, 0]));
            sum += duration;
            last = Some((place, duration));
        }
        at += CHUNK_HEAD + size + size % 2;
    }
    if let Some((place, duration)) = last {
        let bytes = (total - (sum - duration)).clamp(1, 0xff_ffff).to_le_bytes();
        file[place..place + 3].copy_from_slice(&bytes[..3]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_frame_takes_what_is_left() {
        let frame = |ms: u8| [&b"ANMF\x11\0\0\0"[..], &[0; 12], &[ms, 0, 0, 0, 9, 0]].concat();
        let mut file = [
            &b"RIFF\0\0\0\0WEBP"[..],
            b"ANIM\x02\0\0\0ab",
            &frame(40),
            &frame(40),
        ]
        .concat();
        set_total(&mut file, 740);
        let end = file.len();
        assert_eq!(file[end - 6..end - 3], 700_u32.to_le_bytes()[..3]);
        assert_eq!(file[end - 32], 40);
        let mut still = b"RIFF\0\0\0\0WEBPVP8L\x01\0\0\0a\0".to_vec();
        let before = still.clone();
        set_total(&mut still, 740);
        assert_eq!(still, before);
    }
}
