//! Accounts for every fact of the frames: carried, converted in the samples, or lost, with one sentence for
//! all that was lost.

use super::Rules;
use crate::frame::fact::{self, Fact, Facts, Samples};
use crate::frame::{Colour, FieldOrder, Frame, Metadata, Range, RangeChange, Rational, SideData, Turn};
#[cfg(feature = "ffmpeg")]
use crate::media::ffmpeg::for_frame;
#[cfg(feature = "ffmpeg")]
use crate::media::still::annotations::Annotations;
use crate::source::StreamInfo;
use crate::wording::{and_list, counted};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What to do about what no stream of frames can say.
const OF_STILLS: &str = "files of stills alone hold that, and some animations";

/// What became of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The output says it, or it is what everybody assumes.
    Carried,
    /// The samples were changed so that the fact no longer needs to be said; how, in words.
    #[cfg_attr(
        not(feature = "ffmpeg"),
        expect(dead_code, reason = "only pictures and videos convert")
    )]
    Converted(String),
    /// The output does not say it.
    Lost,
}

/// Facts that are not as in the first frame, with what they are instead; `None` where they are missing.
type Differences = Vec<(Fact, Option<String>)>;

/// The most values of a fact that a sentence lists.
const LISTED: usize = 8;

/// A fact that is another one later in the stream.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    fact: Fact,
    /// What the first frame says; `None` if it says nothing.
    from: Option<String>,
    /// What later frames say, and how many of them: [`LISTED`] values at most.
    to: Vec<(Option<String>, u64)>,
    seconds: Option<f64>,
    frame: u64,
    frames: u64,
}

impl Change {
    /// Counts a frame that says `value`.
    fn count(&mut self, value: &Option<String>) {
        self.frames += 1;
        if let Some((_, frames)) = self.to.iter_mut().find(|(known, _)| known == value) {
            *frames += 1;
        } else if self.to.len() < LISTED {
            self.to.push((value.clone(), 1));
        }
    }

    /// True if the fact has no values in words: it is there or not, or another one.
    fn is_without_values(&self) -> bool {
        let mut values = self.to.iter().map(|(value, _)| value).chain([&self.from]);
        values.all(|value| value.as_deref().is_none_or(str::is_empty))
    }

    /// What later frames say instead, in words.
    fn sentence(&self) -> String {
        let word = self.fact.word();
        let bare = self.is_without_values();
        let said = |value: &Option<String>| match value.as_deref() {
            None if bare => format!("without {word}"),
            Some(_) if bare && self.from.is_none() => format!("with {word}"),
            Some(_) if bare => format!("with another {word}"),
            None => format!("with {word} {}", or_nothing(fact::unsaid(self.fact))),
            Some(value) => format!("with {word} {}", or_nothing(value)),
        };
        let mut parts: Vec<String> = Vec::new();
        for (value, frames) in &self.to {
            let frames = match parts.len() {
                0 => counted(*frames, "frame"),
                _ => frames.to_string(),
            };
            parts.push(format!("{frames} {}", said(value)));
        }
        let listed: u64 = self.to.iter().map(|(_, frames)| frames).sum();
        if listed < self.frames {
            parts.push(format!("{} with others", self.frames - listed));
        }
        let at = self.seconds.map_or_else(
            || format!("from frame {}", self.frame),
            |s| format!("from {s:.3} s"),
        );
        let list = and_list(&parts);
        if bare {
            return format!("{at} on, {list}");
        }
        let from = self.from.as_deref().unwrap_or(fact::unsaid(self.fact));
        format!("{at} on, {list} instead of {}", or_nothing(from))
    }
}

/// The facts of a frame that all frames should share, and what stills say beside their pixels, cheap to
/// compare.
#[derive(Debug, Clone, PartialEq)]
struct Constants {
    colour: Colour,
    sample_aspect: (i32, i32),
    field_order: FieldOrder,
    blocks: Vec<(Fact, Arc<[u8]>)>,
    /// An orientation and a profile that are no blocks.
    orientation: Option<u8>,
    profile: Option<Arc<[u8]>>,
    #[cfg(feature = "ffmpeg")]
    annotations: Option<Arc<Annotations>>,
    has_exr: bool,
}

