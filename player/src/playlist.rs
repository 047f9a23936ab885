//! Playlists: `/get.php`, `/output/m3u`, `/playlist.m3u` and `/api/playlist.m3u`.

use std::sync::Arc;

use actors::{Plans, Redirects, Target};
use domain::channel::Channel;
use domain::plan::Candidate;
use domain::playlist::write::{
    OutputCatchup, OutputEntry, OutputHints, write_entry, write_header, write_plain_entry,
};
use domain::portal::PortalStreamAddress;
use domain::stream_profile::Delivery;
use domain::user::UserLevel;
use http::{Method, StatusCode};
use route_frame::access::{Access, STREAMER};
use route_frame::call::Call;
use route_frame::route::{MediaType, MediaTypes, Route};
use server::reply::Refusal;

use super::long_text::{Coding, LongText, LongTextHead};
use super::options::OutputOptions;
use super::other_nodes;
use super::selection::{OutputChannels, is_direct};
use super::title_entries::TitleEntries;
use crate::context::PlayerCall;
use crate::marks::MarkCache;

/// An M3U playlist.
pub struct M3u;

impl M3u {
    pub const NAME: &'static str = "audio/x-mpegurl";
}

impl MediaType for M3u {
    const NAME: &'static str = Self::NAME;
}

impl MediaTypes for M3u {
    const NAMES: &'static [&'static str] = &[Self::NAME];
}

/// Returns the routes that only the player port serves.
pub(super) fn routes() -> Vec<Route> {
    let players = Access::PlayersOrNetworks(UserLevel::Streamer);
    let summary = "Returns a playlist of all channels that the caller may watch.";
    let with_login = Route::each([Method::GET, Method::POST], "/get.php", Access::QueryLogin, summary, all);
    let of_profile = "Returns a playlist of the channels of a profile that the caller may watch.";
    let others = [
        Route::get("/output/m3u", players, summary, all),
        Route::get("/playlist.m3u", players, summary, all),
        Route::get("/output/m3u/{profile}", players, of_profile, profile_playlist),
    ];
    let routes = with_login.into_iter().map(Route::that_reads).chain(others).map(declared);
    routes.map(Route::for_any_origin_with_login).collect()
}

/// Returns the routes that both ports serve.
pub(super) fn api_routes() -> Vec<Route> {
    let summary = "Returns a playlist of all channels that the user may watch.";
    vec![declared(Route::get("/api/playlist.m3u", STREAMER, summary, all)).for_any_origin_with_login()]
}

fn declared(route: Route) -> Route {
    route
        .refuses(StatusCode::NOT_MODIFIED, "The client has the current playlist.")
        .refuses(StatusCode::NOT_FOUND, "The channel profile or the personal playlist does not exist.")
}

async fn all(call: Call, options: OutputOptions) -> Result<LongText<M3u>, Refusal> {
    if needs_full_node(&call, &options) {
        return other_nodes::pass(&call).await.map(LongText::from_reply);
    }
    let selection = OutputChannels::new(&call, &options, None)?;
    answer(&call, &options, selection).await
}

async fn profile_playlist(call: Call, options: OutputOptions) -> Result<LongText<M3u>, Refusal> {
    if needs_full_node(&call, &options) {
        return other_nodes::pass(&call).await.map(LongText::from_reply);
    }
    let selection = OutputChannels::new(&call, &options, Some(call.text("profile")?))?;
    answer(&call, &options, selection).await
}

/// Returns whether the playlist contains films or episodes, which this node does not have.
fn needs_full_node(call: &Call, options: &OutputOptions) -> bool {
    !options.title_kinds().is_empty() && other_nodes::is_edge(call.player())
}

/// Answers with a playlist. `M` contains its media type.
pub async fn answer<M: MediaTypes>(
    call: &Call,
    options: &OutputOptions,
    selection: OutputChannels,
) -> Result<LongText<M>, Refusal> {
    let head = LongTextHead {
        media_type: M3u::NAME,
        file_name: "playlist.m3u",
        tag: selection.tag.clone(),
        coding: Coding::Negotiated,
    };
    let plans = PlaylistPlans::new(call, options);
    let titles = TitleEntries::new(call, options.title_kinds());
    let write = writer(call, selection, options.is_plain(), plans, titles);
    LongText::new(&call.headers, head, write).await
}

