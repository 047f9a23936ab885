//! Reads the counters that the gateway already has.

use std::collections::{BTreeMap, HashMap};
use std::sync::Weak;

use actors::{
    ChannelStatus, Recorder, SlotsSnapshot, Switchboard, System, Target, TimeShift, Vod, VodSessionInfo,
};
use domain::account::Account;
use domain::history::HistorySubject;
use domain::history::meter::{Reading, SlotReading, SourceReading, SourceState, Totals, ViewerReading};
use domain::ids::{AccountId, ProfileId, UserId};
use storage::Models;
use uuid::Uuid;

use crate::slots;

/// The parts of the gateway whose counters are read.
pub struct HistoryParts {
    pub models: Models,
    pub switchboard: Switchboard,
    pub vod: Vod,
    pub time_shift: TimeShift,
    pub recorder: Recorder,
    /// Weak, because a history must not keep the actors running.
    pub system: Weak<System>,
}

impl HistoryParts {
    /// Reads all counters of this node. `None` if the live channels do not answer in time, or the system has stopped.
    pub(super) async fn read(&self, has_users: bool) -> Option<Reading> {
        let statuses = self.switchboard.overview().await.ok()?;
        let system = self.system.upgrade()?;
        let (counts, slots) = (system.counts(), system.slots());
        let failures = system.health().take_failures();
        drop(system);
        let failures = failures.into_iter().map(|(id, n)| (HistorySubject::Stream(id), n)).collect();
        let mut reading = Reading { failures, ..Reading::default() };
        self.add_slots(&slots, &mut reading);
        let subjects = Subjects::new(&self.models, has_users);
        for status in statuses.iter().filter_map(|it| it.status.as_ref()) {
            subjects.add_channel(status, &mut reading);
        }
        for session in self.vod.all_sessions().iter().chain(&self.time_shift.sessions()) {
            subjects.add_session(session, &mut reading);
        }
        reading.gateway = Totals {
            bytes_in: counts.bytes_in.saturating_add(counts.vod_bytes_in),
            bytes_out: counts.bytes_out.saturating_add(counts.vod_bytes_out),
            failovers: counts.failovers,
            losses: counts.losses(),
            recording_bytes: self.recording_bytes(),
            ..reading.gateway
        };
        Some(reading)
    }

    /// Adds the slots of each active account, and their sum.
    fn add_slots(&self, slots: &SlotsSnapshot, reading: &mut Reading) {
        let small = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        let accounts = self.models.accounts.load();
        let (mut n_used, mut limit) = (0_u32, Some(0_u32));
        for account in accounts.iter().filter(|it| it.is_active && !it.is_custom()) {
            let own = SlotReading {
                n_used: small(slots::n_used(slots, |it, _| it == account.id)),
                limit: limit_of_account(slots, account).unwrap_or_default(),
            };
            n_used = n_used.saturating_add(own.n_used);
            limit = limit.filter(|_| own.limit > 0).map(|it| it.saturating_add(own.limit));
            reading.accounts.push((HistorySubject::Account(account.id), own));
        }
        reading.gateway.slots = SlotReading { n_used, limit: limit.unwrap_or_default() };
    }

    /// Returns the size of the recordings that have files on this node.
    fn recording_bytes(&self) -> u64 {
        let running: BTreeMap<_, _> = self.recorder.running().into_iter().collect();
        let Some(folder) = self.recorder.folder() else { return 0 };
        let recordings = self.models.recordings.load();
        let files = recordings.iter().filter_map(|it| {
            let file = it.file.as_ref().filter(|it| folder.has(it))?;
            Some(running.get(&it.id).copied().unwrap_or_default().max(file.bytes))
        });
        files.fold(0, u64::saturating_add)
    }
}

/// Returns the sum of the limits of an account; `None` if one of its profiles has none.
fn limit_of_account(slots: &SlotsSnapshot, account: &Account) -> Option<u32> {
    let profiles = account.profiles.iter().filter(|it| it.is_active);
    let limits = profiles.map(|it| slots::limit(slots, account, it).filter(|it| *it > 0));
    limits.sum::<Option<u32>>()
}

