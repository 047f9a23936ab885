//! The candidates of a film or an episode: the files of all accounts that offer it, each with every account profile that
//! can read it.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{ActiveServer, Candidate, PlanRecords, Rewrites, SlotPool, portal};
use crate::account::{Account, PlaylistLocation};
use crate::drm::DrmSystem;
use crate::egress::{account_headers, reach_of_version};
use crate::ids::{AccountId, StreamId};
use crate::limits::LimitScope;
use crate::playlist::titles::PROTECTION_PROPERTY;
use crate::portal::{PortalStreamAddress, shown_address};
use crate::source_url::SourceUrl;
use crate::stream::{SourceKind, Unplayable};
use crate::stream_profile::Delivery;
use crate::vod::{EpisodeOffer, Relation};

/// A file of a film or an episode that an account offers.
#[derive(Debug, Clone, PartialEq)]
pub struct TitleVersion {
    pub account: AccountId,
    pub kind: TitleFileKind,
    /// The provider's id of the file.
    pub provider_id: String,
    /// The address, if the provider lists addresses instead of ids.
    pub address: Option<SourceUrl>,
    /// Extension of the file, without a dot; empty if unknown.
    pub extension: String,
    /// Its account no longer lists it.
    pub is_stale: bool,
    /// The system that protects it, if its playlist names one.
    pub protection: Option<DrmSystem>,
}

/// The folder of a panel in which a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleFileKind {
    Movie,
    Episode,
}

/// One way to read a film or an episode.
#[derive(Debug, Clone, PartialEq)]
pub struct TitleCandidate {
    pub candidate: Candidate,
    /// Identifies the file. Candidates with the same file send the same bytes.
    pub file: Uuid,
    /// Extension of the file, without a dot; empty if unknown.
    pub extension: String,
    /// Where a part of the past of a channel begins at the provider, in seconds since 1970; `None` for films and episodes.
    pub start: Option<i64>,
}

impl TitleVersion {
    pub fn from_movie(relation: &Relation) -> Self {
        Self {
            account: relation.account,
            kind: TitleFileKind::Movie,
            provider_id: relation.provider_id.clone(),
            address: relation.address.clone(),
            extension: relation.extension.clone(),
            is_stale: relation.is_stale(),
            protection: protection(relation.address.as_ref(), &relation.custom_properties),
        }
    }

    pub fn from_episode(offer: &EpisodeOffer) -> Self {
        Self {
            account: offer.account,
            kind: TitleFileKind::Episode,
            provider_id: offer.provider_id.clone(),
            address: offer.address.clone(),
            extension: offer.extension.clone(),
            is_stale: offer.last_seen.is_some(),
            protection: protection(offer.address.as_ref(), &offer.facts.custom_properties),
        }
    }

    /// Returns the address of the file; `None` if the account has none for it.
    fn url(&self, account: &Account) -> Option<SourceUrl> {
        let extension = if self.extension.is_empty() { "mp4" } else { &self.extension };
        match (&self.address, &account.list) {
            (Some(address), _) => Some(address.clone()),
            (None, PlaylistLocation::Panel(login)) => Some(match self.kind {
                TitleFileKind::Movie => login.movie_url(&self.provider_id, extension),
                TitleFileKind::Episode => login.episode_url(&self.provider_id, extension),
            }),
            (None, _) => None,
        }
    }

    /// Returns the number of the file, which does not change with the login.
    fn file(&self) -> Uuid {
        let folder = match self.kind {
            TitleFileKind::Movie => "movie",
            TitleFileKind::Episode => "series",
        };
        let place = match &self.address {
            // The command of a portal changes.
            Some(address) => shown_address(address),
            None => self.provider_id.clone(),
        };
        let name = format!("{}/{folder}/{place}.{}", self.account, self.extension);
        Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes())
    }
}

/// Returns the system that protects a file of a playlist. Panels list no addresses, and name no system.
fn protection(address: Option<&SourceUrl>, properties: &Map<String, Value>) -> Option<DrmSystem> {
    let name = properties.get(PROTECTION_PROPERTY).filter(|_| address.is_some())?;
    DrmSystem::from_text(name.as_str()?)
}

