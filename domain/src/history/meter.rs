//! Makes samples from counters that are read at intervals.

use std::collections::{BTreeMap, BTreeSet};

use super::block::Block;
use super::{HistorySample, HistorySubject};

/// Maximum number of subjects of a kind in memory, until the busiest are written.
const SUBJECTS_MAX: usize = 4_096;

/// One reading of all counters.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub gateway: Totals,
    pub sources: Vec<SourceReading>,
    pub viewers: Vec<ViewerReading>,
    pub accounts: Vec<(HistorySubject, SlotReading)>,
}

/// Counters of the whole gateway.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub failovers: u64,
    pub losses: u64,
    pub slots: SlotReading,
    pub recording_bytes: u64,
}

/// Slots in use, and their limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlotReading {
    pub n_used: u32,
    /// 0 without a limit.
    pub limit: u32,
}

/// Identifies what has counters of its own. A counter begins at zero with a new key.
pub type CounterKey = (&'static str, u128);

/// Counters of a live channel or of a film.
#[derive(Debug, Clone)]
pub struct SourceReading {
    pub key: CounterKey,
    /// The channel and the account.
    pub subjects: Vec<HistorySubject>,
    pub bytes_in: u64,
    pub failovers: u64,
    pub losses: u64,
    pub state: SourceState,
}

/// Whether viewers see something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceState {
    Playing,
    Failing,
    /// Nobody knows, as of films.
    Other,
}

/// Counters of a viewer.
#[derive(Debug, Clone)]
pub struct ViewerReading {
    pub key: CounterKey,
    /// The channel, the account and the user.
    pub subjects: Vec<HistorySubject>,
    pub bytes_out: u64,
}

/// Compares each reading with the one before.
#[derive(Debug, Default)]
pub struct Meter {
    /// Bytes, failovers and losses of the last reading; `None` before the first.
    before: Option<BTreeMap<CounterKey, [u64; 3]>>,
}

/// Key of the counters of the gateway.
const TOTALS_IN: CounterKey = ("gateway", 0);
const TOTALS_OUT: CounterKey = ("gateway", 1);

impl Meter {
    /// Adds what happened since the last reading to a block. The first reading adds nothing.
    pub fn read(&mut self, reading: &Reading, seconds: u32, block: &mut Block) {
        let Self { before } = self;
        let mut now = BTreeMap::new();
        let mut grown = |key: CounterKey, counters: [u64; 3]| {
            now.insert(key, counters);
            let last = before.as_ref().map(|it| it.get(&key).copied().unwrap_or_default());
            // A counter that decreased has begun again.
            let growth = |i: usize, last: [u64; 3]| counters[i].checked_sub(last[i]).unwrap_or(counters[i]);
            last.map_or([0; 3], |last| [growth(0, last), growth(1, last), growth(2, last)])
        };
        let mut samples = Samples { seconds, by_subject: BTreeMap::new() };
        samples.add_gateway(reading, &mut grown);
        for it in &reading.sources {
            samples.add_source(it, grown(it.key, [it.bytes_in, it.failovers, it.losses]));
        }
        for it in &reading.viewers {
            samples.add_viewer(it, grown(it.key, [it.bytes_out, 0, 0])[0]);
        }
        for (subject, slots) in &reading.accounts {
            samples.add_slots(*subject, *slots);
        }
        if before.replace(now).is_some() && seconds > 0 {
            samples.add_to(block);
        }
    }
}

/// The samples of one reading.
struct Samples {
    seconds: u32,
    by_subject: BTreeMap<HistorySubject, HistorySample>,
}

impl Samples {
    fn sample(&mut self, subject: HistorySubject) -> &mut HistorySample {
        let seconds = self.seconds;
        self.by_subject.entry(subject).or_insert(HistorySample { seconds, ..HistorySample::default() })
    }

    fn add_gateway(&mut self, reading: &Reading, grown: &mut dyn FnMut(CounterKey, [u64; 3]) -> [u64; 3]) {
        let totals = &reading.gateway;
        let [bytes_in, failovers, losses] =
            grown(TOTALS_IN, [totals.bytes_in, totals.failovers, totals.losses]);
        let [bytes_out, ..] = grown(TOTALS_OUT, [totals.bytes_out, 0, 0]);
        let sample = self.sample(HistorySubject::Gateway);
        (sample.bytes_in, sample.bytes_out) = (bytes_in, bytes_out);
        (sample.failovers, sample.losses) = (small(failovers), small(losses));
        sample.viewers_max = small(reading.viewers.len() as u64);
        sample.recording_bytes = totals.recording_bytes;
        self.add_slots(HistorySubject::Gateway, totals.slots);
    }

