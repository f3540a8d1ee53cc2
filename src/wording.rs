//! Numbers in sentences.

/// So many of something, such as "1 frame" and "0 frames".
pub fn counted(count: impl Into<u128>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// Bytes in MiB, with as many digits as say something of few: no amount is shown as 0 that is not.
pub fn mebibytes(bytes: u128) -> String {
    let mebi = bytes as f64 / f64::from(1 << 20);
    match mebi {
        0.0 => "0 MiB".to_owned(),
        ..0.1 => format!("{:.1} KiB", mebi * 1024.0),
        ..100.0 => format!("{mebi:.1} MiB"),
        _ => format!("{mebi:.0} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_not_none() {
        assert_eq!(
            [0_u64, 1, 2].map(|count| counted(count, "frame")),
            ["0 frames", "1 frame", "2 frames"]
        );
        let sizes = [0, 1024, 12_345, 104_858, 1 << 20, 200 << 20].map(mebibytes);
        assert_eq!(
            sizes,
            ["0 MiB", "1.0 KiB", "12.1 KiB", "0.1 MiB", "1.0 MiB", "200 MiB"]
        );
    }
}
