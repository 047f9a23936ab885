//! The guide of an account at a portal: the programmes of all channels in one answer.
//!
//! The portal names channels by their ids. Their keys, names and logos are those of the streams that were imported.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::time::Duration;

use domain::account::Account;
use domain::catchup::TIME_ZONE;
use domain::guide::source::GuideSourceKind;
use domain::portal::{
    GUIDE_CHANNEL_BYTES_MAX, GUIDE_HOURS, PortalError, PortalListParser, PortalQuestion, PortalStreamAddress,
    guide_key, read_programmes,
};
use domain::stream::Stream;
use jiff::tz::TimeZone;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::download::{Download, download};
use super::error::GuideError;
use super::input::{ContentMark, GuideContent, GuideContext, GuideInput, GuideSink};
use super::progress::GuidePhase;
use crate::addresses::AccountAddresses;
use crate::fetch::Unpacked;
use crate::portals::{PortalClient, PortalFailure, PortalRequest};

/// Longest wait for the first import of the channels of an account.
const FIRST_IMPORT_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two looks for it.
const FIRST_IMPORT_PERIOD: Duration = Duration::from_millis(200);
/// Number of bytes that are read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// The guide of a source whose account is at a portal.
pub(super) struct PortalInput {
    context: GuideContext,
    account: Arc<Account>,
}

/// A channel that was imported.
struct KnownChannel {
    key: String,
    name: String,
    logo: Option<String>,
}

/// The programmes that one answer had.
enum Answer {
    Unchanged(ContentMark),
    Read { mark: ContentMark, n_programmes: u64 },
}

impl PortalInput {
    /// Returns the input of a source of a portal; `None` for every other source.
    pub(super) fn from_context(context: &GuideContext) -> Option<Self> {
        let source = &context.source;
        let account = source.account.filter(|_| source.kind == GuideSourceKind::Panel)?;
        let account = context.models.accounts.load().get(account.0).cloned()?;
        account.list.portal()?;
        Some(Self { context: context.clone(), account })
    }

    /// Returns the channels by their ids at the portal. A new account is given time for its first import.
    fn channels(&self) -> Result<HashMap<String, KnownChannel>, GuideError> {
        let (models, id) = (&self.context.models, self.account.id);
        let until = Instant::now() + FIRST_IMPORT_TIMEOUT;
        while models.refreshes.load().get(id.0).is_none() && Instant::now() < until {
            // A sleep begins on the runtime, not on this thread.
            self.context.wait(async { sleep(FIRST_IMPORT_PERIOD).await })?;
        }
        let mut channels = HashMap::new();
        models.store.collection::<Stream>().for_each_of(u64::from(id.0), |stream: Stream| {
            let address = PortalStreamAddress::parse(&stream.provider.url).filter(|_| !stream.is_stale());
            if let Some(PortalStreamAddress { id: channel, .. }) = address {
                let provider = stream.provider;
                let key = provider.tvg_id.unwrap_or_else(|| guide_key(id, &channel));
                channels.insert(channel, KnownChannel { key, name: provider.name, logo: provider.logo });
            }
        })?;
        if channels.is_empty() { Err(GuideError::NoChannels) } else { Ok(channels) }
    }

    /// Asks for the guide of some hours. A token that has ended is renewed once.
    fn ask(
        &self,
        client: &PortalClient,
        hours: u32,
        channels: &HashMap<String, KnownChannel>,
        sink: &mut dyn GuideSink,
    ) -> Result<Answer, GuideError> {
        let question = PortalQuestion::Guide { hours };
        let wait_for = || self.context.wait(client.request(&question))?.map_err(guide_error);
        let request = wait_for()?;
        let failure = match self.receive(&request, channels, sink)? {
            Err(failure) if failure.is_unauthorized() => failure,
            answered => return answered.map_err(guide_error),
        };
        self.context.wait(client.list_refused(&request))?.map_err(|_| guide_error(failure))?;
        self.receive(&wait_for()?, channels, sink)?.map_err(guide_error)
    }

    /// Downloads the answer to a question, and passes its programmes to the sink.
    fn receive(
        &self,
        request: &PortalRequest,
        channels: &HashMap<String, KnownChannel>,
        sink: &mut dyn GuideSink,
    ) -> Result<Result<Answer, PortalFailure>, GuideError> {
        let mut context = self.context.clone();
        context.fetch = context.fetch.for_account(&self.account);
        let done = {
            let _turn = context.wait(context.fetch.turn(self.account.id))?;
            download(&context, &request.url, &request.headers, request.reach, sink)
        };
        let (file, n_bytes, mark) = match done {
            Ok(Download::Unchanged(mark)) => return Ok(Ok(Answer::Unchanged(mark))),
            Ok(Download::New { file, n_bytes, mark }) => (file, n_bytes, mark),
            Err(GuideError::Fetch(error)) => return Ok(Err(error.into())),
            Err(error) => return Err(error),
        };
        let read = self.read((file, n_bytes), channels, sink)?;
        Ok(read.map(|n_programmes| Answer::Read { mark, n_programmes }).map_err(PortalFailure::Portal))
    }

