//! Rules as users see them: guides that follow each other, and the recordings that result.

mod cache;
mod conditions;
mod episodes;
mod moves;
mod plans;
mod shared;
mod texts;
mod weekly;

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use uuid::Uuid;

use super::*;
use crate::guide::matching::Quality;
use crate::guide::programme::{EpisodeNumber, LocalText, Programme, to_xml};
use crate::ids::{RecordingId, RecordingRuleId};
use crate::recording::Recording;

const HOUR: i64 = 3600;

/// A Monday, 12:00 in UTC, in seconds.
const NOW: i64 = 1_795_435_200;

/// Rules, a guide and the recordings that followed from them so far.
struct Stage {
    rules: Vec<Arc<RecordingRule>>,
    recordings: Vec<Arc<Recording>>,
    memories: HashMap<RecordingRuleId, Arc<RuleMemory>>,
    /// Guide channels with their key, their channels and their programmes.
    guide: Vec<(String, Vec<u32>, Vec<Programme>)>,
    /// How much later than the guide says the channels show its programmes, in seconds.
    offset: i64,
    /// Seconds since 1970.
    now: i64,
    zone: TimeZone,
    n_new_max: usize,
}

impl Stage {
    fn new(rules: impl IntoIterator<Item = RecordingRule>) -> Stage {
        Stage {
            rules: rules.into_iter().map(Arc::new).collect(),
            recordings: Vec::new(),
            memories: HashMap::new(),
            guide: Vec::new(),
            offset: 0,
            now: NOW,
            zone: TimeZone::UTC,
            n_new_max: 20_000,
        }
    }

    fn guide(
        mut self,
        key: &str,
        channels: &[u32],
        programmes: impl IntoIterator<Item = Programme>,
    ) -> Stage {
        self.guide.retain(|it| it.0 != key);
        self.guide.push((key.to_owned(), channels.to_vec(), programmes.into_iter().collect()));
        self
    }

    /// Reads the guide, and runs a plan on what was found.
    fn planned<T>(&self, run: impl FnOnce(PlanInput<'_>) -> T) -> T {
        let set = RuleSet::new(self.rules.iter().map(|it| &**it), self.recordings.iter().map(|it| &**it));
        let mut scan = GuideScan::new(&set, self.recordings.iter().map(|it| &**it));
        scan.set_guide_ids(self.guide.iter().map(|it| it.0.as_str()));
        for (key, channels, programmes) in &self.guide {
            let channels: Arc<[ChannelId]> = channels.iter().map(|it| ChannelId(*it)).collect();
            let Some(mut channel) = scan.channel(key, &[], channels) else { continue };
            for it in programmes {
                let mut inner = String::new();
                to_xml(it, &mut inner);
                let id = match self.offset {
                    0 => format!("{key}-{}", it.start),
                    offset => format!("{key}-{}_{offset}", it.start),
                };
                channel.programme(it.start + self.offset, it.stop + self.offset, &inner, || id);
            }
            channel.finish(i64::MIN, i64::MAX);
        }
        let (airings, covered) = scan.finish();
        run(PlanInput {
            rules: &self.rules,
            recordings: &self.recordings,
            memories: &self.memories,
            airings,
            covered: &covered,
            channel: &|id| Some((format!("channel {id}"), Uuid::from_u128(id.0.into()))),
            // Channel 66 belongs to others.
            may_record: &|rule, channel| channel.0 != 66 && rule.takes(channel, None),
            // Channels from 20 on have high definition, those from 40 on more.
            quality: &|channel| match channel.0 {
                40.. => Quality::Ultra,
                20.. => Quality::High,
                _ => Quality::Standard,
            },
            is_in_library: &|_, it| it.sub_title.as_deref() == Some("in the library"),
            padding: (60, 120),
            zone: &self.zone,
            now: self.now * 1000,
            n_new_max: self.n_new_max,
        })
    }

    /// Plans and applies the changes. Returns their number.
    fn evaluate(&mut self) -> usize {
        let changes = self.planned(plan);
        let n = changes.len();
        for change in changes {
            match change {
                PlannedChange::Create(recording) => {
                    let id = RecordingId(self.recordings.iter().map(|it| it.id.0).max().unwrap_or(0) + 1);
                    self.recordings.push(Arc::new(Recording { id, ..*recording }));
                }
                PlannedChange::Update { before, after } => {
                    let at = self.recordings.iter().position(|it| *it == before).unwrap();
                    self.recordings[at] = Arc::new(*after);
                }
                PlannedChange::Remove(recording) => self.recordings.retain(|it| it.id != recording.id),
                PlannedChange::Remember { rule, old } => {
                    let memory = self.memories.entry(rule).or_insert_with(|| Arc::new(RuleMemory::new(rule)));
                    old.into_iter().for_each(|it| Arc::make_mut(memory).add_old(it));
                }
            }
        }
        n
    }

    /// Evaluates, and returns the recordings as `channel@start-end`, in hours from NOW.
    fn scheduled(&mut self) -> Vec<String> {
        self.evaluate();
        self.show()
    }

    /// Returns the preview of the first rule as `channel@start mark reason`, with the start in hours from NOW.
    fn preview(&self) -> Vec<String> {
        let show = |it: MarkedAiring| {
            let hours = (it.airing.start / 1000 - NOW) as f64 / HOUR as f64;
            let channel = it.channel.map_or("-".to_owned(), |it| it.to_string());
            let reason = it.reason.map(|it| format!(" {it:?}")).unwrap_or_default();
            format!("{channel}@{hours} {:?}{reason}", it.mark)
        };
        self.planned(preview).into_iter().map(show).collect()
    }

    fn show(&self) -> Vec<String> {
        let hours = |ms: i64| (ms / 1000 - NOW) as f64 / HOUR as f64;
        let all = self.recordings.iter();
        let mut all: Vec<_> = all.map(|it| (it.start, it)).collect();
        all.sort_by_key(|it| (it.0, it.1.id));
        all.into_iter()
            .map(|(_, it)| format!("{}@{}-{}", it.channel, hours(it.start), hours(it.end)))
            .collect()
    }

    fn edit(&mut self, at: usize, change: impl FnOnce(&mut Recording)) {
        change(Arc::make_mut(&mut self.recordings[at]));
    }
}

fn programme(from: i64, until: i64, title: &str) -> Programme {
    Programme {
        start: NOW + from * HOUR,
        stop: NOW + until * HOUR,
        titles: vec![LocalText::new(title)],
        ..Programme::default()
    }
}

fn episode(from: i64, title: &str, number: u32) -> Programme {
    let value = format!("0.{}.", number - 1);
    let number = EpisodeNumber { system: Some("xmltv_ns".to_owned()), value };
    Programme { episode_numbers: vec![number], ..programme(from, from + 1, title) }
}

fn rule(test: ProgrammeTest) -> RecordingRule {
    RecordingRule {
        id: RecordingRuleId(1),
        list: RuleList::Series,
        name: String::new(),
        enabled: true,
        selection: RuleSelection::Programmes(test),
        channel: None,
        keep: 0,
        quota_bytes: 0,
        padding_before: None,
        padding_after: None,
        priority: 50,
        owner: None,
        created_at: NOW * 1000,
        updated_at: NOW * 1000,
    }
}

fn title(mode: TextMode, text: &str) -> ProgrammeTest {
    ProgrammeTest { title: Some(TextTest { mode, text: text.to_owned() }), ..ProgrammeTest::default() }
}

fn exact(text: &str) -> ProgrammeTest {
    title(TextMode::Exact, text)
}
