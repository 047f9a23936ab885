//! The channels of a playlist or guide, and how the addresses in it authenticate.

use std::sync::Arc;

use domain::channel::Channel;
use domain::group::Group;
use domain::guide::programme::AddressKind;
use domain::ids::{GroupId, PersonalPlaylistId};
use domain::lineup::{Lineup, ViewLimits, guide_channel_id, visible, visible_by_groups};
use domain::logo::Logo;
use domain::personal_playlist::PersonalPlaylist;
use http::HeaderValue;
use route_frame::call::Call;
use route_frame::route::weak_tag;
use server::caller::PassedBy;
use server::reply::Refusal;
use services::addresses::{
    StreamAddresses, logo_address, original_logo_address, poster_address, without_credentials, without_user,
};
use services::guide::EntryId;
use storage::Table;
use url::form_urlencoded::Serializer;

use super::options::{IdSource, OutputOptions};
use super::other_nodes;
use super::output_profile::is_output_profile;
use crate::context::PlayerCall;
use crate::marks::MarkCache;

/// Everything that a playlist or guide is written from, as it is at one moment.
pub struct OutputChannels {
    source: ChannelSource,
    /// The lineup that limits the channels, and whose tags a playlist contains.
    pub(super) lineup: Option<Arc<Lineup>>,
    pub(super) origin: String,
    pub(super) addresses: StreamAddresses,
    logos: Logos,
    ids: IdSource,
    /// Address of the guide for the same player.
    pub(super) guide_url: String,
    /// Changes when the answer can have changed. `None` if it also depends on streams.
    pub(super) tag: Option<HeaderValue>,
}

/// The origin of the channels of an answer. Collecting them clones and sorts, so a client that has the answer does not
/// wait for it.
enum ChannelSource {
    /// The visible ones of all, or of a personal playlist in its order.
    Visible {
        channels: Arc<Table<Channel>>,
        groups: Arc<Table<Group>>,
        limits: ViewLimits,
        playlist: Option<Arc<PersonalPlaylist>>,
    },
    /// These, in this order.
    Given(Vec<Arc<Channel>>),
}

/// The logos that addresses lead to.
#[derive(Clone, Copy, Debug)]
enum Logos {
    /// The copies of the gateway.
    Copies,
    /// Where they are from.
    Originals { with_credentials: bool },
}

impl OutputChannels {
    /// Selects the channels that the caller may see, limited by the options. `profile` is the name of the channel profile
    /// in the path, if there is one.
    pub(super) fn new(call: &Call, options: &OutputOptions, profile: Option<&str>) -> Result<Self, Refusal> {
        let profile = options.profile(profile);
        let lineup = profile.map(|it| find_lineup(call, it)).transpose()?;
        let playlist = options.playlist.map(|it| find_playlist(call, it)).transpose()?;
        let (channels, limits) = (call.player().models.channels.load(), call.view_limits());
        let groups = call.player().models.groups.load();
        let source = ChannelSource::Visible { channels, groups, limits, playlist };
        Ok(Self::from_source(call, options, profile, source, lineup))
    }

    /// Selects these channels.
    pub fn from_channels(call: &Call, options: &OutputOptions, channels: Vec<Arc<Channel>>) -> Self {
        Self::from_source(call, options, None, ChannelSource::Given(channels), None)
    }

    fn from_source(
        call: &Call,
        options: &OutputOptions,
        profile: Option<&str>,
        source: ChannelSource,
        lineup: Option<Arc<Lineup>>,
    ) -> Self {
        let origin = call.player_origin();
        let mut query = Serializer::new(String::new());
        // Players send no headers with streams and guides, so a login in the address takes the place of keys and tokens.
        // It is the same for every way to log in, and players keep their channels when the password changes.
        let (path, addresses) = match call.user() {
            Ok(user) => {
                let secret = call.player().auth.player_secret(user);
                query.append_pair("username", &user.username).append_pair("password", secret.expose());
                ("/xmltv.php", StreamAddresses::with_login(&origin, user, &secret))
            }
            Err(_) => ("/output/epg", StreamAddresses::open(&origin)),
        };
        let output_profile = options.output_profile().filter(|it| is_output_profile(call.player(), *it));
        let addresses = addresses.with_output_profile(output_profile).with_format(options.format());
        options.write_guide_query(&mut query, profile);
        let query = query.finish();
        let mark = if query.is_empty() { "" } else { "?" };
        let guide_url = format!("{origin}{path}{mark}{query}");
        let logos = match options.has_cached_logos() {
            true => Logos::Copies,
            false => Logos::Originals { with_credentials: call.is_admin() },
        };
        let tag = (!is_direct(call, options)).then(|| tag(call, options, &guide_url));
        OutputChannels { source, lineup, origin, addresses, logos, ids: options.ids(), guide_url, tag }
    }

    /// Returns the channels in order.
    pub(super) fn collect(&self) -> Vec<Arc<Channel>> {
        let is_member = |it: &&Arc<Channel>| self.lineup.as_ref().is_none_or(|lineup| lineup.contains(it.id));
        match &self.source {
            ChannelSource::Given(channels) => channels.clone(),
            ChannelSource::Visible { channels, limits, playlist: Some(playlist), .. } => {
                visible_of(playlist, limits, channels).filter(is_member).cloned().collect()
            }
            ChannelSource::Visible { channels, groups, limits, playlist: None } => {
                let members = channels.iter().filter(is_member);
                visible_by_groups(limits, members, place_of(groups)).into_iter().cloned().collect()
            }
        }
    }