    /// Passes the programmes of an answer to the sink. Returns their number.
    fn read(
        &self,
        (file, n_bytes): (File, u64),
        channels: &HashMap<String, KnownChannel>,
        sink: &mut dyn GuideSink,
    ) -> Result<Result<u64, PortalError>, GuideError> {
        sink.progress(GuidePhase::Parsing, 0)?;
        let mut bytes = Unpacked::new(BufReader::new(file), self.context.unpacked_bytes_max)?;
        let mut parser = PortalListParser::new(GUIDE_CHANNEL_BYTES_MAX);
        let mut into = Receiver { channels, sink, named: HashSet::new(), n_programmes: 0, failed: Ok(()) };
        let (zone, mut buffer, mut n_read) = (self.zone(), vec![0; BUFFER_BYTES], 0_u64);
        loop {
            let n = bytes.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            parser.push(&buffer[..n], &mut |it| into.element(it, &zone));
            std::mem::replace(&mut into.failed, Ok(()))?;
            n_read += n as u64;
            let percent = n_read.saturating_mul(100) / n_bytes.max(1);
            into.sink.progress(GuidePhase::Parsing, u8::try_from(percent.min(100)).unwrap_or(100))?;
        }
        let end = parser.finish(&mut |it| into.element(it, &zone));
        into.failed?;
        Ok(end.map(|_| into.n_programmes))
    }

    /// Returns the zone of times that state none: that of the source, else the one in which the device asks.
    fn zone(&self) -> TimeZone {
        let of_account = || self.account.custom_properties.get(TIME_ZONE).and_then(Value::as_str);
        let name = self.context.source.time_zone.as_deref().or_else(of_account);
        name.and_then(|it| TimeZone::get(it).ok()).unwrap_or(TimeZone::UTC)
    }
}

/// Passes programmes of known channels to a sink.
struct Receiver<'a> {
    channels: &'a HashMap<String, KnownChannel>,
    sink: &'a mut dyn GuideSink,
    /// The channels that the sink knows.
    named: HashSet<&'a str>,
    n_programmes: u64,
    failed: Result<(), GuideError>,
}

impl Receiver<'_> {
    fn element(&mut self, element: domain::panel::Element<'_>, zone: &TimeZone) {
        let n_skipped = read_programmes(element, zone, &mut |channel, programme| {
            // Channels that were not imported have no guide.
            let Some((id, known)) = self.channels.get_key_value(channel) else { return };
            if self.failed.is_ok() && self.named.insert(id) {
                let names = std::slice::from_ref(&known.name);
                self.failed = self.sink.channel(&known.key, names, known.logo.as_deref());
            }
            if self.failed.is_ok() {
                self.failed = self.sink.programme(&known.key, &programme);
                self.n_programmes += 1;
            }
        });
        self.sink.skipped(n_skipped);
    }
}

impl GuideInput for PortalInput {
    fn run(&mut self, sink: &mut dyn GuideSink) -> Result<GuideContent, GuideError> {
        sink.progress(GuidePhase::Fetching, 0)?;
        if !self.account.is_active {
            return Err(GuideError::NoPanel);
        }
        let channels = self.channels()?;
        let account = &self.account;
        let place = AccountAddresses::new(self.context.models.clone()).portal_place(account);
        let profile = account.default_profile();
        let client = profile
            .zip(place)
            .and_then(|(profile, place)| PortalClient::new(&self.context.fetch, account, profile, place));
        let client = client.ok_or(GuideError::NoPanel)?;
        let mut last = GuideError::Empty;
        for hours in GUIDE_HOURS {
            match self.ask(&client, hours, &channels, sink) {
                Ok(Answer::Unchanged(mark)) => return Ok(GuideContent::Unchanged(mark)),
                Ok(Answer::Read { mark, n_programmes: 1.. }) => return Ok(GuideContent::Whole(mark)),
                Ok(Answer::Read { .. }) => last = GuideError::Empty,
                Err(error) if is_too_much(&error) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

/// Returns whether the portal may be able to send a shorter guide.
fn is_too_much(error: &GuideError) -> bool {
    match error {
        GuideError::Service(_) | GuideError::BrokenOff(_) | GuideError::Unread(_) => true,
        GuideError::Fetch(error) => error.is_answer() || error.is_temporary(),
        _ => false,
    }
}

fn guide_error(failure: PortalFailure) -> GuideError {
    match failure {
        PortalFailure::Fetch(error) => GuideError::Fetch(error),
        // Asking again would not help.
        failure if failure.is_refusal() => GuideError::Refused(failure.to_string()),
        failure => GuideError::Service(failure.to_string()),
    }
}
