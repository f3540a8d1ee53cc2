//! Suggestions for mistyped words.

/// The word of `known` that a typing error or a forgotten ending made into `word`; the first of several.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    if length < 2 {
        return None;
    }
    if let Some(begun) = known.clone().into_iter().find(|name| name.starts_with(&word)) {
        return Some(begun);
    }
    let distances = known
        .into_iter()
        .map(|name| (strsim::osa_distance(&word, name), name));
    let (distance, name) = distances.min()?;
    (distance <= 1 + length / 4).then_some(name)
}

/// A question about the nearest word, as the end of a clause; empty where none is near.
pub(crate) fn suggestion(word: &str, known: &[&str]) -> String {
    let near = nearest(word, known.iter().copied());
    near.map_or(String::new(), |name| format!("; did you mean '{name}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_near_and_other_words_are_not() {
        let known = ["gaussian", "box", "sobel-x"];
        let near = |word| nearest(word, known);
        assert_eq!(near("gausian"), Some("gaussian"));
        assert_eq!(near("gasusian"), Some("gaussian"));
        assert_eq!(near("gauss"), Some("gaussian"));
        assert_eq!(near("Box"), Some("box"));
        assert_eq!(near("sobel"), Some("sobel-x"));
        for word in ["", "b", "median", "emboss"] {
            assert_eq!(near(word), None, "{word}");
        }
        assert_eq!(suggestion("bx", &known), "; did you mean 'box'?");
        assert_eq!(suggestion("median", &known), "");
    }
}
