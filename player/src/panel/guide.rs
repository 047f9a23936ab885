//! The guide of a channel, as a panel describes it. All texts are in base64, and times are in the zone of the account's
//! answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::channel::Channel;
use domain::ids::GuideChannelId;
use domain::lineup::guide_channel_id;
use jiff::Timestamp;
use route_frame::call::Call;
use serde::Serialize;
use serde_json::{Value, json};
use server::reply::Refusal;
use services::guide::{DAY, EntryId, GuideEntry, read_guide};

use crate::context::PlayerCall;

/// Number of programmes if the app names none, and the maximum.
const PROGRAMMES: usize = 4;
const PROGRAMMES_MAX: usize = 100;
/// Maximum number of programmes in the table of a channel.
const TABLE_PROGRAMMES_MAX: usize = 2_000;
/// The table covers this time from now on, in seconds.
const TABLE_SPAN: i64 = 14 * DAY;
const HOUR: i64 = 60 * 60;
/// A programme can be watched if what is kept begins this many seconds after it.
const START_SLACK: i64 = 60;

/// A programme. Numbers are texts, except the flags.
#[derive(Debug, Serialize)]
struct Listing {
    id: String,
    /// The channel of the guide; 0 for a generated guide.
    epg_id: String,
    title: String,
    lang: String,
    start: String,
    end: String,
    description: String,
    /// The id of the channel in playlists and guides.
    channel_id: String,
    /// Seconds since 1970.
    start_timestamp: String,
    stop_timestamp: String,
    stream_id: String,
    /// Whether the programme is over and can be watched.
    has_archive: u8,
    /// In the table only.
    #[serde(skip_serializing_if = "Option::is_none")]
    now_playing: Option<u8>,
}

/// Returns the next programmes of a channel, from the running one on. A channel that the caller does not see has none.
pub(super) async fn short(
    call: &Call,
    stream_id: Option<&str>,
    limit: Option<&str>,
) -> Result<Value, Refusal> {
    let limit = limit.and_then(|it| it.trim().parse().ok()).filter(|it| *it > 0).unwrap_or(PROGRAMMES);
    listings(call, stream_id, limit.min(PROGRAMMES_MAX), false).await
}

/// Returns the programmes of a channel that have not ended, and before them those that can still be watched.
pub(super) async fn table(call: &Call, stream_id: Option<&str>) -> Result<Value, Refusal> {
    listings(call, stream_id, TABLE_PROGRAMMES_MAX, true).await
}

async fn listings(
    call: &Call,
    stream_id: Option<&str>,
    n_max: usize,
    is_table: bool,
) -> Result<Value, Refusal> {
    let id = stream_id.and_then(|it| it.trim().parse().ok());
    let channel = id.and_then(|it: u32| call.player().models.channels.load().get(it).cloned());
    let Some(channel) = channel.filter(|it| call.can_see(it)) else {
        return Ok(json!({ "epg_listings": [] }));
    };
    let (archives, since) = (call.archives(), call.player().time_shift.since(channel.uuid));
    let provider_hours = i64::from(archives.hours_of_provider(channel.id));
    // The time that is kept: what the settings allow may not have been broadcast yet.
    let kept_from = since.filter(|_| archives.is_kept(channel.id)).map(|it| it / 1000 - START_SLACK);
    let guides = call.player().guides.reader();
    let listings: Vec<Listing> = read_guide(move || {
        let Some(guide) = guides.channel_guide(&channel) else { return Ok(Vec::new()) };
        let now = guides.now;
        let guide_channel = (!guide.is_generated()).then_some(guide.guide_channel.id);
        let of_provider = (provider_hours > 0).then_some(now - provider_hours * HOUR);
        let archive_from = of_provider.into_iter().chain(kept_from).min().filter(|_| is_table);
        let past = archive_from.map_or_else(Vec::new, |it| guide.programmes(it, now));
        let archive_from = archive_from.unwrap_or(now);
        // Programmes that have begun earlier than the archive are cut, and those that run are among the next ones.
        let past = past.into_iter().filter(|it| it.start >= archive_from && it.stop <= now);
        let upcoming = guide.upcoming(now, n_max, now + TABLE_SPAN);
        let listing = |it: GuideEntry| {
            let now_playing = is_table.then(|| it.is_running(now).into());
            let has_archive = u8::from(it.stop <= now);
            Listing { now_playing, has_archive, ..listing(&channel, guide_channel, &it) }
        };
        Ok(past.take(TABLE_PROGRAMMES_MAX).chain(upcoming).map(listing).collect())
    })
    .await?;
    Ok(json!({ "epg_listings": listings }))
}

fn listing(channel: &Channel, guide_channel: Option<GuideChannelId>, entry: &GuideEntry) -> Listing {
    let programme = entry.programme();
    let id = match entry.id {
        EntryId::Stored(id, _) => id.0,
        // Apps read a number.
        EntryId::Generated(channel, start) => u64::from(channel.0) << 32 | u64::from(start as u32),
    };
    Listing {
        id: id.to_string(),
        epg_id: guide_channel.map_or(0, |it| it.0).to_string(),
        title: BASE64.encode(programme.title()),
        lang: programme.titles.first().and_then(|it| it.lang.clone()).unwrap_or_default(),
        start: local_time(entry.start),
        end: local_time(entry.stop),
        description: BASE64.encode(programme.description().unwrap_or_default()),
        channel_id: guide_channel_id(channel),
        start_timestamp: entry.start.to_string(),
        stop_timestamp: entry.stop.to_string(),
        stream_id: channel.id.to_string(),
        has_archive: 0,
        now_playing: None,
    }
}

/// Writes a time in the zone of the server, which is UTC.
fn local_time(seconds: i64) -> String {
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
