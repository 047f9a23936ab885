//! The channels of a playlist or guide, and how the addresses in it authenticate.

use std::sync::Arc;

use domain::channel::Channel;
use domain::lineup::{Lineup, ViewLimits, guide_channel_id, visible, visible_in_order};
use domain::logo::Logo;
use domain::personal_playlist::PersonalPlaylist;
use http::HeaderValue;
use storage::Table;
use url::form_urlencoded::Serializer;

use super::addresses::{StreamAddresses, logo_address, original_logo_address};
use super::options::OutputOptions;
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::weak_tag;

/// Everything that a playlist or guide is written from, as it is at one moment.
pub(crate) struct OutputChannels {
    /// In order.
    pub(super) channels: Vec<Arc<Channel>>,
    /// The lineup whose tags a playlist contains.
    pub(super) lineup: Option<Arc<Lineup>>,
    origin: String,
    pub(super) addresses: StreamAddresses,
    logos: Logos,
    /// Whether ids are those of the guides of providers, where channels have one.
    pub(super) has_provider_ids: bool,
    /// Address of the guide for the same player.
    pub(super) guide_url: String,
    /// Changes when the answer can have changed. `None` if it also depends on streams.
    pub(super) tag: Option<HeaderValue>,
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
        let limits = call.view_limits();
        let channels = call.app.models.channels.load();
        let mut selected: Vec<Arc<Channel>> = match options.playlist {
            Some(id) => {
                let playlist = call.app.models.personal_playlists.load().get(id.0).cloned();
                let playlist = playlist.filter(|it| is_readable(call, it));
                let playlist = playlist.ok_or_else(Refusal::unknown::<PersonalPlaylist>)?;
                visible_of(&playlist, &limits, &channels).cloned().collect()
            }
            None => visible_in_order(&limits, channels.iter()).into_iter().cloned().collect(),
        };
        if let Some(lineup) = &lineup {
            selected.retain(|it| lineup.contains(it.id));
        }
        Ok(Self::of(call, options, profile, selected, lineup))
    }

    /// Selects these channels.
    pub(crate) fn of(
        call: &Call,
        options: &OutputOptions,
        profile: Option<&str>,
        channels: Vec<Arc<Channel>>,
        lineup: Option<Arc<Lineup>>,
    ) -> Self {
        let origin = call.player_origin();
        let mut query = Serializer::new(String::new());
        // Players send no headers with streams and guides, so a login in the address takes the place of keys and tokens.
        // It is the same for every way to log in, and players keep their channels when the password changes.
        let (path, addresses) = match call.user() {
            Ok(user) => {
                let secret = call.app.auth.player_secret(user);
                query.append_pair("username", &user.username).append_pair("password", secret.expose());
                ("/xmltv.php", StreamAddresses::with_login(&origin, user, &secret))
            }
            Err(_) => ("/output/epg", StreamAddresses::Open { origin: origin.clone() }),
        };
        options.write_guide_query(&mut query, profile);
        let query = query.finish();
        let mark = if query.is_empty() { "" } else { "?" };
        let guide_url = format!("{origin}{path}{mark}{query}");
        let logos = match options.has_cached_logos() {
            true => Logos::Copies,
            false => Logos::Originals { with_credentials: call.is_admin() },
        };
        let tag = (!is_direct(call, options)).then(|| tag(call, options, &guide_url));
        let has_provider_ids = options.has_provider_ids();
        OutputChannels { channels, lineup, origin, addresses, logos, has_provider_ids, guide_url, tag }
    }

    /// For requests that always get the whole answer.
    pub(crate) fn without_tag(self) -> Self {
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

    /// Returns the id of a channel in playlists and guides.
    pub(super) fn guide_id(&self, channel: &Channel) -> String {
        let of_provider = channel.tvg_id.as_deref().filter(|it| self.has_provider_ids && !it.is_empty());
        of_provider.map_or_else(|| guide_channel_id(channel), str::to_owned)
    }
}

/// Returns whether the caller gets the addresses of providers.
pub(super) fn is_direct(call: &Call, options: &OutputOptions) -> bool {
    options.is_direct() && call.is_admin()
}

/// Returns the lineup of this name. For users who are limited to lineups, only theirs exist.
fn find_lineup(call: &Call, name: &str) -> Result<Arc<Lineup>, Refusal> {
    let lineup = call.app.models.lineups.load().one_by("name", name).cloned();
    let is_own = |it: &Lineup| match call.user() {
        Ok(user) => call.is_admin() || user.lineups.is_empty() || user.lineups.contains(&it.id),
        Err(_) => true,
    };
    lineup.filter(|it| is_own(it)).ok_or_else(Refusal::unknown::<Lineup>)
}

/// Returns whether the caller may read a personal playlist: its owner, users to whom it is assigned, and admins.
pub(crate) fn is_readable(call: &Call, playlist: &PersonalPlaylist) -> bool {
    call.is_admin() || call.user().is_ok_and(|it| playlist.is_readable_by(it.id))
}

/// Returns the channels of a personal playlist that a viewer may see, in its order.
pub(crate) fn visible_of<'a>(
    playlist: &'a PersonalPlaylist,
    limits: &'a ViewLimits,
    channels: &'a Table<Channel>,
) -> impl Iterator<Item = &'a Arc<Channel>> {
    playlist.channels.iter().filter_map(|it| channels.get(it.0)).filter(|it| visible(limits, it))
}

/// Returns the entity tag of everything that the answer to a request depends on.
fn tag(call: &Call, options: &OutputOptions, guide_url: &str) -> HeaderValue {
    let models = &call.app.models;
    let versions = [
        models.channels.load().version(),
        models.groups.load().version(),
        models.lineups.load().version(),
        models.logos.load().version(),
        models.personal_playlists.load().version(),
        // Callers without a user may see adult channels or not.
        models.settings.load().version(),
    ];
    // The guide's address contains the name of the user, the secret and the origin.
    let user = call.user().ok().map(|it| (it.id, it.effective_level(), it.hide_adult, it.lineups.clone()));
    let about = (env!("CARGO_PKG_VERSION"), call.is_admin(), user, options, guide_url, call.app.has_users());
    weak_tag(format!("{versions:?} {about:?}").as_bytes())
}
