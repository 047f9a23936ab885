//! Guides in XMLTV: `/xmltv.php`, `/output/epg` and `/api/epg.xml`: the channels, and then the programmes of one channel
//! after the other.
//!
//! The answer depends on the hour and not on the second, so that a client that asks again soon gets 304.

use std::collections::HashSet;
use std::sync::Arc;
use std::vec;

use actors::now_ms;
use domain::channel::Channel;
use domain::clients::is_media_server;
use domain::guide::programme::for_media_servers;
use domain::guide::xmltv::{XmltvChannel, write_channel, write_end, write_programme_replacing, write_start};
use domain::logo::Logo;
use domain::user::UserLevel;
use http::{HeaderValue, Method, StatusCode};
use route_frame::access::{Access, STREAMER};
use route_frame::call::Call;
use route_frame::route::{MediaTypes, Route, weak_tag};
use server::reply::Refusal;
use services::archives::ChannelArchives;
use services::guide::{DAY, GuideReader, ProgrammeParts};
use storage::Table;

use super::long_text::{Coding, LongText, LongTextHead};
use super::options::OutputOptions;
use super::selection::OutputChannels;
use crate::context::PlayerCall;

/// Length of an hour, in seconds.
const HOUR: i64 = 60 * 60;
/// Maximum number of days before and after now.
const DAYS_MAX: u32 = 365;
/// Properties of a user with the number of days, where the address has none.
const DAYS: &str = "epg_days";
const PREV_DAYS: &str = "epg_prev_days";

/// A guide in XMLTV.
pub struct Xmltv;

impl Xmltv {
    pub const NAME: &'static str = "application/xml";
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
    let players = Access::PlayersOrNetworks(UserLevel::Streamer);
    let summary = "Returns a guide of all channels that the caller may watch.";
    let with_login = Route::each([Method::GET, Method::POST], "/xmltv.php", Access::QueryLogin, summary, all);
    let of_profile = "Returns a guide of the channels of a profile that the caller may watch.";
    let others = [
        Route::get("/output/epg", players, summary, all),
        Route::get("/output/epg.xml", players, summary, all),
        // Jellyfin unpacks a guide only if its address ends like this.
        Route::get("/output/epg.xml.gz", players, "Returns the guide as a gzip file.", file),
        Route::get("/output/epg/{profile}", players, of_profile, profile_guide),
    ];
    let routes = with_login.into_iter().map(Route::that_reads).chain(others).map(declared);
    routes.map(Route::for_any_origin_with_login).collect()
}

/// Returns the routes that both ports serve.
pub(super) fn api_routes() -> Vec<Route> {
    let summary = "Returns a guide of all channels that the user may watch.";
    let routes = [
        Route::get("/api/epg.xml", STREAMER, summary, all),
        Route::get("/api/epg.xml.gz", STREAMER, "Returns the guide as a gzip file.", file),
    ];
    routes.map(declared).map(Route::for_any_origin_with_login).into()
}

fn declared(route: Route) -> Route {
    route
        .refuses(StatusCode::NOT_MODIFIED, "The client has the current guide.")
        .refuses(StatusCode::NOT_FOUND, "The channel profile or the personal playlist does not exist.")
}

async fn all(call: Call, options: OutputOptions) -> Result<LongText<Xmltv>, Refusal> {
    answer(&call, &options, OutputChannels::new(&call, &options, None)?).await
}

async fn profile_guide(call: Call, options: OutputOptions) -> Result<LongText<Xmltv>, Refusal> {
    let selection = OutputChannels::new(&call, &options, Some(call.text("profile")?))?;
    answer(&call, &options, selection).await
}

async fn file(call: Call, options: OutputOptions) -> Result<LongText<XmltvFile>, Refusal> {
    let writer = GuideWriter::new(&call, &options, OutputChannels::new(&call, &options, None)?);
    let head = LongTextHead {
        media_type: XmltvFile::NAME,
        file_name: "guide.xml.gz",
        tag: writer.tag(),
        coding: Coding::GzipFile,
    };
    LongText::new(&call.headers, head, writer.into_function()).await
}

/// Answers with a guide. `M` contains its media type.
pub async fn answer<M: MediaTypes>(
    call: &Call,
    options: &OutputOptions,
    selection: OutputChannels,
) -> Result<LongText<M>, Refusal> {
    let writer = GuideWriter::new(call, options, selection);
    let head = LongTextHead {
        media_type: Xmltv::NAME,
        file_name: "guide.xml",
        tag: writer.tag(),
        coding: Coding::Negotiated,
    };
    LongText::new(&call.headers, head, writer.into_function()).await
}

/// The time that a guide covers, in seconds since 1970. Programmes that run at its start or end are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GuideWindow {
    from: i64,
    until: i64,
    /// The start of the present hour.
    hour: i64,
    /// Whether the archive of a channel moves its start back, because nobody asked for a number of past days.
    follows_archives: bool,
}

