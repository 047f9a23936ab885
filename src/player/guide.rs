//! Guides in XMLTV: `/xmltv.php`, `/output/epg` and `/api/epg.xml`. They list the channels; programmes follow with the
//! import of guides.

use std::collections::HashSet;

use domain::guide::xmltv::{GuideChannel, write_channel, write_end, write_start};
use domain::user::UserLevel;
use http::{Method, StatusCode};

use super::long_text::{Coding, LongText, LongTextHead};
use super::options::OutputOptions;
use super::selection::OutputChannels;
use crate::http::reply::Refusal;
use crate::rest::frame::access::{Access, STREAMER};
use crate::rest::frame::call::Call;
use crate::rest::frame::route::{MediaTypes, Route};

/// A guide in XMLTV.
pub(crate) struct Xmltv;

impl Xmltv {
    pub(crate) const NAME: &'static str = "application/xml";
}

impl MediaTypes for Xmltv {
    const NAMES: &'static [&'static str] = &[Self::NAME];
}

/// A compressed guide.
struct XmltvFile;

impl XmltvFile {
    const NAME: &'static str = "application/gzip";
}

impl MediaTypes for XmltvFile {
    const NAMES: &'static [&'static str] = &[Self::NAME];
}

/// Returns the routes that only the player port serves.
pub(super) fn routes() -> Vec<Route> {
    let players = Access::UsersOrNetworks(UserLevel::Streamer);
    let summary = "Returns a guide of all channels that the caller may watch.";
    let with_login = Route::each([Method::GET, Method::POST], "/xmltv.php", Access::QueryLogin, summary, all);
    let of_profile = "Returns a guide of the channels of a profile that the caller may watch.";
    let others = [
        Route::get("/output/epg", players, summary, all),
        Route::get("/output/epg.xml", players, summary, all),
        // Jellyfin unpacks a guide only if its address ends like this.
        Route::get("/output/epg.xml.gz", players, "Returns the guide as a gzip file.", file),
        Route::get("/output/epg/{profile}", players, of_profile, of_path),
    ];
    with_login.into_iter().map(Route::that_reads).chain(others).map(declared).collect()
}

/// Returns the routes that both ports serve.
pub(super) fn api_routes() -> Vec<Route> {
    let summary = "Returns a guide of all channels that the user may watch.";
    let routes = [
        Route::get("/api/epg.xml", STREAMER, summary, all),
        Route::get("/api/epg.xml.gz", STREAMER, "Returns the guide as a gzip file.", file),
    ];
    routes.map(declared).into()
}

fn declared(route: Route) -> Route {
    route
        .refuses(StatusCode::NOT_MODIFIED, "The client has the current guide.")
        .refuses(StatusCode::NOT_FOUND, "The channel profile or the personal playlist does not exist.")
}

async fn all(call: Call, options: OutputOptions) -> Result<LongText<Xmltv>, Refusal> {
    answer(&call, OutputChannels::new(&call, &options, None)?).await
}

async fn of_path(call: Call, options: OutputOptions) -> Result<LongText<Xmltv>, Refusal> {
    answer(&call, OutputChannels::new(&call, &options, Some(call.text("profile")?))?).await
}

async fn file(call: Call, options: OutputOptions) -> Result<LongText<XmltvFile>, Refusal> {
    let selection = OutputChannels::new(&call, &options, None)?;
    let head = LongTextHead {
        media_type: XmltvFile::NAME,
        file_name: "guide.xml.gz",
        tag: selection.tag.clone(),
        coding: Coding::GzipFile,
    };
    LongText::new(&call.headers, head, writer(&call, selection)).await
}

/// Answers with a guide. `M` contains its media type.
pub(crate) async fn answer<M: MediaTypes>(
    call: &Call,
    selection: OutputChannels,
) -> Result<LongText<M>, Refusal> {
    let head = LongTextHead {
        media_type: Xmltv::NAME,
        file_name: "guide.xml",
        tag: selection.tag.clone(),
        coding: Coding::Negotiated,
    };
    LongText::new(&call.headers, head, writer(call, selection)).await
}

/// Returns the function that writes a guide: the beginning, then one channel each time, and the end.
fn writer(call: &Call, selection: OutputChannels) -> impl FnMut(&mut String) -> bool + Send + 'static {
    let logos = call.app.models.logos.load();
    let mut n_written = None;
    // The ids of providers can repeat, and an id may occur once in a guide.
    let mut seen = HashSet::new();
    move |out| {
        let Some(n) = n_written else {
            write_start(out, env!("CARGO_PKG_VERSION"));
            n_written = Some(0);
            return true;
        };
        let Some(channel) = selection.channels.get(n) else {
            write_end(out);
            return false;
        };
        n_written = Some(n + 1);
        let id = selection.guide_id(channel);
        if selection.has_provider_ids && !seen.insert(id.clone()) {
            return true;
        }
        let number = channel.number.map(|it| it.to_string());
        let icon = selection.logo(&logos, channel);
        let names = [channel.name.as_str(), number.as_deref().unwrap_or_default()];
        write_channel(out, &GuideChannel { id: &id, names: &names, icon: icon.as_deref() });
        true
    }
}
