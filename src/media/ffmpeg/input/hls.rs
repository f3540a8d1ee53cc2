//! Playlists (HLS). FFmpeg reads each playlist that a master names as one more master, without an end if it
//! names itself; here a master in a file is looked at beforehand.
//!
//! ```text
//!   #EXTM3U
//!   #EXT-X-MEDIA:TYPE=AUDIO,URI="sound.m3u8"     a playlist beside the variants
//!   #EXT-X-STREAM-INF:BANDWIDTH=800000           a variant, whose playlist is in the next line
//!   pictures.m3u8
//! ```

use super::access::begins_as_playlist;
use super::list::lines;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes that are read of a master and the playlists that it names.
const MOST_BYTES: u64 = 64 << 20;

/// Playlists that a master may name.
const MOST_NAMED: usize = 1000;

const VARIANT: &[u8] = b"#EXT-X-STREAM-INF:";
const RENDITION: &[u8] = b"#EXT-X-MEDIA:";

/// Refuses the playlist in the file at `path` if FFmpeg would not come to an end with it: the sentence.
pub(super) fn check(path: &Path) -> Result<(), String> {
    let mut left = MOST_BYTES;
    let text = read(path, &mut left)?;
    let mut named = 0;
    for name in names(&text) {
        named += 1;
        if named > MOST_NAMED {
            return Err(format!(
                "it is a playlist that names more than {MOST_NAMED} others"
            ));
        }
        let name = String::from_utf8_lossy(name);
        let file = path
            .with_file_name("")
            .join(name.strip_prefix("file:").unwrap_or(&name));
        if begins_as_playlist(&file) && names(&read(&file, &mut left)?).next().is_some() {
            return Err(format!(
                "it is a playlist that names {name}, which names playlists itself; give a playlist whose \
                 variants name segments alone"
            ));
        }
    }
    Ok(())
}

/// Reads a playlist of at most `left` bytes, which it takes from them.
fn read(path: &Path, left: &mut u64) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(*left + 1).read_to_end(&mut text));
    read.map_err(|cause| format!("{} cannot be read: {cause}", path.display()))?;
    *left = left.checked_sub(text.len() as u64).ok_or_else(|| {
        format!(
            "it is a playlist of more than {} MiB, with the playlists that it names",
            MOST_BYTES >> 20
        )
    })?;
    Ok(text)
}

/// The playlists that a master names, as they stand there; none in one of segments.
fn names(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut is_of_variant = false;
    lines(text)
        .filter(|line| !line.is_empty())
        .filter_map(move |line| {
            if line.starts_with(VARIANT) {
                is_of_variant = true;
                None
            } else if let Some(attributes) = line.strip_prefix(RENDITION) {
                quoted(attributes, b"URI=\"")
            } else if line.starts_with(b"#") {
                None
            } else {
                std::mem::take(&mut is_of_variant).then_some(line.trim_ascii())
            }
        })
}

/// What stands between `key`, which ends in a quote, and the next quote.
fn quoted<'a>(attributes: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = attributes.windows(key.len()).position(|bytes| bytes == key)?;
    attributes[at + key.len()..].split(|&byte| byte == b'"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_name_playlists_and_playlists_segments() {
        let named = |text: &str| -> Vec<String> {
            let names = names(text.as_bytes()).map(|name| String::from_utf8_lossy(name).into_owned());
            names.collect()
        };
        let master = "#EXTM3U\r\n#EXT-X-MEDIA:TYPE=AUDIO,URI=\"s.m3u8\",NAME=\"x\"\r\n\
                      #EXT-X-STREAM-INF:BANDWIDTH=1\r\n\r\n# a remark\r\n a.m3u8 \r\nb.ts\r\n";
        assert_eq!(named(master), ["s.m3u8", "a.m3u8"]);
        assert!(named("#EXTM3U\n#EXTINF:1,\na.ts\n#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS\n").is_empty());
    }

    #[test]
    fn a_master_names_no_master() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, lines: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#EXTM3U\n{lines}")).unwrap();
            path
        };
        let variant = |name: &str| format!("#EXT-X-STREAM-INF:BANDWIDTH=1\n{name}\n");
        write("segments.m3u8", "#EXTINF:1,\na.ts\n");
        let master = write("master.m3u8", &variant("segments.m3u8").repeat(MOST_NAMED));
        assert_eq!(check(&master), Ok(()));
        assert_eq!(check(&write("missing.m3u8", &variant("none.m3u8"))), Ok(()));
        let many = write("many.m3u8", &variant("segments.m3u8").repeat(MOST_NAMED + 1));
        assert!(check(&many).is_err_and(|why| why.contains("more than 1000")));
        let rendition = "#EXT-X-MEDIA:TYPE=AUDIO,URI=\"sound.m3u8\"\n";
        for (name, lines) in [
            ("self.m3u8", variant("self.m3u8")),
            ("path.m3u8", variant("./path.m3u8")),
            ("file.m3u8", variant(&format!("file:{}", master.display()))),
            ("other.m3u8", variant("master.m3u8")),
            ("sound.m3u8", rendition.to_owned()),
        ] {
            let refused = check(&write(name, &lines));
            assert!(
                refused
                    .clone()
                    .is_err_and(|why| why.contains("names playlists itself")),
                "{name}: {refused:?}"
            );
        }
    }
}