    /// For requests that always get the whole answer.
    pub fn without_tag(self) -> Self {
        Self { tag: None, ..self }
    }

    /// Returns the address of the logo of a channel, if it has one.
    pub(super) fn logo(&self, logos: &Table<Logo>, channel: &Channel) -> Option<String> {
        match self.logos {
            Logos::Copies => logo_address(&self.origin, logos, channel),
            Logos::Originals { with_credentials } => {
                original_logo_address(&self.origin, logos, channel, with_credentials)
            }
        }
    }

    /// Returns what a guide contains instead of an address of a programme that may contain credentials; `None` keeps it. For
    /// its icon that is the copy of the gateway. `has_copy` tells whether another icon is replaced by it already.
    pub(super) fn programme_address(
        &self,
        id: Option<EntryId>,
        kind: AddressKind,
        url: &str,
        has_copy: &mut bool,
    ) -> Option<String> {
        match (self.logos, kind, id) {
            (Logos::Originals { with_credentials: true }, ..) => None,
            (_, AddressKind::Page, _) => Some(without_user(url)),
            (Logos::Copies, AddressKind::Icon, Some(id)) if !std::mem::replace(has_copy, true) => {
                Some(poster_address(&self.origin, id))
            }
            _ => Some(without_credentials(url)),
        }
    }

    /// Returns whether several channels may have the same id.
    pub(super) fn may_repeat_ids(&self) -> bool {
        self.ids != IdSource::Number
    }

    /// Returns the id of a channel in playlists and guides.
    pub(super) fn guide_id(&self, channel: &Channel) -> String {
        let id = match self.ids {
            IdSource::Number => None,
            IdSource::Provider => channel.tvg_id.as_deref(),
            IdSource::Station => channel.guide_station.as_deref(),
        };
        id.filter(|it| !it.is_empty()).map_or_else(|| guide_channel_id(channel), str::to_owned)
    }
}

/// Returns whether the caller gets the addresses of providers. An edge node has none, and gets none.
pub(super) fn is_direct(call: &Call, options: &OutputOptions) -> bool {
    let is_at_edge = other_nodes::is_edge(call.player()) || call.caller.passed_by == Some(PassedBy::EdgeNode);
    options.is_direct() && call.is_admin() && !is_at_edge
}

/// Returns the lineup of this name. For users who are limited to lineups, only theirs exist.
fn find_lineup(call: &Call, name: &str) -> Result<Arc<Lineup>, Refusal> {
    let lineup = call.player().models.lineups.load().one_by("name", name).cloned();
    let is_own = |it: &Lineup| match call.user() {
        Ok(user) => call.is_admin() || user.lineups.is_empty() || user.lineups.contains(&it.id),
        Err(_) => true,
    };
    lineup.filter(|it| is_own(it)).ok_or_else(Refusal::unknown::<Lineup>)
}

/// Returns the personal playlist with this id, if the caller may read it.
fn find_playlist(call: &Call, id: PersonalPlaylistId) -> Result<Arc<PersonalPlaylist>, Refusal> {
    let playlist = call.player().models.personal_playlists.load().get(id.0).cloned();
    playlist.filter(|it| is_readable(call, it)).ok_or_else(Refusal::unknown::<PersonalPlaylist>)
}

/// Returns whether the caller may read a personal playlist: its owner, users to whom it is assigned, and admins.
pub fn is_readable(call: &Call, playlist: &PersonalPlaylist) -> bool {
    call.is_admin() || call.user().is_ok_and(|it| playlist.is_readable_by(it.id))
}

/// Returns the channels of a personal playlist that a viewer may see, in its order.
pub fn visible_of<'a>(
    playlist: &'a PersonalPlaylist,
    limits: &'a ViewLimits,
    channels: &'a Table<Channel>,
) -> impl Iterator<Item = &'a Arc<Channel>> {
    playlist.channels.iter().filter_map(|it| channels.get(it.0)).filter(|it| visible(limits, it))
}

/// Returns the places of groups that an admin has ordered.
pub(crate) fn place_of(groups: &Table<Group>) -> impl Fn(GroupId) -> u32 {
    move |id| groups.get(id.0).map_or(u32::MAX, |it| it.place())
}

/// Returns the entity tag of everything that the answer to a request depends on.
fn tag(call: &Call, options: &OutputOptions, guide_url: &str) -> HeaderValue {
    let models = &call.player().models;
    let versions = [
        models.channels.load().version(),
        models.groups.load().version(),
        models.lineups.load().version(),
        models.logos.load().version(),
        models.output_profiles.load().version(),
        models.personal_playlists.load().version(),
        // Callers without a user may see adult channels or not.
        models.settings.load().version(),
    ];
    // The guide's address contains the name of the user, the secret and the origin.
    let user = call.user().ok();
    let user = user.map(|it| (it.id, it.effective_level(), it.hide_adult, (&it.lineups, &it.channel_groups)));
    // Titles have no version of their own.
    let titles = (!options.title_kinds().is_empty()).then(|| models.store.version());
    let archives = call.archives().version();
    let marks = call.player().states.get::<MarkCache>().load(models).version();
    // Plans have no version of their own.
    let redirects = call.player().plans.redirects();
    let plans = (!redirects.is_empty()).then(|| models.store.version());
    let about = (
        env!("CARGO_PKG_VERSION"),
        call.is_admin(),
        user,
        options,
        guide_url,
        call.player().has_users(),
        titles,
        archives,
        (marks, plans),
    );
    weak_tag(format!("{versions:?} {about:?}").as_bytes())
}
