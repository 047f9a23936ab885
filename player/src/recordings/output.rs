//! A playlist and a guide of recordings: `/output/recordings.m3u` and `/output/recordings.xml`.

use std::sync::Arc;

use domain::guide::xmltv::{XmltvChannel, write_channel, write_end, write_programme, write_start};
use domain::playlist::write::{OutputEntry, write_entry, write_header};
use domain::recording::Recording;
use domain::user::UserLevel;
use domain::xml::push_escaped;
use http::StatusCode;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::Route;
use server::reply::Refusal;
use services::addresses::logo_address;
use services::recording_rules::dvr_settings;

use super::ListedRecordings;
use super::file::extension_of;
use super::rows::CATEGORY;
use crate::context::PlayerCall;
use crate::guide::Xmltv;
use crate::long_text::{Coding, LongText, LongTextHead};
use crate::options::OutputOptions;
use crate::playlist::M3u;
use crate::selection::OutputChannels;

/// Path of the playlist.
pub const RECORDINGS_PLAYLIST: &str = "/output/recordings.m3u";
/// Path of the guide.
pub const RECORDINGS_GUIDE: &str = "/output/recordings.xml";

/// Returns the routes that only the player port serves.
pub(crate) fn routes() -> Vec<Route> {
    let players = Access::PlayersOrNetworks(UserLevel::Streamer);
    let routes = [
        Route::get(
            RECORDINGS_PLAYLIST,
            players,
            "Returns a playlist of the recordings that the caller may play.",
            playlist,
        ),
        Route::get(
            RECORDINGS_GUIDE,
            players,
            "Returns a guide of the recordings that the caller may play.",
            guide,
        ),
    ];
    let off = "Players list no recordings: `recordings_in_players` is off.";
    routes.map(|it| it.refuses(StatusCode::NOT_FOUND, off).for_any_origin_with_login()).into()
}

fn check_enabled(call: &Call) -> Result<(), Refusal> {
    match dvr_settings(&call.player().models).recordings_in_players {
        true => Ok(()),
        false => Err(Refusal::not_found("Recordings are not shown to players.")),
    }
}

/// Returns the id that connects an entry of the playlist with its programme in the guide.
fn guide_id(recording: &Recording) -> String {
    format!("recording-{}", recording.id)
}

async fn playlist(call: Call) -> Result<LongText<M3u>, Refusal> {
    check_enabled(&call)?;
    let listed = ListedRecordings::new(&call);
    let addresses = OutputChannels::from_channels(&call, &OutputOptions::default(), Vec::new());
    let login = addresses.guide_url.split_once('?').map(|it| format!("?{}", it.1)).unwrap_or_default();
    let guide_url = format!("{}{RECORDINGS_GUIDE}{login}", addresses.origin);
    let logos = call.player().models.logos.load();
    let mut next = None;
    let write = move |out: &mut String| {
        let Some(n) = next else {
            write_header(out, Some(&guide_url), None);
            next = Some(0);
            return !listed.recordings.is_empty();
        };
        let Some(recording) = listed.recordings.get(n) else { return false };
        let logo = listed.channel(recording).and_then(|it| logo_address(&addresses.origin, &logos, it));
        let entry = OutputEntry {
            name: &listed.name(recording),
            url: &addresses.addresses.recording(recording.id, extension_of(recording)),
            tvg_id: &guide_id(recording),
            tvg_logo: logo.as_deref().unwrap_or_default(),
            group: CATEGORY,
            ..OutputEntry::default()
        };
        write_entry(out, &entry);
        next = Some(n + 1);
        n + 1 < listed.recordings.len()
    };
    LongText::new(&call.headers, head(M3u::NAME, "recordings.m3u"), write).await
}

async fn guide(call: Call) -> Result<LongText<Xmltv>, Refusal> {
    check_enabled(&call)?;
    let listed = ListedRecordings::new(&call);
    // First the channels, one for each recording, then the programmes.
    let mut steps = listed.recordings.clone().into_iter().map(|it| (it, true)).collect::<Vec<_>>();
    steps.extend(listed.recordings.iter().map(|it| (Arc::clone(it), false)));
    let mut steps = steps.into_iter();
    let mut is_begun = false;
    let write = move |out: &mut String| {
        if !std::mem::replace(&mut is_begun, true) {
            write_start(out, env!("CARGO_PKG_VERSION"));
            return true;
        }
        let Some((recording, is_channel)) = steps.next() else {
            write_end(out);
            return false;
        };
        let id = guide_id(&recording);
        match is_channel {
            true => {
                let name = listed.name(&recording);
                let names = [name.as_str(), recording.channel_name.as_str()];
                write_channel(out, &XmltvChannel { id: &id, names: &names, icon: None });
            }
            false => {
                let (start, stop) = (recording.start / 1000, recording.end / 1000);
                write_programme(out, &id, start, stop, &programme(&recording));
            }
        }
        true
    };
    LongText::new(&call.headers, head(Xmltv::NAME, "recordings.xml"), write).await
}

fn head(media_type: &'static str, file_name: &'static str) -> LongTextHead {
    LongTextHead { media_type, file_name, tag: None, coding: Coding::Negotiated }
}

/// Returns the elements of a programme.
fn programme(recording: &Recording) -> String {
    let programme = recording.programme.clone().unwrap_or_default();
    let mut out = String::new();
    let mut element = |name: &str, text: &str| {
        if !text.is_empty() {
            out.push_str(&format!("<{name}>"));
            push_escaped(&mut out, text);
            out.push_str(&format!("</{}>", name.split(' ').next().unwrap_or(name)));
        }
    };
    element("title", recording.title());
    element("sub-title", programme.sub_title.as_deref().unwrap_or_default());
    element("desc", programme.description.as_deref().unwrap_or_default());
    element("date", &programme.year.map(|it| it.to_string()).unwrap_or_default());
    if let Some((season, episode)) = programme.season.zip(programme.episode) {
        // Numbers of this form count from zero.
        let number = |it: u32| it.checked_sub(1).map(|it| it.to_string()).unwrap_or_default();
        element("episode-num system=\"xmltv_ns\"", &format!("{}.{}.", number(season), number(episode)));
        element("episode-num system=\"onscreen\"", &format!("S{season:02}E{episode:02}"));
    }
    out
}
