//! The options of playlists and guides in the query of their addresses.
//!
//! People carry addresses over from other services, and a player shows no error, so a value that has no meaning here is
//! ignored like an unknown option.

use domain::ids::PersonalPlaylistId;
use domain::output_format::OutputFormat;
use domain::vod::TitleKind;
use resource_derive::Query;
use url::form_urlencoded::Serializer;

/// Options of playlists and guides.
#[derive(Clone, Debug, Default, Query)]
pub struct OutputOptions {
    /// `m3u` for a playlist of names and addresses only; any other value is `m3u_plus`.
    #[field(example = "m3u_plus")]
    r#type: Option<String>,
    /// `false` for the addresses where logos are from, instead of those of the copies of the gateway.
    #[field(example = "false")]
    cachedlogos: Option<String>,
    /// `true` for the addresses of the provider, with its credentials, instead of those of the gateway. For admins only;
    /// ignored for others.
    #[field(example = "false")]
    direct: Option<String>,
    /// `tvg_id` for the ids that channels have in the guides of providers, `gracenote` for their stations
    /// (`tvc_guide_stationid`); any other value, and channels without such an id, for the channel numbers.
    #[field(example = "tvg_id")]
    tvg_id_source: Option<String>,
    /// Number of days of programmes that the guide contains from now on; 0 for all. The default is that of the user.
    #[field(example = "3")]
    days: Option<String>,
    /// Number of past days of programmes that the guide contains. The default is that of the user.
    #[field(example = "1")]
    prev_days: Option<String>,
    /// `true` for programmes with the categories, episode numbers and marks that media servers read (`Series`, `Movie`,
    /// `Sports`, `<live/>`), `false` without them. By default Plex, Emby and Jellyfin get them.
    #[field(example = "true")]
    media_server: Option<String>,
    /// Id of an output profile that the addresses of streams ask for; 0 is none. Ignored if there is no active one with
    /// this id.
    #[field(example = "1")]
    output_profile: Option<String>,
    /// Form of the streams that the addresses lead to: `hls` (or `m3u8`), `fmp4` (or `mp4`), or `ts` (or `mpegts`). Without
    /// it, the user decides when the stream plays.
    #[field(example = "hls")]
    output: Option<String>,
    /// Another name of `output`.
    #[field(example = "hls")]
    output_format: Option<String>,
    /// Name of a channel profile, to whose channels the answer is limited.
    #[field(example = "Kids")]
    profile: Option<String>,
    /// `movies`, `series` or `all`: films, episodes or both follow the channels of a playlist. Episodes of a series are listed
    /// after they were loaded.
    #[field(example = "all")]
    vod: Option<String>,
    /// Id of a personal playlist, whose channels the answer contains in its order.
    #[field(example = "3")]
    pub(super) playlist: Option<PersonalPlaylistId>,
}

/// Where the ids of channels in playlists and guides are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdSource {
    Number,
    /// `tvg_id`.
    Provider,
    /// `tvc_guide_stationid`.
    Station,
}

impl OutputOptions {
    pub(super) fn is_plain(&self) -> bool {
        self.r#type.as_deref() == Some("m3u")
    }

    pub(super) fn has_cached_logos(&self) -> bool {
        !self.cachedlogos.as_deref().is_some_and(means_no)
    }

    pub(super) fn is_direct(&self) -> bool {
        self.direct.as_deref().is_some_and(means_yes)
    }

    /// Returns the kinds of titles that a playlist contains besides channels.
    pub(super) fn title_kinds(&self) -> &'static [TitleKind] {
        match self.vod.as_deref() {
            Some("movies" | "movie" | "films") => &[TitleKind::Movie],
            Some("series") => &[TitleKind::Series],
            Some(text) if text == "all" || means_yes(text) => &TitleKind::ALL,
            _ => &[],
        }
    }

    pub(super) fn ids(&self) -> IdSource {
        match self.tvg_id_source.as_deref() {
            Some("tvg_id") => IdSource::Provider,
            Some("gracenote") => IdSource::Station,
            _ => IdSource::Number,
        }
    }

    /// Returns the id of the output profile for the addresses of streams.
    pub(super) fn output_profile(&self) -> Option<u32> {
        self.output_profile.as_deref()?.trim().parse().ok()
    }

    /// Returns the format that the addresses of streams ask for.
    pub(super) fn format(&self) -> Option<OutputFormat> {
        [&self.output_format, &self.output].into_iter().flatten().find_map(|it| OutputFormat::from_name(it))
    }

    /// Returns whether the guide is for a media server. `None` lets the program decide.
    pub(super) fn media_server(&self) -> Option<bool> {
        let text = self.media_server.as_deref()?;
        if means_yes(text) { Some(true) } else { means_no(text).then_some(false) }
    }

    /// Returns the number of days of programmes from now on.
    pub(super) fn days(&self) -> Option<u32> {
        self.days.as_ref()?.trim().parse().ok()
    }

    /// Returns the number of past days of programmes.
    pub(super) fn prev_days(&self) -> Option<u32> {
        self.prev_days.as_ref()?.trim().parse().ok()
    }

    /// Returns the name of the channel profile: that of the path, or the option.
    pub(super) fn profile<'a>(&'a self, of_path: Option<&'a str>) -> Option<&'a str> {
        of_path.or(self.profile.as_deref())
    }

    /// Adds those options to the address of a guide that make it fit the playlist, for the channel profile of this name.
    pub(super) fn write_guide_query(&self, query: &mut Serializer<'_, String>, profile: Option<&str>) {
        let options = [
            ("cachedlogos", &self.cachedlogos),
            ("tvg_id_source", &self.tvg_id_source),
            ("days", &self.days),
            ("prev_days", &self.prev_days),
            ("media_server", &self.media_server),
        ];
        for (name, value) in options {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        if let Some(name) = profile {
            query.append_pair("profile", name);
        }
        if let Some(id) = self.playlist {
            query.append_pair("playlist", &id.to_string());
        }
    }
}

fn means_yes(text: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|it| it.eq_ignore_ascii_case(text))
}

fn means_no(text: &str) -> bool {
    ["0", "false", "no", "off"].iter().any(|it| it.eq_ignore_ascii_case(text))
}
