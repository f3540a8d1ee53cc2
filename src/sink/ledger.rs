//! Accounts for every fact of the frames: carried, converted in the samples, or lost, with one sentence for
//! all that was lost.

use super::Rules;
#[cfg(feature = "ffmpeg")]
use crate::ffmpeg::for_frame;
use crate::frame::fact::{self, Fact, Facts, Samples};
use crate::frame::{Colour, FieldOrder, Frame, Metadata, Range, RangeChange, Rational, SideData, Turn};
use crate::source::StreamInfo;
use crate::wording::counted;
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
    #[cfg_attr(not(feature = "ffmpeg"), allow(dead_code))]
    Converted(String),
    /// The output does not say it.
    Lost,
}

/// A fact that is another one later in the stream.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    from: String,
    to: String,
    seconds: Option<f64>,
    frame: u64,
    frames: u64,
}

/// The facts of a frame that all frames should share, cheap to compare.
#[derive(Debug, Clone, PartialEq)]
struct Constants {
    colour: Colour,
    sample_aspect: (i32, i32),
    field_order: FieldOrder,
    blocks: Vec<(Fact, Arc<[u8]>)>,
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
        }
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

/// The account of one output.
pub(super) struct Ledger {
    /// The output and what holds it, such as "out.avi (mpeg4 in avi)".
    place: String,
    /// What to do about what is lost.
    advice: &'static str,
    strict: bool,
    time_base: Rational,
    outcomes: BTreeMap<Fact, (String, Outcome)>,
    first: Option<(Constants, Facts)>,
    /// The latest frame's, and what of it differs from the first frame's.
    latest: Option<(Constants, Vec<(Fact, String)>)>,
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
                if !self.outcomes.contains_key(fact) && !self.is_changed_from_unsaid(*fact, value, samples) {
                    news.facts.insert(*fact, value.clone());
                }
            }
            let differs = self.differences(&facts, samples);
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
                from: self.first.as_ref().map_or_else(String::new, |(_, facts)| {
                    facts
                        .get(fact)
                        .cloned()
                        .unwrap_or_else(|| fact::unsaid(*fact).to_owned())
                }),
                to: value.clone(),
                seconds: metadata.pts.map(|pts| pts as f64 * self.time_base.to_f64()),
                frame: self.frames - 1,
                frames: 0,
            });
            change.frames += 1;
        }
        news
    }

    /// True if a fact that all frames should share appears after frames without it: a change, which is
    /// reported as one.
    fn is_changed_from_unsaid(&self, fact: Fact, value: &str, samples: Samples) -> bool {
        self.first.is_some() && fact.is_constant() && !fact::is_usual(fact, value, samples)
    }

    /// What of `facts` is not as in the first frame.
    fn differences(&self, facts: &Facts, samples: Samples) -> Vec<(Fact, String)> {
        let Some((_, first)) = &self.first else {
            return Vec::new();
        };
        let both: BTreeSet<Fact> = first.keys().chain(facts.keys()).copied().collect();
        both.into_iter()
            .filter(|fact| fact.is_constant())
            .filter_map(|fact| {
                let (before, now) = (first.get(&fact), facts.get(&fact));
                let same = match (before, now) {
                    (Some(before), now) => {
                        // A block is repeated now and then only; that it is not there says nothing.
                        let repeated = now.is_none() && !fact.is_stated_by_each_frame();
                        repeated || fact::survives(fact, before, now.map(String::as_str), samples)
                    }
                    (None, Some(now)) => fact::is_usual(fact, now, samples),
                    (None, None) => true,
                };
                let now = now.map_or_else(|| fact::unsaid(fact).to_owned(), Clone::clone);
                (!same).then_some((fact, now))
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
        let lost: Vec<String> = self
            .outcomes
            .iter()
            .filter(|(_, (_, outcome))| *outcome == Outcome::Lost)
            .map(|(fact, (value, _))| match value.as_str() {
                "" => fact.word().to_owned(),
                value => format!("{} ({value})", fact.word()),
            })
            .collect();
        let mut sentences = Vec::new();
        if !lost.is_empty() {
            sentences.push(format!(
                "not kept in {}: {}; {}",
                self.place,
                lost.join(", "),
                if self.is_of_stills() {
                    OF_STILLS
                } else {
                    self.advice
                }
            ));
        }
        let changes: Vec<String> = self
            .changes
            .iter()
            .filter(|(fact, _)| !self.settled.contains(fact))
            .map(|(fact, change)| {
                let at = change.seconds.map_or_else(
                    || format!("from frame {}", change.frame),
                    |s| format!("from {s:.3} s"),
                );
                let frames = if change.frames == 1 { "frame" } else { "frames" };
                format!(
                    "{at} on, {} {frames} with {} {} instead of {}",
                    change.frames,
                    fact.word(),
                    or_nothing(&change.to),
                    or_nothing(&change.from)
                )
            })
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
            notes.push_str(&format!(
                ", {} brought from {} to {} range",
                counted(change.frames, "frame"),
                change.to,
                change.from
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
        let mut is_new = false;
        for (&fact, value) in &facts {
            let outcome = match judge(fact, value, samples) {
                Outcome::Lost if fact::is_usual(fact, value, samples) => Outcome::Carried,
                outcome => outcome,
            };
            let known = self.ledger.outcomes.get(&fact);
            if known.is_none_or(|(_, known)| *known != outcome && *known == Outcome::Carried) {
                self.ledger.account(fact, value, outcome);
                is_new = true;
            }
        }
        match self.ledger.refusal() {
            Some(refusal) if is_new => Err(refusal),
            _ => Ok(()),
        }
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

fn or_nothing(value: &str) -> &str {
    if value.is_empty() { "another one" } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::ColourModel;

    const SAMPLES: Samples = Samples {
        model: ColourModel::Yuv,
        subsampled: true,
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
}