/// The records behind what counters name.
struct Subjects<'a> {
    models: &'a Models,
    accounts: HashMap<ProfileId, AccountId>,
    /// Users by name. Empty if nothing of users is kept.
    users: HashMap<String, UserId>,
}

impl<'a> Subjects<'a> {
    fn new(models: &'a Models, has_users: bool) -> Self {
        let accounts = models.accounts.load();
        let profiles = accounts.iter().flat_map(|it| it.profiles.iter().map(|profile| (profile.id, it.id)));
        let users = models.users.load();
        let users = users.iter().filter(|_| has_users).map(|it| (it.username.clone(), it.id)).collect();
        Self { models, accounts: profiles.collect(), users }
    }

    fn account(&self, profile: ProfileId) -> Option<HistorySubject> {
        self.accounts.get(&profile).map(|it| HistorySubject::Account(*it))
    }

    fn channel(&self, uuid: Uuid) -> Option<HistorySubject> {
        let channels = self.models.channels.load();
        channels.one_by("uuid", uuid.as_bytes()).map(|it| HistorySubject::Channel(it.id))
    }

    fn user(&self, name: Option<&str>) -> Option<HistorySubject> {
        self.users.get(name?).map(|it| HistorySubject::User(*it))
    }

    fn add_channel(&self, status: &ChannelStatus, reading: &mut Reading) {
        let channel = match status.target {
            Target::Channel(uuid) => self.channel(uuid),
            _ => None,
        };
        // The node that has the source counts its account.
        let has_source = status.node.as_ref().is_none_or(|it| it.is_origin);
        let account = status.profile.filter(|_| has_source).and_then(|it| self.account(it));
        // A channel that starts again has other counters.
        let run = status.uuid.as_u128() ^ u128::from(status.started_at.cast_unsigned());
        reading.sources.push(SourceReading {
            key: ("channel", run),
            subjects: channel.into_iter().chain(account).collect(),
            stream: status.playing.filter(|_| has_source).map(HistorySubject::Stream),
            bytes_in: status.bytes_in,
            failovers: status.n_failovers,
            losses: status.n_losses,
            state: state(status),
        });
        for client in &status.clients {
            let user = self.user(client.user.as_deref());
            reading.viewers.push(ViewerReading {
                key: ("client", u128::from(client.id)),
                subjects: channel.into_iter().chain(account).chain(user).collect(),
                bytes_out: client.bytes,
            });
        }
    }

    fn add_session(&self, session: &VodSessionInfo, reading: &mut Reading) {
        let account = session.profile.as_ref().map(|it| HistorySubject::Account(it.account));
        let kind = if matches!(session.title.target, Target::Archive(_)) { "past" } else { "film" };
        let key = (kind, u128::from(session.id));
        reading.sources.push(SourceReading {
            key,
            subjects: account.into_iter().collect(),
            stream: None,
            bytes_in: session.bytes_read,
            failovers: 0,
            losses: 0,
            state: SourceState::Other,
        });
        // A session without a request is one that may continue.
        if session.n_requests > 0 || session.has_slot {
            let user = self.user(session.viewer.user.as_deref());
            reading.viewers.push(ViewerReading {
                key: ("viewer", key.1 ^ (u128::from(kind == "past") << 64)),
                subjects: account.into_iter().chain(user).collect(),
                bytes_out: session.bytes_sent,
            });
        }
    }
}

/// Returns whether the viewers of a channel see something. The first opening of a channel is not a failure.
fn state(status: &ChannelStatus) -> SourceState {
    match status.state {
        "playing" | "switching" => SourceState::Playing,
        "resting" => SourceState::Failing,
        "opening" if status.since_first_play.is_some() || status.n_losses > 0 => SourceState::Failing,
        _ => SourceState::Other,
    }
}