impl GuideWindow {
    /// Returns the window that the options or the properties of the user ask for; by default everything from now on, and the
    /// past of a channel that can be watched.
    fn new(call: &Call, options: &OutputOptions, now: i64) -> Self {
        let of_user = |name: &str| {
            let days = call.user().ok()?.custom_properties.get(name)?.as_u64()?;
            u32::try_from(days).ok()
        };
        let days = options.days().or_else(|| of_user(DAYS)).filter(|it| *it > 0);
        let prev_days = options.prev_days().or_else(|| of_user(PREV_DAYS)).unwrap_or(0);
        let hour = now.div_euclid(HOUR) * HOUR;
        let span = |days: u32| i64::from(days.min(DAYS_MAX)) * DAY;
        Self {
            from: hour - span(prev_days),
            until: hour + span(days.unwrap_or(DAYS_MAX)),
            hour,
            follows_archives: options.prev_days().is_none(),
        }
    }

    /// Returns the start for a channel with an archive of this depth.
    fn from(&self, archive_hours: u32) -> i64 {
        let archive_from = self.hour - i64::from(archive_hours) * HOUR;
        if self.follows_archives && archive_hours > 0 { self.from.min(archive_from) } else { self.from }
    }
}

/// Writes a guide part by part: the beginning, the channels, and then some programmes of one channel each time.
struct GuideWriter {
    selection: OutputChannels,
    window: GuideWindow,
    /// Whether programmes have the marks that media servers read.
    for_media_server: bool,
    /// Version of all guides, read before their programmes.
    version: String,
    guides: GuideReader,
    archives: Arc<ChannelArchives>,
    logos: Arc<Table<Logo>>,
    phase: Phase,
}

/// The next part of a guide.
enum Phase {
    Start,
    Channels {
        rest: vec::IntoIter<Arc<Channel>>,
        written: Vec<Arc<Channel>>,
        /// The ids of providers can repeat, and an id may occur once in a guide.
        seen: HashSet<String>,
    },
    Programmes {
        rest: vec::IntoIter<Arc<Channel>>,
        /// The id of the present channel, and its programmes that are not written yet.
        current: Option<(String, ProgrammeParts)>,
    },
}

impl GuideWriter {
    fn new(call: &Call, options: &OutputOptions, selection: OutputChannels) -> Self {
        Self {
            selection,
            window: GuideWindow::new(call, options, now_ms() / 1000),
            for_media_server: options.media_server().unwrap_or_else(|| is_media_server(&call.caller.agent)),
            version: call.player().guides.version(),
            guides: call.player().guides.reader(),
            archives: call.archives(),
            logos: call.player().models.logos.load(),
            phase: Phase::Start,
        }
    }

    /// Returns the entity tag of everything that the guide depends on. `None` if it also depends on streams.
    fn tag(&self) -> Option<HeaderValue> {
        let tag = self.selection.tag.as_ref().filter(|_| !self.guides.depends_on_streams())?;
        let about = (tag, self.window, &self.version, self.for_media_server);
        Some(weak_tag(format!("{about:?}").as_bytes()))
    }

    fn into_function(mut self) -> impl FnMut(&mut String) -> bool + Send + 'static {
        move |out| self.write_part(out)
    }

    /// Writes the next part, and returns whether another one follows. Blocks.
    fn write_part(&mut self, out: &mut String) -> bool {
        match &mut self.phase {
            Phase::Start => {
                write_start(out, env!("CARGO_PKG_VERSION"));
                let rest = self.selection.collect().into_iter();
                self.phase = Phase::Channels { rest, written: Vec::new(), seen: HashSet::new() };
            }
            Phase::Channels { rest, written, seen } => match rest.next() {
                Some(channel) => {
                    let id = self.selection.guide_id(&channel);
                    if !self.selection.may_repeat_ids() || seen.insert(id.clone()) {
                        write_head(out, &self.selection, &self.logos, &id, &channel);
                        written.push(channel);
                    }
                }
                None => {
                    let rest = std::mem::take(written).into_iter();
                    self.phase = Phase::Programmes { rest, current: None };
                }
            },
            Phase::Programmes { rest, current } => {
                if let Some((id, parts)) = current {
                    match parts.next() {
                        Some(part) => {
                            let (selection, is_marked) = (&self.selection, self.for_media_server);
                            part.for_each(|programme, start, stop, inner| {
                                let mut has_copy = false;
                                let replace = |kind, url: &str| {
                                    selection.programme_address(programme, kind, url, &mut has_copy)
                                };
                                let inner = match is_marked {
                                    true => for_media_servers(inner),
                                    false => inner.into(),
                                };
                                write_programme_replacing(out, id, (start, stop), &inner, replace);
                            });
                        }
                        None => *current = None,
                    }
                    return true;
                }
                let Some(channel) = rest.next() else {
                    write_end(out);
                    return false;
                };
                *current = self.guides.channel_guide(&channel).map(|it| {
                    let from = self.window.from(self.archives.hours(channel.id));
                    let parts = it.parts(from, self.window.until);
                    (self.selection.guide_id(&channel), parts)
                });
            }
        }
        true
    }
}

/// Writes a channel under this id.
fn write_head(
    out: &mut String,
    selection: &OutputChannels,
    logos: &Table<Logo>,
    id: &str,
    channel: &Channel,
) {
    let number = channel.number.map(|it| it.to_string());
    let icon = selection.logo(logos, channel);
    let names = [channel.name.as_str(), number.as_deref().unwrap_or_default()];
    write_channel(out, &XmltvChannel { id, names: &names, icon: icon.as_deref() });
}