    fn add_source(&mut self, source: &SourceReading, [bytes_in, failovers, losses]: [u64; 3]) {
        let seconds = self.seconds;
        for subject in &source.subjects {
            let sample = self.sample(*subject);
            sample.bytes_in = sample.bytes_in.saturating_add(bytes_in);
            sample.failovers = sample.failovers.saturating_add(small(failovers));
            sample.losses = sample.losses.saturating_add(small(losses));
            match source.state {
                SourceState::Playing => sample.playing_seconds = seconds,
                SourceState::Failing => sample.failing_seconds = seconds,
                SourceState::Other => {}
            }
        }
    }

    fn add_viewer(&mut self, viewer: &ViewerReading, bytes_out: u64) {
        // A viewer of several sources of one account is one viewer of it.
        for subject in viewer.subjects.iter().collect::<BTreeSet<_>>() {
            let sample = self.sample(*subject);
            sample.bytes_out = sample.bytes_out.saturating_add(bytes_out);
            sample.viewers_max = sample.viewers_max.saturating_add(1);
        }
    }

    fn add_slots(&mut self, subject: HistorySubject, slots: SlotReading) {
        let sample = self.sample(subject);
        (sample.slots_max, sample.slots_limit) = (slots.n_used, slots.limit);
    }

    fn add_to(self, block: &mut Block) {
        let seconds = u64::from(self.seconds);
        let kbps = |bytes: u64| small(bytes.saturating_mul(8) / 1_000 / seconds.max(1));
        for (subject, mut sample) in self.by_subject {
            (sample.peak_in_kbps, sample.peak_out_kbps) = (kbps(sample.bytes_in), kbps(sample.bytes_out));
            sample.viewer_seconds = u64::from(sample.viewers_max) * seconds;
            sample.slot_seconds = u64::from(sample.slots_max) * seconds;
            block.add(subject, &sample, SUBJECTS_MAX);
        }
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::block::Resolution;
    use crate::ids::{AccountId, ChannelId, UserId};

    const CHANNEL: HistorySubject = HistorySubject::Channel(ChannelId(7));
    const ACCOUNT: HistorySubject = HistorySubject::Account(AccountId(1));
    const USER: HistorySubject = HistorySubject::User(UserId(3));

    /// A channel with one viewer that has received and sent this many bytes.
    fn reading(bytes_in: u64, bytes_out: u64, state: SourceState) -> Reading {
        let slots = SlotReading { n_used: 1, limit: 2 };
        let gateway = Totals { bytes_in, bytes_out, slots, recording_bytes: 9, ..Totals::default() };
        let (key, subjects) = (("channel", 7), vec![CHANNEL, ACCOUNT]);
        let source =
            SourceReading { key, subjects, bytes_in, failovers: bytes_in / 10_000, losses: 0, state };
        let viewer = ViewerReading { key: ("client", 1), subjects: vec![CHANNEL, USER], bytes_out };
        Reading { gateway, sources: vec![source], viewers: vec![viewer], accounts: vec![(ACCOUNT, slots)] }
    }

    #[test]
    fn samples_have_what_counters_grew_by_and_counters_that_begin_again_count_from_zero() {
        let (mut meter, mut block) = (Meter::default(), Block::new(0, Resolution::FINE));
        meter.read(&reading(9_000, 5_000, SourceState::Playing), 10, &mut block);
        assert!(block.samples().is_empty(), "the first reading is only the base");
        meter.read(&reading(19_000, 6_000, SourceState::Playing), 10, &mut block);
        meter.read(&reading(2_500, 500, SourceState::Failing), 10, &mut block);
        let channel = block.samples()[&CHANNEL];
        let expected = HistorySample {
            seconds: 20,
            bytes_in: 12_500,
            bytes_out: 1_500,
            peak_in_kbps: 8,
            peak_out_kbps: 0,
            viewer_seconds: 20,
            viewers_max: 1,
            playing_seconds: 10,
            failing_seconds: 10,
            failovers: 1,
            ..HistorySample::default()
        };
        assert_eq!(channel, expected);
        let whole = block.samples()[&HistorySubject::Gateway];
        assert_eq!((whole.bytes_in, whole.bytes_out, whole.viewer_seconds), (12_500, 1_500, 20));
        assert_eq!((whole.slots_max, whole.slots_limit, whole.slot_seconds), (1, 2, 20));
        assert_eq!(whole.recording_bytes, 9);
        let account = block.samples()[&ACCOUNT];
        assert_eq!((account.bytes_in, account.slot_seconds, account.slots_limit), (12_500, 20, 2));
        assert_eq!((block.samples()[&USER].bytes_in, block.samples()[&USER].bytes_out), (0, 1_500));
    }
}
