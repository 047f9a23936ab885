//! The emulated tuner, as media servers expect it of an HDHomeRun: one device with all channels, one for each channel
//! profile, and the additional ones.
//!
//! ```text
//! /tuner/…                      the device with all channels
//! /tuner/{profile}/…            the device of a channel profile, or an additional device
//! /hdhr/…, /hdhr/{profile}/…    the same
//! /tuner/output_profile/{output_profile}/…   the same devices; their streams ask for an output profile
//! /discover.json, …             the first one again, for apps that know only an address
//! /auto/v4.1                    a channel by its number, as at a real device
//! ```
//!
//! Reading order: `device.rs` (the device of a request), `lineup.rs` (its channels), `description.rs` (the UPnP
//! description), `seats.rs` (its tuners that are in use).

mod description;
mod device;
mod lineup;
mod seats;

use actors::Target;
use config::NetworkClass;
use domain::tuner::{DeviceKey, FIRMWARE_NAME, FIRMWARE_VERSION, MODEL_NUMBER, SOURCE};
use domain::user::UserLevel;
use domain::xml::push_escaped;
use http::header::CACHE_CONTROL;
use resource_derive::View;
use route_frame::access::Access;
use route_frame::call::Call;
use route_frame::route::{Content, MediaType, Route};
use serde::Serialize;
use server::reply::Refusal;

use self::device::DevicePath;
pub(super) use self::device::tuner_count;
pub use self::device::{Device, announced_devices};
pub(crate) use self::seats::TunerSeats;
pub(super) use self::seats::{TunerSeat, TunersTaken};
use super::output_profile::StreamQuery;
use super::refusals::unknown_channel;
use super::watch::{StreamAnswer, stream_route, watch};
use crate::context::PlayerCall;

/// Everyone whom the networks let in; the channels depend on the user, if there is one.
const ACCESS: Access = Access::UsersOrNetworks(UserLevel::Streamer);

/// A document in XML.
pub(super) struct Xml;

impl MediaType for Xml {
    const NAME: &'static str = "application/xml";
}

/// An emulated tuner. Names as HDHomeRun devices use them.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "TunerDiscovery")]
#[expect(non_snake_case, reason = "the names of the fields on the wire")]
pub(crate) struct DiscoveryView {
    /// Name for people.
    #[field(example = "Headwater")]
    FriendlyName: String,
    /// Model number.
    #[field(example = "HDTC-2US")]
    ModelNumber: &'static str,
    /// Name of the firmware.
    #[field(example = "tuner3_atsc")]
    FirmwareName: &'static str,
    /// Version of the firmware.
    #[field(example = "20200101")]
    FirmwareVersion: &'static str,
    /// Identity of the device.
    #[field(example = "12345678")]
    DeviceID: String,
    /// Any text; services of the manufacturer are not emulated.
    DeviceAuth: &'static str,
    /// Address of the device, without a trailing slash.
    BaseURL: String,
    /// Address of its channels.
    LineupURL: String,
    /// Number of simultaneous streams.
    #[field(example = "10")]
    TunerCount: u32,
}

/// The state of the search for channels, which never runs: the lineup is always complete.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "TunerLineupStatus")]
#[expect(non_snake_case, reason = "the names of the fields on the wire")]
pub(crate) struct LineupStatusView {
    /// Always 0.
    ScanInProgress: u32,
    /// Always 0.
    ScanPossible: u32,
    /// The kind of reception.
    #[field(example = "Cable")]
    Source: &'static str,
    /// All kinds of reception.
    SourceList: Vec<&'static str>,
}

pub(super) fn routes() -> Vec<Route> {
    macro_rules! paths {
        ($prefix:literal) => {
            [
                concat!($prefix, "/discover.json"),
                concat!($prefix, "/lineup.json"),
                concat!($prefix, "/lineup.xml"),
                concat!($prefix, "/lineup.m3u"),
                concat!($prefix, "/lineup_status.json"),
                concat!($prefix, "/device.xml"),
                concat!($prefix, "/lineup.post"),
            ]
        };
    }
    let device = |prefix| DevicePath { prefix, has_profile: false, has_output_profile: false };
    let of_profile = |prefix| DevicePath { has_profile: true, ..device(prefix) };
    let changed = |at| DevicePath { has_output_profile: true, ..at };
    let mut routes = vec![stream_route("/auto/{channel}", ACCESS, "Plays a channel by its number.", play)];
    // Where clients of the reference service ask, too. The device is the one at its usual place.
    let [discover, lineup, _, _, status, description, _] = paths!("/api/hdhr");
    let of_main = routes_of(device("/hdhr"), paths!("/api/hdhr"));
    let is_named = |it: &Route| [discover, lineup, status, description].contains(&it.path);
    let network_class = NetworkClass::from_path("/hdhr");
    routes.extend(of_main.into_iter().filter(is_named).map(|it| Route { network_class, ..it }));
    for (at, paths) in [
        (device(""), paths!("")),
        (device("/tuner"), paths!("/tuner")),
        (of_profile("/tuner"), paths!("/tuner/{profile}")),
        (device("/hdhr"), paths!("/hdhr")),
        (of_profile("/hdhr"), paths!("/hdhr/{profile}")),
        (changed(device("/tuner")), paths!("/tuner/output_profile/{output_profile}")),
        (changed(of_profile("/tuner")), paths!("/tuner/{profile}/output_profile/{output_profile}")),
        (changed(device("/hdhr")), paths!("/hdhr/output_profile/{output_profile}")),
        (changed(of_profile("/hdhr")), paths!("/hdhr/{profile}/output_profile/{output_profile}")),
    ] {
        routes.extend(routes_of(at, paths));
    }
    routes
}

