//! Keeps the program of a rendition running, and writes its output to the ring of the rendition.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use domain::settings::Settings;
use media::error::{Cause, UpstreamError};
use media::pump::{self, PumpHandle, PumpMessage, PumpSettings};
use media::rendition::{FeedEnd, LeftOutStreams, StreamFilter, feed, program_input};
use media::ring::{EndReason, JoinPoint, Ring, Writer};
use media::source::{self, Upstream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::transcoders::TranscoderSlot;

/// A program that has never delivered anything is started at most this often.
const FIRST_STARTS_MAX: u32 = 3;
/// The pauses before a program is started again; the last one is repeated.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5)];
/// A program that delivered for this long is started again after the first pause.
const STABLE_AFTER: Duration = Duration::from_secs(30);
/// Messages of the pump that wait; each program causes at most two.
const MESSAGES_MAX: usize = 16;

/// The program of a rendition, and where its input comes from.
pub(super) struct Transcoder {
    /// Name of the output profile.
    pub(super) name: String,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// The streams that the program does not get.
    pub(super) left_out: LeftOutStreams,
    /// The ring of the channel.
    pub(super) source: Ring,
    /// Where the input of the first run begins.
    pub(super) join_point: JoinPoint,
    pub(super) slot: TranscoderSlot,
    pub(super) upstream: Upstream,
    pub(super) settings: Arc<Settings>,
}

/// How one run of the program ended.
enum RunEnd {
    /// The ring of the channel ended.
    Ring(EndReason),
    /// The program failed, after it delivered for this long.
    Failed { cause: UpstreamError, delivered: Option<Duration> },
}

impl Transcoder {
    /// Runs the program until the channel ends or the program fails too often, and then ends `ring`, which belongs to
    /// `writer`. Between two runs the pump keeps viewers connected with filler.
    pub(super) async fn run(self, writer: Writer, ring: Ring) {
        let settings = &self.settings;
        let (sender, messages) = mpsc::channel(MESSAGES_MAX);
        let (pump, pumping) = pump::pump(
            writer,
            PumpSettings {
                stall_timeout: settings.stall_timeout,
                silence_suspected_after: settings.silence_suspected_after,
                give_up_after: settings.give_up_after,
                random_access_wait: settings.random_access_wait,
                buffering_timeout: settings.buffering_timeout,
                ..PumpSettings::default()
            },
            None,
            move |message| {
                if matches!(message, PumpMessage::Playing(_) | PumpMessage::Lost { .. }) {
                    // Full only if nobody reads, and then nobody misses it.
                    let _ = sender.try_send(message);
                }
            },
        );
        // Ends the ring before the pump is dropped, which would end it without a reason.
        let running = async { ring.end(self.keep_running(&pump, messages).await) };
        tokio::select! {
            () = running => {}
            () = pumping => {}
        }
    }

    async fn keep_running(&self, pump: &PumpHandle, mut messages: mpsc::Receiver<PumpMessage>) -> EndReason {
        let mut has_delivered = false;
        let mut n_failures = 0;
        let mut failing_since = None;
        let mut number = 0;
        loop {
            number += 1;
            let (cause, delivered) = match self.run_once(number, pump, &mut messages).await {
                RunEnd::Ring(end) => return end,
                RunEnd::Failed { cause, delivered } => (cause, delivered),
            };
            let name = &self.name;
            warn!(profile.name = name, "the program of an output profile failed: {cause}");
            has_delivered |= delivered.is_some();
            if delivered.is_some() {
                failing_since = None;
            }
            n_failures = if delivered.is_some_and(|it| it >= STABLE_AFTER) { 1 } else { n_failures + 1 };
            let since: Instant = *failing_since.get_or_insert_with(Instant::now);
            let gives_up = match has_delivered {
                true => since.elapsed() >= self.settings.give_up_after,
                false => n_failures >= FIRST_STARTS_MAX,
            };
            if gives_up {
                let text = format!("the program of output profile \"{name}\" failed: {cause}");
                return EndReason::NothingPlays(text.into());
            }
            let pause = PAUSES[(n_failures as usize - 1).min(PAUSES.len() - 1)];
            // If the channel ends meanwhile, it ends the ring of the rendition itself.
            sleep(pause).await;
        }
    }

    /// Runs the program once. Waits with its start until the channel plays.
    async fn run_once(
        &self,
        number: u64,
        pump: &PumpHandle,
        messages: &mut mpsc::Receiver<PumpMessage>,
    ) -> RunEnd {
        let failed = |cause| RunEnd::Failed { cause, delivered: None };
        // A later run begins with the newest picture, because viewers have seen what came before.
        let newest = JoinPoint::Live { behind: Duration::ZERO };
        let mut tail = self.source.uncounted_tail(if number == 1 { self.join_point } else { newest });
        if let Err(end) = tail.ready().await {
            return RunEnd::Ring(end);
        }
        let Ok((input, output)) = program_input() else {
            return failed(Cause::Program("too many files are open".to_owned()).into());
        };
        let mut feeding = pin!(feed(tail, StreamFilter::new(self.left_out.clone()), input));
        let mut opening =
            pin!(source::open_fed(&self.command, output, Box::new(self.slot.clone()), self.upstream.clone()));
        let mut is_fed = true;
        let source = loop {
            tokio::select! {
                opened = &mut opening => match opened {
                    Ok(source) => break source,
                    Err(cause) => return failed(cause),
                },
                end = &mut feeding, if is_fed => match end {
                    FeedEnd::Ring(end) => return RunEnd::Ring(end),
                    // Its end says why.
                    FeedEnd::Program => is_fed = false,
                },
            }
        };
        info!(
            profile.name = self.name,
            program = source.info().place,
            "the program of an output profile runs"
        );
        pump.follow(number, 0, source);
        let mut delivers_since: Option<Instant> = None;
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(PumpMessage::Playing(it)) if it == number => delivers_since = Some(Instant::now()),
                    Some(PumpMessage::Lost { attempt, cause }) if attempt == number => {
                        return RunEnd::Failed { cause, delivered: delivers_since.map(|it| it.elapsed()) };
                    }
                    Some(_) => {}
                    // The pump is gone, which ends this task.
                    None => pending().await,
                },
                end = &mut feeding, if is_fed => match end {
                    FeedEnd::Ring(end) => return RunEnd::Ring(end),
                    FeedEnd::Program => is_fed = false,
                },
            }
        }
    }
}
