//! The candidates of a part of a channel's past.

use uuid::Uuid;

use super::{ActiveServer, Candidate, PlanRecords, Rewrites, SlotPool, TitleCandidate, portal};
use crate::catchup::{Archive, ArchiveTimes};
use crate::channel::Channel;
use crate::egress::{account_headers, reach_of};
use crate::ids::StreamId;
use crate::limits::LimitScope;
use crate::stream::SourceKind;
use crate::stream_profile::Delivery;

/// Why no archive has a part of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveRefusal {
    #[error("the channel has no archive")]
    NoArchive,
    #[error("the archive of the channel goes back {days} days only")]
    TooOld { days: u32 },
    #[error("the programme has not begun")]
    Future,
    #[error("the archive needs an id of the programme, which the guide does not have")]
    NoProgramme,
}

/// A programme of the guide with its name in the archive of its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedProgramme {
    /// In seconds since 1970.
    pub start: i64,
    pub catchup_id: String,
}

/// Returns the candidates for a part of the past of a channel, in the order of its streams: of each whose archive is deep
/// enough, one per active profile of its account, the default profile first. Viewers are redirected if the default stream
/// profile says so.
///
/// # Errors
/// No archive has this part.
pub fn plan_archive(
    channel: &Channel,
    times: ArchiveTimes,
    programme: Option<&ArchivedProgramme>,
    records: &impl PlanRecords,
) -> Result<Vec<TitleCandidate>, ArchiveRefusal> {
    if times.start > times.now {
        return Err(ArchiveRefusal::Future);
    }
    let redirect_without_login = records.default_profile().redirect_without_login;
    let delivery = match records.default_profile().delivery {
        Delivery::Redirect => Delivery::Redirect,
        Delivery::Proxy | Delivery::Command => Delivery::Proxy,
    };
    let mut rewrites = Rewrites::default();
    let (mut candidates, mut deepest, mut lacks_programme) = (Vec::new(), None, false);
    for stream in channel.streams.iter().filter_map(|id| records.stream(*id)) {
        let Some(account) = records.account(stream.account).filter(|it| it.is_active) else { continue };
        if !records.conditions().may_use(&account) {
            continue;
        }
        let Some(archive) = stream.provider.archive.as_deref() else { continue };
        let (refresh, members) = (records.refresh(account.id), records.server_group(&account));
        let server = ActiveServer::from_account(&account, records);
        let portal = portal::address_of(&stream, &account);
        let (address, named_program) = portal.unwrap_or(stream.url()).split_program();
        // Nothing of the account may be fetched around its proxy, and links of portals are never given away.
        let is_proxied = account.proxy.is_some() || portal.is_some();
        let delivery = if is_proxied { Delivery::Proxy } else { delivery };
        let programme = programme.filter(|_| archive.uses_programme());
        // A portal knows the programme by its start.
        let times = match programme {
            Some(programme) if portal.is_some() => ArchiveTimes { start: programme.start, ..times },
            _ => times,
        };
        for profile in account.active_profiles() {
            if portal.is_some() && profile.device.is_none() {
                continue;
            }
            let live = match portal {
                Some(_) => address.clone(),
                None => rewrites.apply(profile, &address),
            };
            let source = archive.source.as_ref().map(|it| rewrites.apply(profile, it));
            let zone = records.zone(&account, profile.id);
            let id = programme.map(|it| it.catchup_id.as_str());
            let Some(url) = archive.address_of(id, &live, source.as_ref(), times, &zone) else {
                lacks_programme |= archive.needs_programme();
                continue;
            };
            deepest = deepest.max(Some(archive.days));
            if times.start < archive.first(times.now) {
                continue;
            }
            let of_account = match portal {
                Some(_) => portal::link_headers(&account),
                None => account_headers(&account, &url),
            };
            let mut headers = stream.headers().over(&of_account);
            if headers.user_agent.is_none() {
                headers.user_agent = records.default_user_agent();
            }
            let (scope, kind) = match portal {
                Some(_) => (LimitScope::Unknown, SourceKind::HttpTs),
                None => (LimitScope::new(&url, &headers), SourceKind::from_url(&url)),
            };
            let candidate = Candidate {
                pool: SlotPool::new(&account, profile, members.clone(), scope),
                // What fails here says nothing about the live stream.
                stream: StreamId(0),
                stream_name: stream.name().to_owned(),
                kind,
                reach: reach_of(&stream, &url, &profile.replace_pattern, &account, refresh.as_deref()),
                headers,
                proxy: account.proxy.clone(),
                certificates: account.certificates.shared(),
                url: server.place(url),
                program: stream.program.or(named_program),
                leaves_still_picture: false,
                profile: delivery,
                redirect_without_login,
                live_form: None,
                details: None,
                command: None,
            };
            let file = file_of(archive, stream.id, times);
            let start = match programme {
                Some(programme) => archive.begins_within(programme.start, times.start),
                None => archive.begins_at(times.start),
            };
            let start = Some(start);
            candidates.push(TitleCandidate { candidate, file, extension: "ts".to_owned(), start });
        }
    }
    match deepest {
        None if lacks_programme => Err(ArchiveRefusal::NoProgramme),
        None => Err(ArchiveRefusal::NoArchive),
        Some(days) if candidates.is_empty() => Err(ArchiveRefusal::TooOld { days }),
        Some(_) => Ok(candidates),
    }
}

/// Returns the number of a part of an archive, which does not change with the login.
fn file_of(archive: &Archive, stream: StreamId, times: ArchiveTimes) -> Uuid {
    let name = format!("archive/{stream}/{:?}/{}/{}", archive.kind, times.start, times.duration);
    Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes())
}