fn routes_of(at: DevicePath, paths: [&'static str; 7]) -> [Route; 8] {
    let [discover, lineup, lineup_xml, lineup_m3u, status, description, post] = paths;
    let post_lineup = move |call: Call| post_lineup(call, at);
    const SCAN: &str = "Starts or ends the search for channels, which changes nothing.";
    [
        Route::get(discover, ACCESS, "Returns the emulated tuner.", move |call: Call| discovery(call, at)),
        Route::get(lineup, ACCESS, "Lists the channels of the tuner.", move |call: Call| {
            lineup::json(call, at)
        }),
        Route::get(lineup_xml, ACCESS, "Returns the channels of the tuner as XML.", move |call: Call| {
            lineup::xml(call, at)
        }),
        Route::get(
            lineup_m3u,
            ACCESS,
            "Returns the channels of the tuner as a playlist.",
            move |call: Call| lineup::m3u(call, at),
        ),
        Route::get(status, ACCESS, "Returns the state of the search for channels.", move |call: Call| {
            lineup_status(call, at)
        }),
        Route::get(
            description,
            ACCESS,
            "Returns the description of the tuner for UPnP.",
            move |call: Call| description::xml(call, at),
        ),
        Route::get(post, ACCESS, SCAN, post_lineup),
        Route::post(post, ACCESS, SCAN, post_lineup).that_reads(),
    ]
}

async fn discovery(call: Call, at: DevicePath) -> Result<DiscoveryView, Refusal> {
    let device = at.device(&call)?;
    call.player().states.get::<TunerSeats>().note_client(&call, device.key);
    Ok(DiscoveryView {
        FriendlyName: device.name,
        ModelNumber: MODEL_NUMBER,
        FirmwareName: FIRMWARE_NAME,
        FirmwareVersion: FIRMWARE_VERSION,
        DeviceID: device.id,
        DeviceAuth: "headwater",
        LineupURL: format!("{}/lineup.json", device.base_url),
        BaseURL: device.base_url,
        TunerCount: device.tuner_count,
    })
}

async fn lineup_status(call: Call, at: DevicePath) -> Result<LineupStatusView, Refusal> {
    at.device(&call)?;
    Ok(LineupStatusView { ScanInProgress: 0, ScanPossible: 0, Source: SOURCE, SourceList: vec![SOURCE] })
}

/// Clients send this before they read the lineup, and some of them fail without an answer.
async fn post_lineup(call: Call, at: DevicePath) -> Result<LineupStatusView, Refusal> {
    lineup_status(call, at).await
}

/// Plays a channel by its number. It takes a tuner of the device with all channels.
async fn play(call: Call, query: StreamQuery) -> Result<StreamAnswer, Refusal> {
    let uuid = {
        let number = call.text("channel")?.strip_prefix('v');
        let channel = number.and_then(|it| lineup::by_number(&call.player().models, it));
        channel.filter(|it| call.can_see(it)).map(|it| it.uuid)
    };
    let target = Target::Channel(uuid.ok_or_else(unknown_channel)?);
    call.player().states.get::<TunerSeats>().note_client(&call, DeviceKey::Main);
    watch(call, target, query).await
}

/// Returns a document in XML that caches do not keep.
fn document(text: String) -> Content<Xml> {
    Content::new(text).with_header(CACHE_CONTROL, "no-cache")
}

/// Writes an element with a text.
fn push_element(out: &mut String, name: &str, text: &str) {
    for part in ["<", name, ">"] {
        out.push_str(part);
    }
    push_escaped(out, text);
    for part in ["</", name, ">"] {
        out.push_str(part);
    }
}
