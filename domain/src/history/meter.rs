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
    /// The streams that failed to open or were lost since the last reading, with the number.
    pub failures: Vec<(HistorySubject, u32)>,
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
    /// The stream that plays.
    pub stream: Option<HistorySubject>,
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
    /// The stream that each source plays or played last.
    streams: BTreeMap<CounterKey, HistorySubject>,
}

/// Key of the counters of the gateway.
const TOTALS_IN: CounterKey = ("gateway", 0);
const TOTALS_OUT: CounterKey = ("gateway", 1);

impl Meter {
    /// Adds what happened since the last reading to a block. The first reading adds nothing.
    pub fn read(&mut self, reading: &Reading, seconds: u32, block: &mut Block) {
        let Self { before, streams } = self;
        let (mut now, mut now_streams) = (BTreeMap::new(), BTreeMap::new());
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
            let counters = grown(it.key, [it.bytes_in, it.failovers, it.losses]);
            samples.add_source(it, counters);
            let last = streams.get(&it.key).copied();
            samples.add_stream(it, last, counters);
            now_streams.extend(it.stream.or(last).map(|stream| (it.key, stream)));
        }
        for (stream, n) in &reading.failures {
            let sample = samples.sample(*stream);
            sample.losses = sample.losses.saturating_add(*n);
        }
        for it in &reading.viewers {
            samples.add_viewer(it, grown(it.key, [it.bytes_out, 0, 0])[0]);
        }
        for (subject, slots) in &reading.accounts {
            samples.add_slots(*subject, *slots);
        }
        *streams = now_streams;
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

    /// Adds the growth of a source to the stream that it plays, and what viewers miss to the stream that it played last.
    fn add_stream(
        &mut self,
        source: &SourceReading,
        last: Option<HistorySubject>,
        [bytes_in, failovers, _]: [u64; 3],
    ) {
        let seconds = self.seconds;
        // Of several failovers between two readings, only the first is known to lead away from the last stream.
        if let Some(last) = last.filter(|_| failovers > 0) {
            let sample = self.sample(last);
            sample.failovers = sample.failovers.saturating_add(1);
        }
        let Some(stream) = source.stream.or(last) else { return };
        let sample = self.sample(stream);
        sample.bytes_in = sample.bytes_in.saturating_add(bytes_in);
        match source.state {
            SourceState::Playing => sample.playing_seconds = seconds,
            SourceState::Failing => sample.failing_seconds = seconds,
            SourceState::Other => {}
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
    use crate::ids::{AccountId, ChannelId, StreamId, UserId};

    const CHANNEL: HistorySubject = HistorySubject::Channel(ChannelId(7));
    const ACCOUNT: HistorySubject = HistorySubject::Account(AccountId(1));
    const USER: HistorySubject = HistorySubject::User(UserId(3));

    /// A channel with one viewer that has received and sent this many bytes.
    fn reading(bytes_in: u64, bytes_out: u64, state: SourceState) -> Reading {
        let slots = SlotReading { n_used: 1, limit: 2 };
        let gateway = Totals { bytes_in, bytes_out, slots, recording_bytes: 9, ..Totals::default() };
        let (key, subjects) = (("channel", 7), vec![CHANNEL, ACCOUNT]);
        let source = SourceReading {
            key,
            subjects,
            stream: None,
            bytes_in,
            failovers: bytes_in / 10_000,
            losses: 0,
            state,
        };
        let viewer = ViewerReading { key: ("client", 1), subjects: vec![CHANNEL, USER], bytes_out };
        let accounts = vec![(ACCOUNT, slots)];
        Reading { gateway, sources: vec![source], viewers: vec![viewer], accounts, failures: Vec::new() }
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

    const ONE: HistorySubject = HistorySubject::Stream(StreamId(1));
    const TWO: HistorySubject = HistorySubject::Stream(StreamId(2));

    #[test]
    fn a_stream_has_its_bytes_and_times_and_the_failovers_away_from_it() {
        use SourceState::{Failing, Other, Playing};
        let (mut meter, mut block) = (Meter::default(), Block::new(0, Resolution::FINE));
        // The stream that plays, its state, the bytes and failovers of the channel, and the failures of streams.
        for (stream, state, bytes_in, failovers, failures) in [
            (Some(ONE), Playing, 1_000, 0, &[][..]),
            (Some(ONE), Playing, 3_000, 0, &[]),
            (None, Failing, 3_500, 0, &[(ONE, 2)]),
            (Some(TWO), Playing, 4_500, 1, &[]),
            (Some(ONE), Playing, 5_500, 3, &[(TWO, 1)]),
            (None, Other, 5_500, 3, &[]),
        ] {
            let key = ("channel", 7);
            let subjects = vec![CHANNEL];
            let source = SourceReading { key, subjects, stream, bytes_in, failovers, losses: 0, state };
            let reading =
                Reading { sources: vec![source], failures: failures.to_vec(), ..Reading::default() };
            meter.read(&reading, 10, &mut block);
        }
        let values = |subject| {
            let it: HistorySample = block.samples()[&subject];
            (it.bytes_in, it.playing_seconds, it.failing_seconds, it.failovers, it.losses)
        };
        assert_eq!(values(ONE), (3_500, 20, 10, 1, 2));
        assert_eq!(values(TWO), (1_000, 10, 0, 1, 1));
        assert_eq!(values(CHANNEL), (4_500, 30, 10, 3, 0));
    }
}
