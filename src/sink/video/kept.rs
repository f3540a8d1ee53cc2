//! Texts and chapters that are in the input and not in the finished file.

use crate::ffmpeg::Demuxer;

/// Names of texts that each file has of its own, for what wrote it and how it is laid out; in lower case.
const OWN_TEXTS: &[&str] = &[
    "encoder",
    "major_brand",
    "minor_version",
    "compatible_brands",
    "duration",
    "isvbr",
    "wmfsdkversion",
    "wmfsdkneeded",
    "metadatacreator",
    "hasvideo",
    "hasaudio",
    "hasmetadata",
    "haskeyframes",
    "canseektoend",
    "datasize",
    "videosize",
    "audiosize",
    "lasttimestamp",
    "lastkeyframetimestamp",
    "lastkeyframelocation",
    "uid",
    "generation_uid",
    "product_uid",
    "product_name",
    "product_version",
    "company_name",
    "toolkit_version",
    "toolkit_version_num",
    "application_platform",
    "modification_date",
    "operational_pattern_ul",
    "project_name",
    "material_package_umid",
    "file_package_umid",
    "file_package_name",
    "package_uid",
];

/// True if the name of a text is one of the many that phones and cameras invent, with dots between the words.
pub(super) fn is_reverse_domain(name: &str) -> bool {
    name.contains('.')
}

/// What `before` has that would be missed: texts of the whole file, and the number of chapters.
fn wanted(before: &Demuxer) -> (Vec<(String, String)>, usize) {
    let texts = before.texts().into_iter();
    let texts = texts.filter(|(name, _)| !OWN_TEXTS.contains(&name.to_lowercase().as_str()));
    (texts.collect(), before.chapter_count())
}

/// What is lost on the way from `before` to the file that `open` opens, `None` if it cannot be read, a
/// sentence each.
pub(super) fn losses(
    before: &Demuxer,
    open: impl FnOnce() -> Option<Demuxer>,
    container: &str,
) -> Vec<String> {
    let (texts, chapters) = wanted(before);
    if texts.is_empty() && chapters == 0 {
        return Vec::new();
    }
    let after = open();
    let kept = after.as_ref().map_or_else(Vec::new, Demuxer::all_texts);
    // Some containers keep a text under another name, or with a stream.
    let is_kept = |(name, value): &(String, String)| {
        kept.iter()
            .any(|(k, v)| k.eq_ignore_ascii_case(name) || v == value)
    };
    let lost: Vec<String> = texts
        .iter()
        .filter(|text| !is_kept(text))
        .map(|(name, _)| name.clone())
        .collect();
    let mut sentences = Vec::new();
    if !lost.is_empty() {
        sentences.push(format!(
            "metadata is not kept: {container} does not hold {}",
            lost.join(", ")
        ));
    }
    match after.map_or(0, |after| after.chapter_count()) {
        0 if chapters > 0 => sentences.push(format!(
            "the chapters are not kept: {container} does not hold them"
        )),
        held if held < chapters => sentences.push(format!(
            "only {held} of {chapters} chapters are kept by {container}"
        )),
        _ => {}
    }
    sentences
}
