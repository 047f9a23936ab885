//! A reason on the screen: if a stream cannot start, players that show no errors can get a short clip with the reason as
//! text instead. An option, off by default.
//!
//! The clip of each reason is made once, by ffmpeg, and kept in the data folder. Its player takes neither a slot nor a
//! seat. Without ffmpeg, and for clients that understand errors, the error stays.
//!
//! Reading order: this file (when and how a clip is sent), `reason.rs` (the texts), `picture.rs` (a text as a picture),
//! `clips.rs` (making and keeping clips).

mod clips;
mod picture;
mod reason;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::core_settings::{STREAM_SETTINGS, reason_on_screen};
use domain::output_format::OutputFormat;
use futures_util::stream;
use http::Method;
use http::header::ACCEPT;
use media::{Clip, ClipPlayer};
use route_frame::call::Call;
use route_frame::route::Answer;
use server::reply::Refusal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use tracing::info;
use warp::reply::Response as Reply;

use self::clips::Clips;
use self::reason::ScreenReason;
use super::answers::streaming;
use crate::context::{PlayerCall, PlayerContext};
use crate::tuner::TunerSeats;

/// Time for which a clip is played before the connection ends.
const PLAYED_MAX: Duration = Duration::from_secs(30);
/// Maximum number of connections that get a clip at the same time; further ones get the error.
const SCREENS_MAX: usize = 64;
/// Packets are sent this long before they are due, so that players can fill their buffers.
const LEAD: Duration = Duration::from_secs(2);

/// The clips, and the places for connections that get one.
pub(crate) struct Screens {
    clips: Clips,
    places: Arc<Semaphore>,
}

impl Screens {
    pub(crate) fn new(clips: Clips) -> Self {
        Self { clips, places: Arc::new(Semaphore::new(SCREENS_MAX)) }
    }
}

pub(crate) use self::clips::Clips as ScreenClips;

/// Answers a request for a stream that was refused: with a clip if the option is on and the client needs one, else with
/// the error.
pub(super) async fn show(call: Call, refusal: Refusal) -> Result<Reply, Refusal> {
    let Some(reason) = reason_of(&call, &refusal) else { return Err(refusal) };
    let screens = call.player().states.get::<Screens>();
    let Ok(place) = Arc::clone(&screens.places).try_acquire_owned() else { return Err(refusal) };
    let Some(clip) = screens.clips.get(reason).await else { return Err(refusal) };
    info!(client.address = %call.caller.address(), client.agent = call.caller.agent, "reason shown on the screen: {refusal}");
    let body = Screen::new(Arc::clone(call.player()), &clip, place);
    let body = stream::unfold(body, |mut body| async move {
        let bytes = body.next().await?;
        Some((Ok::<_, Infallible>(bytes), body))
    });
    Ok(streaming(warp::reply::stream(body)).into_reply())
}

/// Returns the reason to show, if the option covers it and the client is a player that shows no errors.
fn reason_of(call: &Call, refusal: &Refusal) -> Option<ScreenReason> {
    let settings = call.player().models.settings.load();
    let option = reason_on_screen(settings.one_by("key", STREAM_SETTINGS).map(|it| &it.value));
    let (status, error) = refusal.reason();
    let reason = ScreenReason::from_refusal(option, status, error)?;
    let accepts = call.headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let reads_errors =
        accepts.contains("json") || call.player().states.get::<TunerSeats>().is_client(&call.caller);
    // The clip is a transport stream.
    let takes_clips = call.stream_format().is_none_or(|it| it == OutputFormat::Ts);
    (call.method == Method::GET && !reads_errors && takes_clips).then_some(reason)
}

/// One connection that gets a clip.
struct Screen {
    context: Arc<PlayerContext>,
    player: ClipPlayer,
    began: Instant,
    _place: OwnedSemaphorePermit,
}

impl Screen {
    fn new(context: Arc<PlayerContext>, clip: &Clip, place: OwnedSemaphorePermit) -> Self {
        Screen { context, player: clip.player(), began: Instant::now(), _place: place }
    }

    /// Returns the next packets when they are due. `None` after the time of a clip, and when the gateway stops.
    async fn next(&mut self) -> Option<Bytes> {
        let (due, bytes) = self.player.next();
        if due > PLAYED_MAX {
            return None;
        }
        sleep_until(self.began + due.saturating_sub(LEAD)).await;
        (!self.context.is_draining()).then_some(bytes)
    }
}