/// Returns why none of these versions can be played, if all of them are protected.
pub fn title_problem(versions: &[TitleVersion]) -> Option<Unplayable> {
    let mut systems = versions.iter().map(|it| it.protection);
    let first = systems.next()??;
    systems.all(|it| it.is_some()).then_some(match first {
        DrmSystem::Widevine => Unplayable::WIDEVINE,
        DrmSystem::PlayReady => Unplayable::PLAYREADY,
        DrmSystem::FairPlay => Unplayable::FAIRPLAY,
        DrmSystem::ClearKey => Unplayable::CLEARKEY_FILE,
        DrmSystem::Other => Unplayable::OTHER_DRM,
    })
}

/// Returns the candidates for these versions, best first: those that are not stale, then by the priority of their account,
/// then by their health, then in their order; each with the default profile of the account first. A request for a slot
/// takes the first that is free. Inactive accounts and files on this machine are left out, and so are protected files unless
/// viewers are redirected. Viewers are redirected if the default stream profile says so.
pub fn plan_title(name: &str, versions: &[TitleVersion], records: &impl PlanRecords) -> Vec<TitleCandidate> {
    let redirect_without_login = records.default_profile().redirect_without_login;
    let delivery = match records.default_profile().delivery {
        Delivery::Redirect => Delivery::Redirect,
        // Programs would make a stream without ranges of the file.
        Delivery::Proxy | Delivery::Command => Delivery::Proxy,
    };
    let mut rewrites = Rewrites::default();
    let active = versions.iter().filter_map(|version| {
        let account = records.account(version.account).filter(|it| it.is_active)?;
        let account = Some(account).filter(|it| records.conditions().may_use(it))?;
        Some((version, account))
    });
    let mut active: Vec<_> = active.collect();
    active.sort_by_key(|(version, account)| (version.is_stale, std::cmp::Reverse(account.priority)));
    let mut candidates = Vec::new();
    for (version, account) in active {
        let (file, place) = (version.file(), (version.is_stale, std::cmp::Reverse(account.priority)));
        let of_portal = |it: &SourceUrl| account.list.portal().is_some() && PortalStreamAddress::is_one(it);
        let url = version.url(&account).filter(|it| it.is_http() || of_portal(it));
        let Some(original) = url else { continue };
        let is_of_portal = of_portal(&original);
        let (refresh, members) = (records.refresh(account.id), records.server_group(&account));
        let server = ActiveServer::from_account(&account, records);
        // Nothing of the account may be fetched around its proxy, and links of portals are never given away.
        let is_proxied = account.proxy.is_some() || is_of_portal;
        let delivery = if is_proxied { Delivery::Proxy } else { delivery };
        // Only players have the modules of these systems.
        if version.protection.is_some() && delivery != Delivery::Redirect {
            continue;
        }
        for profile in account.active_profiles().filter(|it| !is_of_portal || it.device.is_some()) {
            let (url, mut headers) = match is_of_portal {
                true => (original.clone(), portal::link_headers(&account)),
                false => {
                    let url = rewrites.apply(profile, &original);
                    let headers = account_headers(&account, &url);
                    (url, headers)
                }
            };
            if headers.user_agent.is_none() {
                headers.user_agent = records.default_user_agent();
            }
            let (scope, kind) = match is_of_portal {
                true => (LimitScope::Unknown, SourceKind::HttpTs),
                false => (LimitScope::new(&url, &headers), SourceKind::from_url(&url)),
            };
            let replacement = &profile.replace_pattern;
            let rank = records.file_rank(file, profile.id);
            let candidate = TitleCandidate {
                candidate: Candidate {
                    pool: SlotPool::new(&account, profile, members.clone(), scope),
                    // A film has no stream.
                    stream: StreamId(0),
                    stream_name: name.to_owned(),
                    kind,
                    reach: reach_of_version(&original, &url, replacement, &account, refresh.as_deref()),
                    headers,
                    proxy: account.proxy.clone(),
                    certificates: account.certificates.shared(),
                    url: server.place(url),
                    program: None,
                    leaves_still_picture: false,
                    profile: delivery,
                    redirect_without_login,
                    live_form: None,
                    details: None,
                    command: None,
                },
                file,
                extension: version.extension.clone(),
                start: None,
            };
            candidates.push(((place, rank), candidate));
        }
    }
    candidates.sort_by_key(|it| it.0);
    candidates.into_iter().map(|it| it.1).collect()
}