/// The plans of channels, as far as a playlist contains them.
struct PlaylistPlans {
    plans: Arc<dyn Plans>,
    /// The entries have the addresses of providers.
    is_direct: bool,
    redirects: Redirects,
}

impl PlaylistPlans {
    fn new(call: &Call, options: &OutputOptions) -> Self {
        let plans = Arc::clone(&call.player().plans);
        Self { is_direct: is_direct(call, options), redirects: plans.redirects(), plans }
    }

    /// Returns what the gateway would open first, else what a player might, if the entry of the channel depends on it. Reads
    /// the store, so it blocks.
    fn candidate(&self, channel: &Channel) -> Option<Candidate> {
        if !self.is_direct && !self.redirects.may_redirect(channel) {
            return None;
        }
        let plan = self.plans.plan(&Target::Channel(channel.uuid))?;
        match self.is_direct {
            true => plan.candidates.first().or(plan.for_players.as_deref()).cloned(),
            false => plan.candidates.first().filter(|it| it.profile == Delivery::Redirect).cloned(),
        }
    }

    /// Returns what a player needs that asks the provider itself.
    fn hints<'a>(&self, candidate: &'a Candidate) -> OutputHints<'a> {
        let (headers, details) = (&candidate.headers, candidate.details.as_deref());
        match self.is_direct {
            true => OutputHints::Direct { headers, details },
            false => OutputHints::Redirected { headers, details },
        }
    }
}

/// Returns the function that writes a playlist: the first line, then one entry each time.
fn writer(
    call: &Call,
    selection: OutputChannels,
    is_plain: bool,
    plans: PlaylistPlans,
    mut titles: TitleEntries,
) -> impl FnMut(&mut String) -> bool + Send + 'static {
    let (groups, logos) = (call.player().models.groups.load(), call.player().models.logos.load());
    let archives = call.archives();
    let marked = call.player().states.get::<MarkCache>().load(&call.player().models);
    let (mut channels, mut n_written) = (None, 0);
    move |out| {
        let Some(channels) = &channels else {
            let selected = selection.collect();
            let tags = selection.lineup.as_ref().map(|it| &it.tags).filter(|_| !is_plain);
            let guide_url = (!is_plain).then_some(selection.guide_url.as_str());
            write_header(out, guide_url, tags);
            let has_more = !selected.is_empty() || titles.has_more();
            channels = Some(selected);
            return has_more;
        };
        let Some(channel) = channels.get(n_written) else {
            return titles.write_next(out, &selection.addresses, &selection.origin, is_plain);
        };
        let candidate = plans.candidate(channel);
        // A portal makes the address when it is opened, so players get that of the gateway.
        let is_made = candidate.as_ref().is_some_and(|it| PortalStreamAddress::is_one(&it.url));
        let url = match plans.is_direct && !is_made {
            true => candidate.as_ref().map(|it| it.url.expose().to_owned()),
            false => Some(selection.addresses.channel(channel)),
        };
        if let Some(url) = url {
            let group = channel.group.and_then(|it| groups.get(it.0)).map(|it| it.name.as_str());
            let logo = selection.logo(&logos, channel);
            // The addresses of providers are not ours to ask for the past.
            let archive_days = if plans.is_direct { 0 } else { archives.days(channel.id) };
            let past = (archive_days > 0).then(|| selection.addresses.past(channel));
            let line = OutputEntry {
                name: &channel.name,
                url: &url,
                tvg_id: &selection.guide_id(channel),
                tvg_logo: logo.as_deref().unwrap_or_default(),
                tvg_chno: channel.number,
                station: channel.guide_station.as_deref().unwrap_or_default(),
                group: group.unwrap_or_default(),
                catchup: past.as_deref().map(|source| OutputCatchup { source, days: archive_days }),
                marks: marked.get(channel.id),
                tags: selection.lineup.as_ref().map(|it| &it.tags),
                hints: candidate.as_ref().filter(|_| !is_made).map(|it| plans.hints(it)),
            };
            match is_plain {
                true => write_plain_entry(out, &OutputEntry { tags: None, hints: None, ..line }),
                false => write_entry(out, &line),
            }
        }
        n_written += 1;
        n_written < channels.len() || titles.has_more()
    }
}