impl Constants {
    fn of(metadata: &Metadata) -> Constants {
        let constant = |block: &&SideData| block.fact.is_constant();
        Constants {
            colour: metadata.colour,
            sample_aspect: metadata.sample_aspect,
            field_order: metadata.field_order,
            blocks: metadata
                .side_data
                .iter()
                .filter(constant)
                .map(|b| (b.fact, b.data.clone()))
                .collect(),
            orientation: metadata.orientation,
            profile: metadata.icc_profile.clone(),
            #[cfg(feature = "ffmpeg")]
            annotations: metadata.annotations.clone(),
            #[cfg(feature = "images")]
            has_exr: metadata.exr.is_some(),
            #[cfg(not(feature = "images"))]
            has_exr: false,
        }
    }

    /// The ICC profile.
    fn profile(&self) -> Option<&Arc<[u8]>> {
        let block = self.blocks.iter().find(|(fact, _)| *fact == Fact::IccProfile);
        self.profile.as_ref().or(block.map(|(_, data)| data))
    }
}

/// What a frame brings that was not accounted for yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NewFacts {
    /// Facts that no frame had before.
    pub(super) facts: Facts,
    /// Facts that are another one than at the beginning, for the first time.
    pub(super) changes: BTreeSet<Fact>,
}

/// Which facts another output holds, and its name.
type Example = (fn(Fact) -> bool, &'static str);

/// Advice where certain facts are lost.
struct SpecialAdvice {
    is_for: fn(Fact) -> bool,
    text: &'static str,
}

/// The account of one output.
pub(super) struct Ledger {
    /// The output and what holds it, such as "out.avi (mpeg4 in avi)".
    place: String,
    /// What to do about what is lost.
    advice: &'static str,
    /// What to do about it if it is one of these facts.
    special: SpecialAdvice,
    /// Outputs to be named where they hold what is lost.
    examples: Vec<Example>,
    /// What the samples lose, a sentence each.
    of_samples: Vec<String>,
    strict: bool,
    time_base: Rational,
    outcomes: BTreeMap<Fact, (String, Outcome)>,
    first: Option<(Constants, Facts)>,
    /// The latest frame's, and what of it differs from the first frame's.
    latest: Option<(Constants, Differences)>,
    changes: BTreeMap<Fact, Change>,
    /// Changes that the output holds, or that were undone in the samples.
    settled: BTreeSet<Fact>,
    frames: u64,
}

impl Ledger {
    /// An empty account.
    pub(super) fn new(place: String, advice: &'static str, rules: Rules, time_base: Rational) -> Ledger {
        Ledger {
            place,
            advice,
            special: SpecialAdvice {
                is_for: |_| false,
                text: "",
            },
            examples: Vec::new(),
            of_samples: Vec::new(),
            strict: rules.strict,
            time_base,
            outcomes: BTreeMap::new(),
            first: None,
            latest: None,
            changes: BTreeMap::new(),
            settled: BTreeSet::new(),
            frames: 0,
        }
    }

    /// Gives other `advice` where a fact is lost that `is_special`.
    #[cfg(feature = "images")]
    pub(super) fn advise_on(&mut self, is_special: fn(Fact) -> bool, advice: &'static str) {
        self.special = SpecialAdvice {
            is_for: is_special,
            text: advice,
        };
    }

    /// Adds the name of another output, which `is_held` tells the facts of, to the advice where it holds all
    /// that is lost, and all that is carried. Of several the first is named.
    #[cfg(feature = "ffmpeg")]
    pub(super) fn give_example(&mut self, is_held: fn(Fact) -> bool, example: &'static str) {
        self.examples.push((is_held, example));
    }

    /// Enters a `sentence` about what the samples lose.
    #[cfg(feature = "ffmpeg")]
    pub(super) fn lose_of_samples(&mut self, sentence: String) {
        self.of_samples.push(sentence);
    }

    /// Counts a frame, and returns what it brings that must be accounted for.
    pub(super) fn see(&mut self, metadata: &Metadata, samples: Samples) -> NewFacts {
        self.frames += 1;
        let mut news = NewFacts::default();
        let seen = |outcomes: &BTreeMap<Fact, (String, Outcome)>| {
            metadata.side_data.iter().all(|b| outcomes.contains_key(&b.fact))
        };
        let constants = Constants::of(metadata);
        let is_like_latest = self.latest.as_ref().is_some_and(|(c, _)| *c == constants);
        if !is_like_latest || !seen(&self.outcomes) {
            let facts = fact::said(metadata, samples);
            for (fact, value) in &facts {
                match self.outcomes.get(fact) {
                    None if self.is_changed_from_unsaid(*fact, value, samples) => {}
                    None => {
                        news.facts.insert(*fact, value.clone());
                    }
                    Some((known, _)) if *fact == Fact::Annotations => {
                        news.facts.extend(with_more(known, value).map(|all| (*fact, all)));
                    }
                    Some(_) => {}
                }
            }
            // A file of its own states all that is true of its picture; in a stream, blocks stay valid.
            let is_whole = metadata.file.is_some();
            let differs = self.differences(&facts, &constants, is_whole, samples);
            news.changes = differs.iter().map(|(fact, _)| *fact).collect();
            news.changes.retain(|fact| !self.changes.contains_key(fact));
            if self.first.is_none() {
                self.first = Some((constants.clone(), facts));
            }
            self.latest = Some((constants, differs));
        }
        let Some((_, differs)) = &self.latest else {
            return news;
        };
        for (fact, value) in differs {
            let change = self.changes.entry(*fact).or_insert_with(|| Change {
                fact: *fact,
                from: self
                    .first
                    .as_ref()
                    .and_then(|(_, facts)| facts.get(fact).cloned()),
                to: Vec::new(),
                // Of the input, of which a range leaves out what comes before it.
                seconds: metadata
                    .pts
                    .map(|pts| (pts + metadata.skipped.ticks) as f64 * self.time_base.to_f64()),
                frame: self.frames - 1 + metadata.skipped.frames.unwrap_or(0),
                frames: 0,
            });
            change.count(value);
        }
        news
    }

    /// Counts frames from the next one on: what came before is no frame of this output.
    #[cfg(feature = "ffmpeg")]
    pub(super) fn count_anew(&mut self) {
        self.frames = 0;
    }

    /// True if a fact that all frames should share appears after frames without it: a change, which is
    /// reported as one.
    fn is_changed_from_unsaid(&self, fact: Fact, value: &str, samples: Samples) -> bool {
        self.first.is_some() && fact.is_constant() && !fact::is_usual(fact, value, samples)
    }

    /// What of `facts`, which belong to `constants`, is not as in the first frame. What is missing is only
    /// repeated now and then, unless each frame states it or the frame `is_whole` by itself.
    fn differences(
        &self,
        facts: &Facts,
        constants: &Constants,
        is_whole: bool,
        samples: Samples,
    ) -> Differences {
        let Some((first_constants, first)) = &self.first else {
            return Vec::new();
        };
        let both: BTreeSet<Fact> = first.keys().chain(facts.keys()).copied().collect();
        both.into_iter()
            .filter(|fact| fact.is_constant())
            .filter_map(|fact| {
                let (before, now) = (first.get(&fact), facts.get(&fact));
                let same = match (before, now) {
                    (Some(_), Some(_)) if fact == Fact::IccProfile => {
                        first_constants.profile() == constants.profile()
                    }
                    (Some(before), now) => {
                        let repeated = now.is_none() && !is_whole && fact.is_side_block();
                        repeated || fact::survives(fact, before, now.map(String::as_str), samples)
                    }
                    (None, Some(now)) => fact::is_usual(fact, now, samples),
                    (None, None) => true,
                };
                (!same).then(|| (fact, now.cloned()))
            })
            .collect()
    }

    /// Enters what became of a fact.
    pub(super) fn account(&mut self, fact: Fact, value: &str, outcome: Outcome) {
        self.outcomes.insert(fact, (value.to_owned(), outcome));
    }

    /// Enters that changes of a fact are no loss.
    pub(super) fn settle_change(&mut self, fact: Fact) {
        self.settled.insert(fact);
    }

    /// The sentences about what is lost so far.
    pub(super) fn sentences(&self) -> Vec<String> {
        let of_loss = |(_, (_, outcome)): &(&Fact, &(String, Outcome))| *outcome == Outcome::Lost;
        let is_special = |(fact, _): (&Fact, _)| (self.special.is_for)(*fact);
        let lost: Vec<String> = self
            .outcomes
            .iter()
            .filter(of_loss)
            .map(|(fact, (value, _))| match value.as_str() {
                "" => fact.word().to_owned(),
                value => format!("{} ({value})", fact.word()),
            })
            .collect();
        let mut sentences = self.of_samples.clone();
        if !lost.is_empty() {
            sentences.push(format!(
                "not kept in {}: {}; {}{}",
                self.place,
                lost.join(", "),
                if self.is_of_stills() {
                    OF_STILLS
                } else if self.outcomes.iter().filter(of_loss).any(is_special) {
                    self.special.text
                } else {
                    self.advice
                },
                match self.is_of_stills() {
                    true => String::new(),
                    false => self.example(),
                }
            ));
        }
        // What is lost anyway is named above.
        let is_lost = |change: &Change| {
            let outcome = self.outcomes.get(&change.fact).map(|(_, outcome)| outcome);
            change.is_without_values() && outcome == Some(&Outcome::Lost)
        };
        let changes: Vec<String> = self
            .changes
            .values()
            .filter(|change| !self.settled.contains(&change.fact) && !is_lost(change))
            .map(Change::sentence)
            .collect();
        if !changes.is_empty() {
            sentences.push(format!(
                "{} says only what its first frame says, and the input changes: {}; split the input there to \
                 keep both",
                self.place,
                changes.join(", ")
            ));
        }
        sentences
    }

    /// What holds all that is lost, as an addition to the advice; nothing if no example does.
    fn example(&self) -> String {
        let holds_all = |is_held: fn(Fact) -> bool| {
            let mut outcomes = self.outcomes.iter();
            let is_said = |outcome| matches!(outcome, &Outcome::Lost | &Outcome::Carried);
            outcomes.all(|(fact, (_, outcome))| !is_said(outcome) || is_held(*fact))
        };
        let found = self.examples.iter().find(|(is_held, _)| holds_all(*is_held));
        found.map_or_else(String::new, |(_, example)| format!(", such as {example}"))
    }

    /// True if all that is lost is what files of stills alone can say.
    fn is_of_stills(&self) -> bool {
        let lost = self
            .outcomes
            .iter()
            .filter(|(_, (_, outcome))| *outcome == Outcome::Lost);
        lost.map(|(fact, _)| fact)
            .all(|fact| matches!(fact, Fact::Annotations | Fact::Exr))
    }

    /// An error's sentence if the output is to be strict and something is lost.
    pub(super) fn refusal(&self) -> Option<String> {
        if !self.strict {
            return None;
        }
        let sentences = self.sentences();
        (!sentences.is_empty())
            .then(|| format!("{}; without --strict it is written so", sentences.join("; ")))
    }

    /// What was converted, for the summary.
    pub(super) fn notes(&self) -> String {
        let mut notes: String = self
            .outcomes
            .values()
            .filter_map(|(_, outcome)| match outcome {
                Outcome::Converted(how) => Some(format!(", {how}")),
                Outcome::Carried | Outcome::Lost => None,
            })
            .collect();
        if let Some(change) = self.changes.get(&Fact::Range)
            && self.settled.contains(&Fact::Range)
        {
            let range = |value: Option<&Option<String>>| value.cloned().flatten().unwrap_or_default();
            notes.push_str(&format!(
                ", {} brought from {} to {} range",
                counted(change.frames, "frame"),
                range(change.to.first().map(|(value, _)| value)),
                range(Some(&change.from))
            ));
        }
        notes
    }
}

/// What a frame says together with its stream.
pub(super) fn stated(frame: &Metadata, info: &StreamInfo) -> Metadata {
    let mut metadata = frame.clone();
    metadata.colour = merged(metadata.colour, info.colour);
    if metadata.sample_aspect.0 <= 0 || metadata.sample_aspect.1 <= 0 {
        metadata.sample_aspect = info.sample_aspect;
    }
    add_stream_blocks(&mut metadata, &info.side_data);
    let turn = metadata.orientation.take().and_then(Turn::from_exif);
    let matrix = turn.map(|turn| (Fact::Rotation, turn.to_matrix().into()));
    // A container says it of RGB alone.
    let is_rgb = |profile: &mut Arc<[u8]>| profile.get(16..20) == Some(b"RGB ");
    let profile = metadata.icc_profile.take_if(is_rgb);
    let profile = profile.map(|data| (Fact::IccProfile, data));
    for (fact, data) in [matrix, profile].into_iter().flatten() {
        let block = SideData {
            // `for_frame` fills it in.
            kind: 0,
            fact,
            name: None,
            data,
        };
        add_stream_blocks(&mut metadata, &[block]);
    }
    metadata
}

/// Adds the stream's blocks to those of a frame that lacks them. What the container says of rotation comes
/// first, as in players.
pub(super) fn add_stream_blocks(metadata: &mut Metadata, stream: &[SideData]) {
    for block in stream {
        let block = for_frame(block).unwrap_or_else(|| block.clone());
        let own = metadata.side_data.iter().position(|b| b.fact == block.fact);
        match own {
            Some(at) if block.fact == Fact::Rotation => metadata.side_data[at] = block,
            Some(_) => {}
            None => metadata.side_data.push(block),
        }
    }
}

/// The block under the number by which a library's frames know it: none, without a library.
#[cfg(not(feature = "ffmpeg"))]
fn for_frame(_: &SideData) -> Option<SideData> {
    None
}

/// The frame's own colour facts, and the stream's where the frame says nothing.
pub(super) fn merged(frame: Colour, stream: Colour) -> Colour {
    let tag = |own: u8, other: u8| if own == 2 { other } else { own };
    Colour {
        range: if frame.range == Range::Unspecified {
            stream.range
        } else {
            frame.range
        },
        primaries: tag(frame.primaries, stream.primaries),
        transfer: tag(frame.transfer, stream.transfer),
        matrix: tag(frame.matrix, stream.matrix),
        chroma_location: if frame.chroma_location == 0 {
            stream.chroma_location
        } else {
            frame.chroma_location
        },
        alpha: frame.alpha,
    }
}

/// The account of an output without an encoder, whose format says what it holds. It brings all frames to the
/// first one's range.
pub(super) struct PlainLedger {
    ledger: Ledger,
    /// What is said of the input's other streams, if anything.
    streams: Option<String>,
    info: StreamInfo,
    limited: Option<bool>,
    range_change: Option<RangeChange>,
}

impl PlainLedger {
    /// An empty account of a stream's output. An error is a sentence about the input's other streams.
    pub(super) fn new(
        place: String,
        advice: &'static str,
        rules: Rules,
        info: &StreamInfo,
    ) -> Result<PlainLedger, String> {
        let streams = streams_left_out(&place, rules, info);
        match streams {
            Some(problem) if rules.strict => Err(problem),
            streams => Ok(PlainLedger {
                ledger: Ledger::new(place, advice, rules, info.time_base),
                streams,
                info: info.clone(),
                limited: None,
                range_change: None,
            }),
        }
    }

    /// Accounts for a frame's facts as `judge` says; an error is a sentence.
    pub(super) fn see(
        &mut self,
        frame: &mut Frame,
        judge: impl Fn(Fact, &str, Samples) -> Outcome,
    ) -> Result<(), String> {
        let samples = Samples::of(frame.format(), frame.layout().height());
        let metadata = stated(&frame.metadata, &self.info);
        let news = self.ledger.see(&metadata, samples);
        for (&fact, value) in &news.facts {
            let outcome = match judge(fact, value, samples) {
                Outcome::Lost if fact::is_usual(fact, value, samples) => Outcome::Carried,
                outcome => outcome,
            };
            self.ledger.account(fact, value, outcome);
        }
        let limited = samples.is_limited(metadata.colour.range);
        let first = *self.limited.get_or_insert(limited);
        if first != limited {
            let to = if first { Range::Limited } else { Range::Full };
            self.range_change
                .get_or_insert_with(|| RangeChange::new(frame.format(), to))
                .apply(frame);
            self.ledger.settle_change(Fact::Range);
        }
        if news == NewFacts::default() {
            return Ok(());
        }
        self.ledger.refusal().map_or(Ok(()), Err)
    }

    /// As [`Ledger::advise_on`].
    #[cfg(feature = "images")]
    pub(super) fn advise_on(&mut self, is_special: fn(Fact) -> bool, advice: &'static str) {
        self.ledger.advise_on(is_special, advice);
    }

    /// Enters that changes of a fact are no loss.
    pub(super) fn settle_change(&mut self, fact: Fact) {
        self.ledger.settle_change(fact);
    }

    /// As [`PlainLedger::see`], for files that hold one frame each, so that nothing changes within an output.
    #[cfg(feature = "images")]
    pub(super) fn see_alone(
        &mut self,
        metadata: &Metadata,
        samples: Samples,
        judge: impl Fn(Fact, &str, Samples) -> Outcome,
    ) -> Result<(), String> {
        let facts = fact::said(metadata, samples);
        for (&fact, value) in &facts {
            let outcome = match judge(fact, value, samples) {
                Outcome::Lost if fact::is_usual(fact, value, samples) => Outcome::Carried,
                outcome => outcome,
            };
            let known = self.ledger.outcomes.get(&fact);
            if known.is_none_or(|(_, known)| *known != outcome && *known == Outcome::Carried) {
                self.ledger.account(fact, value, outcome);
            }
        }
        // Files are made by several threads: once one is refused, no other is written.
        self.ledger.refusal().map_or(Ok(()), Err)
    }

    /// The stream's facts.
    #[cfg(feature = "images")]
    pub(super) fn info(&self) -> &StreamInfo {
        &self.info
    }

    /// The sentences about what is lost.
    pub(super) fn sentences(&self) -> Vec<String> {
        let streams = self.streams.iter().cloned();
        streams.chain(self.ledger.sentences()).collect()
    }

    /// What was converted, for the summary.
    pub(super) fn notes(&self) -> String {
        self.ledger.notes()
    }
}

/// What is said of the input's other streams where the output holds pictures alone.
fn streams_left_out(place: &str, rules: Rules, info: &StreamInfo) -> Option<String> {
    #[cfg(feature = "ffmpeg")]
    if let Some(origin) = info.origin.as_ref().filter(|origin| !origin.others.is_empty())
        && !rules.pictures_alone
    {
        return Some(format!(
            "left out of {place}, which holds pictures alone: {}; --streams video leaves them out unsaid",
            origin.others.join(", ")
        ));
    }
    #[cfg(not(feature = "ffmpeg"))]
    let _ = (place, rules, info);
    None
}

/// The words of `known` and those of `value` beside them; `None` if there are none.
fn with_more(known: &str, value: &str) -> Option<String> {
    let mut all: Vec<&str> = known.split(", ").collect();
    let before = all.len();
    for word in value.split(", ") {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    (all.len() > before).then(|| all.join(", "))
}

fn or_nothing(value: &str) -> &str {
    if value.is_empty() { "another one" } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::ColourModel;

    const SAMPLES: Samples = Samples {
        model: ColourModel::Yuv,
        subsampling: (1, 1),
        height: 576,
    };

    fn ledger(strict: bool) -> Ledger {
        let rules = Rules {
            strict,
            ..Rules::default()
        };
        let base = Rational { num: 1, den: 25 };
        Ledger::new("out.avi (mpeg4 in avi)".to_owned(), "choose another", rules, base)
    }

    #[test]
    fn what_is_lost_is_one_sentence() {
        let mut ledger = ledger(true);
        let mut metadata = Metadata::default();
        metadata.colour.transfer = 16;
        metadata.orientation = Some(6);
        let news = ledger.see(&metadata, SAMPLES);
        for (&fact, value) in &news.facts {
            let outcome = match fact {
                Fact::Range => Outcome::Carried,
                _ => Outcome::Lost,
            };
            ledger.account(fact, value, outcome);
        }
        let sentence = "not kept in out.avi (mpeg4 in avi): transfer (smpte2084), rotation (90 degrees \
            clockwise); choose another";
        assert_eq!(ledger.sentences(), [sentence]);
        assert!(ledger.refusal().is_some_and(|r| r.starts_with(sentence)));
        assert_eq!(ledger.see(&metadata, SAMPLES), NewFacts::default());
    }

    #[cfg(feature = "images")]
    #[test]
    fn files_are_refused_from_the_first_loss_on() {
        let rules = Rules {
            strict: true,
            ..Rules::default()
        };
        let info = StreamInfo::new(crate::frame::PixelFormat::RGB24, 8, 8);
        let mut ledger = PlainLedger::new("out/ (PNG files)".to_owned(), "", rules, &info).unwrap();
        let plain = Metadata::default();
        let mut linear = plain.clone();
        linear.colour.transfer = 8;
        let mut is_refused = |metadata: &Metadata| {
            let seen = ledger.see_alone(metadata, SAMPLES, |fact, _, _| match fact {
                Fact::Transfer => Outcome::Lost,
                _ => Outcome::Carried,
            });
            seen.is_err()
        };
        let files = [&plain, &linear, &linear, &plain];
        assert_eq!(files.map(&mut is_refused), [false, true, true, true]);
    }

    #[cfg(feature = "ffmpeg")]
    #[test]
    fn an_example_is_given_if_it_holds_all_that_is_lost() {
        let said = |lost: &[Fact]| {
            let mut ledger = ledger(true);
            ledger.give_example(
                |fact| fact == Fact::Transfer,
                "nothing, since it drops what is carried",
            );
            ledger.give_example(|fact| matches!(fact, Fact::Transfer | Fact::Spherical), "x");
            ledger.give_example(|fact| !matches!(fact, Fact::IccProfile | Fact::Annotations), "y");
            for &fact in lost {
                ledger.account(fact, "", Outcome::Lost);
            }
            ledger.account(Fact::Spherical, "", Outcome::Carried);
            ledger.sentences().join("")
        };
        assert!(said(&[Fact::Transfer]).ends_with("; choose another, such as x"));
        assert!(said(&[Fact::Captions]).ends_with("; choose another, such as y"));
        assert!(said(&[Fact::Captions, Fact::Transfer]).ends_with(", such as y"));
        for lost in [&[Fact::IccProfile][..], &[Fact::IccProfile, Fact::Transfer]] {
            assert!(said(lost).ends_with("; choose another"), "{lost:?}");
        }
        assert!(said(&[Fact::Annotations]).ends_with(OF_STILLS));
        let mut ledger = ledger(true);
        ledger.lose_of_samples("depth".to_owned());
        assert_eq!(ledger.sentences(), ["depth"]);
        assert!(
            ledger
                .refusal()
                .is_some_and(|refusal| refusal.starts_with("depth; without"))
        );
    }

    #[test]
    fn a_change_is_reported_with_its_time_and_length() {
        let mut ledger = ledger(false);
        for at in 0..10 {
            let mut metadata = Metadata {
                pts: Some(at),
                ..Metadata::default()
            };
            if at >= 5 {
                metadata.sample_aspect = (4, 3);
            }
            let news = ledger.see(&metadata, SAMPLES);
            assert_eq!(news.changes.contains(&Fact::PixelAspect), at == 5, "{at}");
            for (&fact, value) in &news.facts {
                ledger.account(fact, value, Outcome::Carried);
            }
        }
        assert_eq!(
            ledger.sentences(),
            [
                "out.avi (mpeg4 in avi) says only what its first frame says, and the input changes: \
              from 0.200 s on, 5 frames with pixel aspect 4:3 instead of 1:1; split the input there to keep \
              both"
            ]
        );
        ledger.settle_change(Fact::PixelAspect);
        assert!(ledger.sentences().is_empty());
    }

    #[test]
    fn each_value_of_a_change_is_counted() {
        let mut ledger = ledger(false);
        for orientation in [None, Some(6), Some(3), None, Some(6)] {
            let metadata = Metadata {
                orientation,
                ..Metadata::default()
            };
            for (fact, value) in ledger.see(&metadata, SAMPLES).facts {
                ledger.account(fact, &value, Outcome::Carried);
            }
        }
        let sentences = ledger.sentences().join("");
        let words = "from frame 1 on, 2 frames with rotation 90 degrees clockwise and 1 with rotation 180 \
            degrees instead of upright; split";
        assert!(sentences.contains(words), "{sentences}");
    }

    #[test]
    fn a_file_of_its_own_states_all_of_its_picture() {
        let profile = |byte: u8| Some(Arc::from([byte; 24]));
        let still = |icc_profile, orientation| Metadata {
            file: Some(Arc::new("a.png".into())),
            icc_profile,
            orientation,
            ..Metadata::default()
        };
        let seen = |stills: &[Metadata], outcome: &Outcome| {
            let mut ledger = ledger(true);
            for metadata in stills {
                for (fact, value) in ledger.see(metadata, SAMPLES).facts {
                    let is_profile = fact == Fact::IccProfile;
                    let outcome = if is_profile {
                        outcome.clone()
                    } else {
                        Outcome::Carried
                    };
                    ledger.account(fact, &value, outcome);
                }
            }
            ledger.refusal().unwrap_or_default()
        };
        let kept = Outcome::Carried;
        let [one, other, none] = [profile(1), profile(2), None].map(|profile| still(profile, None));
        assert_eq!(seen(&[one.clone(), one.clone()], &kept), "");
        for (stills, words) in [
            (
                [&one, &none, &none],
                "from frame 1 on, 2 frames without ICC profile; split",
            ),
            (
                [&one, &other, &one],
                "from frame 1 on, 1 frame with another ICC profile; split",
            ),
            (
                [&none, &none, &one],
                "from frame 2 on, 1 frame with ICC profile; split",
            ),
            (
                [&one, &other, &none],
                "1 frame with another ICC profile and 1 without ICC profile; split",
            ),
        ] {
            let refusal = seen(&stills.map(Clone::clone), &kept);
            assert!(refusal.contains(words), "{refusal}");
        }
        // What is lost from the beginning on is named once.
        let lost = seen(&[one.clone(), none.clone()], &Outcome::Lost);
        assert!(lost.contains("ICC profile") && !lost.contains("split"), "{lost}");
        let turned = seen(&[still(None, Some(6)), none.clone()], &kept);
        let words = "1 frame with rotation upright instead of 90 degrees clockwise";
        assert!(turned.contains(words), "{turned}");
    }
}
